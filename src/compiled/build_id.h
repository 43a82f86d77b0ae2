#pragma once

#include <string>

namespace plimsoll {

// What tells builds of this library apart: the linker's number for the file that this code is in, which
// changes with every change of the code, or the version where there is none.
std::string build_id();

}  // namespace plimsoll
