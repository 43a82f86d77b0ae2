// Ctrl-C, TERM and HUP. Outside a guard they end the process at once with exit code 130, 143, 129; inside
// one, the run under way is cancelled, or the file under way finished or removed, and kCancelled is thrown.
#pragma once

#include <plimsoll/run_options.h>

namespace plimsoll::cli {

inline constexpr int kInterrupted = 130;

// Call once, before anything that may take long.
void catch_interrupts();
bool interrupted();
int interrupted_exit_code();
// Throws kCancelled once Ctrl-C was pressed.
void check_interrupted();
// Options for Session::Run whose terminate flag is Ctrl-C.
const RunOptions& interruptible();

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
};

}  // namespace plimsoll::cli
