// The planned arena as a picture: steps from left to right, offsets upwards, one box per buffer.
#pragma once

#include <plimsoll/plan.h>

#include <string>

namespace plimsoll::cli {

// For a terminal: `width` x `height` characters, darker where more of the cell is in use.
std::string ascii_picture(const Plan& plan, int width, int height);
// A page with the picture, the accounts and the formula.
std::string html_page(const Plan& plan, const std::string& title);

}  // namespace plimsoll::cli
