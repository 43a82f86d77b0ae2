// Signals as bytes in a pipe, so that a loop that polls hears of them.
#pragma once

#include <array>
#include <csignal>

#include "watch_pipe.h"

namespace plimsoll::cli {

// One at a time. While it lives, Ctrl-C, TERM and HUP ask to stop and do nothing else (the third Ctrl-C ends
// the process at once); WINCH and CONT are told too. A signal that was ignored (nohup) stays so. Afterwards
// they do what they did before.
class SignalPipe {
 public:
  SignalPipe();
  ~SignalPipe();
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  int descriptor() const { return pipe_.read_end(); }
  void read();  // takes what came
  bool stop() const { return stop_; }
  bool take_stop();  // and asks anew
  bool take_resized();
  bool take_resumed();

 private:
  Pipe pipe_;
  std::array<struct sigaction, 5> before_ = {};
  bool stop_ = false, resized_ = false, resumed_ = false;
};

}  // namespace plimsoll::cli
