// Pool: outcomes wait in a queue of ours until a Python thread fetches them, so that the pool's own thread
// never waits for the interpreter's lock.
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "bindings.h"
#include "isolate_values.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

using std::chrono::milliseconds;

// Shared with the callbacks, which may outlive the object that made them.
struct Finished {
  std::mutex mutex;
  std::condition_variable news;
  std::deque<std::pair<int64_t, Outcome>> outcomes;  // by the caller's number
  bool closed = false;
  bool delivering = false;
  std::thread::id deliverer;
};

class PythonPool {
 public:
  PythonPool(const py::dict& spec, int workers, const py::dict& options)
      : finished_(std::make_shared<Finished>()) {
    PoolOptions pool;
    WorkerSpec worker = worker_spec(spec);
    pool.worker = std::move(worker.command);
    pool.limits = worker.limits;
    pool.workers = workers;
    pool.queue_capacity = options["queue_capacity"].cast<int64_t>();
    pool.recycle_after_jobs = options["recycle_after_jobs"].cast<int64_t>();
    pool.recycle_above_bytes = options["recycle_above_bytes"].cast<int64_t>();
    pool.idle_timeout = milliseconds(options["idle_ms"].cast<int64_t>());
    pool.start_timeout = milliseconds(options["start_ms"].cast<int64_t>());
    pool.result_bytes = options["result_bytes"].cast<int64_t>();
    pool_ = without_lock([&] { return std::make_unique<Pool>(std::move(pool)); });
  }
  ~PythonPool() { pool_.reset(); }

  // The pool's number of the job; None: there was no room within the time.
  std::optional<int64_t> submit(int64_t number, const py::bytes& request, bool repeatable, int64_t wall_ms,
                                int64_t patience_ms, const std::vector<int>& descriptors) {
    std::string bytes = request;
    const JobOptions options{repeatable, milliseconds(wall_ms), attachment(descriptors)};
    const auto done = [finished = finished_, number](Outcome outcome) {
      const std::lock_guard lock(finished->mutex);
      finished->outcomes.emplace_back(number, std::move(outcome));
      finished->news.notify_all();
    };
    const auto end = std::chrono::steady_clock::now() + milliseconds(patience_ms);
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
      const auto wait = patience_ms < 0 ? kSignalLook : std::clamp(left, milliseconds(0), kSignalLook);
      const std::optional<int64_t> id =
          without_lock([&] { return pool_->SubmitFor(wait, bytes, options, done); });
      if (id) return id;
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (patience_ms >= 0 && left <= milliseconds(0)) return std::nullopt;
    }
  }

  // Runs `deliver` in a thread, which calls next() until there are no more, and delivered() at its end.
  void start_delivery(const py::function& deliver) {
    set_delivering(true);
    try {
      py::module_::import("_thread").attr("start_new_thread")(deliver, py::tuple());
    } catch (...) {
      set_delivering(false);
      throw;
    }
  }
  void delivered() { set_delivering(false); }

  // (number, outcome) of the next job that is over; None: the pool is closed and there are no more.
  py::object next() {
    auto one = without_lock([&] {
      std::optional<std::pair<int64_t, Outcome>> first;
      std::unique_lock lock(finished_->mutex);
      finished_->deliverer = std::this_thread::get_id();
      finished_->news.wait(lock, [&] { return !finished_->outcomes.empty() || finished_->closed; });
      if (!finished_->outcomes.empty()) {
        first = std::move(finished_->outcomes.front());
        finished_->outcomes.pop_front();
      }
      return first;
    });
    if (!one) return py::none();
    try {
      return py::make_tuple(one->first, to_python(one->second));
    } catch (const std::exception& error) {  // there is no memory for it here
      one->second.answer = {};
      one->second.attachment.reset();
      one->second.kind = Outcome::Kind::kTooLarge;
      one->second.message = std::string("its answer cannot be taken over: ") + error.what();
    }
    PyErr_Clear();
    return py::make_tuple(one->first, to_python(one->second));
  }

  bool wait_ready(int64_t timeout_ms) {
    return without_lock([&] { return pool_->WaitReady(milliseconds(timeout_ms)); });
  }
  void cancel(int64_t id) {
    without_lock([&] { pool_->Cancel(id); });
  }
  std::vector<int> pids() const {
    return without_lock([&] { return pool_->WorkerPids(); });
  }

  // Ends the workers. `and_wait`: until all outcomes are delivered, unless it is the delivering thread that
  // calls; the collector must not wait, because it runs anywhere, within whatever locks.
  void close(bool and_wait) {
    without_lock([&] {
      pool_->Close();
      const std::lock_guard lock(finished_->mutex);
      finished_->closed = true;
      finished_->news.notify_all();
    });
    const auto is_delivered = [&] {
      return !finished_->delivering || finished_->deliverer == std::this_thread::get_id();
    };
    const auto wait = [&] {
      std::unique_lock lock(finished_->mutex);
      return finished_->news.wait_for(lock, kSignalLook, is_delivered);
    };
    while (and_wait && !without_lock(wait)) {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    }
  }

  py::dict statistics() const {
    using py::literals::operator""_a;
    const PoolStatistics s = pool_->Statistics();
    return py::dict("submitted"_a = s.submitted, "answered"_a = s.answered, "failed"_a = s.failed,
                    "repeated"_a = s.repeated, "workers_started"_a = s.workers_started,
                    "workers_died"_a = s.workers_died, "recycled_by_jobs"_a = s.recycled_by_jobs,
                    "recycled_by_bytes"_a = s.recycled_by_bytes,
                    "recycled_by_idleness"_a = s.recycled_by_idleness, "workers_now"_a = s.workers_now,
                    "waiting_now"_a = s.waiting_now);
  }

 private:
  void set_delivering(bool delivering) {
    const std::lock_guard lock(finished_->mutex);
    finished_->delivering = delivering;
    finished_->news.notify_all();
  }

  std::shared_ptr<Finished> finished_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace

void bind_pool(py::module_& module) {
  py::class_<PythonPool>(module, "Pool")
      .def(py::init<const py::dict&, int, const py::dict&>(), py::arg("spec"), py::arg("workers"),
           py::arg("options"))
      .def("submit", &PythonPool::submit, py::arg("number"), py::arg("request"), py::arg("repeatable"),
           py::arg("wall_ms"), py::arg("patience_ms"), py::arg("descriptors"))
      .def("start_delivery", &PythonPool::start_delivery, py::arg("deliver"))
      .def("delivered", &PythonPool::delivered)
      .def("next", &PythonPool::next)
      .def("wait_ready", &PythonPool::wait_ready, py::arg("timeout_ms"))
      .def("cancel", &PythonPool::cancel, py::arg("id"))
      .def("close", &PythonPool::close, py::arg("and_wait"))
      .def("pids", &PythonPool::pids)
      .def("statistics", &PythonPool::statistics);
}

}  // namespace plimsoll::bindings
