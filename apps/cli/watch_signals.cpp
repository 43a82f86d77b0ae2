#include "watch_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <utility>

#include "interrupt.h"

namespace plimsoll::cli {
namespace {

constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};

constexpr bool asks_to_stop(int signal) {
  return signal != SIGWINCH && signal != SIGCONT;
}

// A handler has nothing but globals to speak through; both are lock-free.
std::atomic<int> pipe_descriptor{-1};
std::atomic<int> interrupts{0};

extern "C" void on_signal(int signal) {
  const int saved = errno;
  if (asks_to_stop(signal) && interrupts.fetch_add(1) >= 2) ::_exit(kInterrupted);
  const char byte = signal == SIGWINCH ? 'w' : signal == SIGCONT ? 'c' : 's';
  const int descriptor = pipe_descriptor.load();
  if (descriptor >= 0 && ::write(descriptor, &byte, 1) < 0) {
    // The pipe is full of what was not read yet: that says enough.
  }
  errno = saved;
}

}  // namespace

SignalPipe::SignalPipe() {
  pipe_.open();
  ::fcntl(pipe_.write_end(), F_SETFL, O_NONBLOCK);
  interrupts = 0;
  pipe_descriptor = pipe_.write_end();
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], nullptr, &before_[i]);
    const bool ignored = before_[i].sa_handler == SIG_IGN && asks_to_stop(kSignals[i]);
    if (!ignored) ::sigaction(kSignals[i], &action, nullptr);
  }
}

SignalPipe::~SignalPipe() {
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  pipe_descriptor = -1;
}

void SignalPipe::read() {
  bool ended = false;
  for (const char byte : pipe_.read_some(ended))
    (byte == 'w' ? resized_ : byte == 'c' ? resumed_ : stop_) = true;
}

bool SignalPipe::take_stop() {
  return std::exchange(stop_, false);
}

bool SignalPipe::take_resumed() {
  return std::exchange(resumed_, false);
}

bool SignalPipe::take_resized() {
  return std::exchange(resized_, false);
}

}  // namespace plimsoll::cli
