// A condition variable that Ctrl-C cannot tear. threading.Condition is Python: a signal between two of its
// bytecodes leaves its lock held for ever, or makes `with` release a lock that is not held. Here a signal's
// exception is raised by `acquire` before the lock is held, or by `wait` when it is held again.
#include <pybind11/stl.h>
#include <semaphore.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bindings.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr double kEndlessSeconds = 1e9;
constexpr Clock::time_point kNever = Clock::time_point(std::chrono::hours(24 * 365 * 100));

// Python runs handlers in its main thread only, which is the process's own.
bool may_handle_signals() {
  return ::gettid() == ::getpid();
}

// Where one thread sleeps. A signal wakes it; one that came just before it slept does so kSignalLook later.
class Sleeper {
 public:
  Sleeper() { sem_init(&semaphore_, 0, 0); }
  ~Sleeper() { sem_destroy(&semaphore_); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void wake() { sem_post(&semaphore_); }

  // Whether it was woken by wake().
  bool sleep_until(Clock::time_point end) {
    const auto look = may_handle_signals() ? Clock::now() + kSignalLook : end;
    const auto until = std::min(end, look).time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(until);
    const timespec time{seconds.count(), std::chrono::nanoseconds(until - seconds).count()};
    return without_lock([&] { return sem_clockwait(&semaphore_, CLOCK_MONOTONIC, &time); }) == 0;
  }

 private:
  sem_t semaphore_;
};

// What concurrent.futures asks of a Future's condition, and no more. Recursive. The interpreter's lock guards
// the members; it is released only while a thread sleeps.
class Condition {
 public:
  // A handler's exception is raised before the lock is held.
  void acquire() {
    if (const auto interrupted = acquire_unless_interrupted(true)) throw py::error_already_set(*interrupted);
  }

  void release() {
    check_held();
    if (--depth_ == 0) hand_over();
  }

  // Whether notify_all was called within the time; None: for ever.
  bool wait(std::optional<double> seconds) {
    check_held();
    const auto length =
        std::chrono::duration<double>(std::clamp(seconds.value_or(kEndlessSeconds), 0.0, kEndlessSeconds));
    const auto end = Clock::now() + std::chrono::ceil<milliseconds>(length);
    const auto sleeper = std::make_shared<Sleeper>();
    for_news_.push_back(sleeper);
    const int depth = depth_;
    depth_ = 0;
    hand_over();

    bool notified = false;
    std::optional<py::error_already_set> interrupted;
    while (!interrupted && !(notified = sleeper->sleep_until(end)) && Clock::now() < end)
      if (PyErr_CheckSignals() != 0) interrupted.emplace();
    std::erase(for_news_, sleeper);

    acquire_unless_interrupted(false);
    depth_ = depth;
    if (interrupted) throw py::error_already_set(*interrupted);
    return notified;
  }

  void notify_all() {
    check_held();
    for (const auto& sleeper : for_news_) sleeper->wake();
    for_news_.clear();
  }

 private:
  std::optional<py::error_already_set> acquire_unless_interrupted(bool heed_signals) {
    const std::thread::id self = std::this_thread::get_id();
    while (depth_ > 0 && owner_ != self) {
      const auto sleeper = std::make_shared<Sleeper>();
      for_lock_.push_back(sleeper);
      while (!sleeper->sleep_until(kNever)) {
        if (!heed_signals || PyErr_CheckSignals() == 0) continue;
        py::error_already_set interrupted;
        if (std::erase(for_lock_, sleeper) == 0 && depth_ == 0) hand_over();  // it was our turn
        return interrupted;
      }
    }
    owner_ = self;
    ++depth_;
    return std::nullopt;
  }
  void check_held() const {
    if (depth_ == 0 || owner_ != std::this_thread::get_id())
      throw std::runtime_error("the condition's lock is not held by this thread");
  }
  void hand_over() {
    if (for_lock_.empty()) return;
    for_lock_.front()->wake();
    for_lock_.erase(for_lock_.begin());
  }

  std::thread::id owner_;
  int depth_ = 0;
  std::vector<std::shared_ptr<Sleeper>> for_lock_, for_news_;
};

}  // namespace

void bind_condition(py::module_& module) {
  py::class_<Condition>(module, "Condition")
      .def(py::init())
      .def("acquire", &Condition::acquire)
      .def("release", &Condition::release)
      .def("__enter__", &Condition::acquire)
      .def("__exit__", [](Condition& condition, const py::args&) { condition.release(); })
      .def("wait", &Condition::wait, py::arg("timeout"))
      .def("notify_all", &Condition::notify_all);
}

}  // namespace plimsoll::bindings
