// Where a watch shows itself while it goes on: a view that is redrawn in place on a terminal, one line per
// sample elsewhere, one JSON object per sample with --json.
//
// The terminal is left as it is: no alternate screen, no raw mode, no hidden cursor, so that there is nothing
// to restore, whatever ends us. What the command prints scrolls by above the view.
#pragma once

#include <memory>
#include <string_view>

#include "watch_history.h"

namespace plimsoll::cli {

class Display {
 public:
  virtual ~Display() = default;
  virtual void show(const WatchHistory& history) = 0;    // after each sample
  virtual void pass_output(std::string_view text) = 0;   // of the command
  virtual void finish(const WatchHistory& history) = 0;  // the report
  // A whole recording: every sample where each has a line, the last view and the report.
  virtual void replay(const WatchHistory& history) = 0;
  virtual void resized(const WatchHistory&) {}
  virtual bool wants_output() const {
    return false;
  }  // the command's stdout and stderr are to come through us
};

std::unique_ptr<Display> make_display(bool json);

}  // namespace plimsoll::cli
