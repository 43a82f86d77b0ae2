// The live view: both accounts as stacked bars, how they went, and the verdict as it firms up. Pure text:
// what to draw, not when or where.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "watch_history.h"

namespace plimsoll::cli {

struct Screen {
  int columns = 80, rows = 24;
  bool colour = false;
  bool utf8 = false;
};

// At most `rows` - 1 lines of at most `columns` - 1 cells, each without a newline.
std::vector<std::string> view_lines(const WatchHistory& history, const Screen& screen);

}  // namespace plimsoll::cli
