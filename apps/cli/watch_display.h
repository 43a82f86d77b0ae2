// Where a watch shows itself while it goes on: a view that is redrawn in place on a terminal, one line per
// sample elsewhere, one JSON object per sample with --json.
//
// The terminal is left as it is: no alternate screen, no raw mode, no hidden cursor, so that there is nothing
// to restore, whatever ends us. What the command prints scrolls by above the view.
//
// Nothing here waits for a reader: what it has not taken is kept, lines beyond that are dropped and counted.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <vector>

#include "watch_history.h"
#include "watch_outlet.h"

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
  virtual void resumed() {}  // others may have written to the terminal meanwhile
  virtual bool wants_output() const {
    return false;
  }  // the command's stdout and stderr are to come through us
  // Whether the last output that was passed is out: until then, the command may wait.
  virtual bool is_ready_for_output() const { return !error_.is_behind(); }

  Outlet& output() { return output_; }
  Outlet& error() { return error_; }
  void flush() {
    output_.flush();
    error_.flush();
  }
  // Where a reader is awaited.
  void add_descriptors(std::vector<pollfd>& descriptors) const {
    for (const Outlet* outlet : {&output_, &error_})
      if (outlet->is_behind()) descriptors.push_back({outlet->descriptor(), POLLOUT, 0});
  }

 protected:
  Outlet output_{STDOUT_FILENO, Outlet::Trouble::kThrown};
  Outlet error_{STDERR_FILENO, Outlet::Trouble::kIgnored};
};

std::unique_ptr<Display> make_display(bool json);

}  // namespace plimsoll::cli
