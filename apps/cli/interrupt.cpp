#include "interrupt.h"

#include <plimsoll/error.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

namespace plimsoll::cli {
namespace {

// A signal handler has nothing but globals to speak through; all it touches is lock-free.
std::atomic<int> guards{0}, last_signal{SIGINT};
RunOptions run_options;

extern "C" void on_interrupt(int signal) {
  if (guards.load() == 0) ::_exit(128 + signal);
  last_signal.store(signal);
  run_options.SetTerminate();
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C does not wait
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;  // nohup stays nohup
    ::sigaction(signal, &action, nullptr);
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);  // a closed pipe is an error that we report
  ::sigaction(SIGXFSZ, &action, nullptr);  // and so is a file that may not grow
}

int interrupted_exit_code() {
  return 128 + last_signal.load();
}

bool interrupted() {
  return run_options.terminate();
}

void check_interrupted() {
  if (interrupted()) throw Error(ErrorCode::kCancelled, "interrupted");
}

const RunOptions& interruptible() {
  return run_options;
}

InterruptGuard::InterruptGuard() {
  guards.fetch_add(1);
}
InterruptGuard::~InterruptGuard() {
  guards.fetch_sub(1);
}

}  // namespace plimsoll::cli
