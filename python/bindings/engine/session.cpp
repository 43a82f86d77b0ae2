// plimsoll/session.h.
#include <plimsoll/session.h>
#include <pybind11/stl.h>

#include "arrays.h"
#include "engine.h"
#include "feeds.h"
#include "io_binding.h"
#include "unlocked.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

[[noreturn]] void refuse_state(const char* problem) {
  const py::object type = py::module_::import("plimsoll.errors").attr("NoModel");
  PyErr_SetString(type.ptr(), problem);
  throw py::error_already_set();
}

// Everything one run needs, made under the lock; `finish` may be another thread's.
class PendingRun {
 public:
  PendingRun(SessionHandle& handle, const py::object& output_names, const py::object& input_feed,
             const py::object& run_options)
      : open_(handle.use()),
        options_(run_options_from(run_options)),
        feed_(*open_->session, input_feed),
        outputs_(output_names_from(*open_->session, output_names, feed_.kept)) {}

  std::vector<Value> finish(SessionHandle& handle) {
    const RunCount count(handle);
    std::vector<Value> results;
    unlocked_run(options_, [&](const RunOptions& options) {
      results = open_->session->Run(options, feed_.names.data(), feed_.values.data(), feed_.values.size(),
                                    outputs_.data(), outputs_.size());
    });
    return results;
  }

  // The run stops when the flag is set, unless it is the main thread's, which looks for signals.
  void stop_by(const std::shared_ptr<std::atomic<bool>>& stop) {
    options_.SetInterruptCheck([stop] { return stop->load(std::memory_order_relaxed); });
  }

 private:
  std::shared_ptr<OpenSession> open_;
  RunOptions options_;
  Feed feed_;
  std::vector<const char*> outputs_;
};

py::list to_python(const std::vector<Value>& values) {
  py::list list(values.size());
  for (size_t i = 0; i < values.size(); ++i)
    PyList_SET_ITEM(list.ptr(), static_cast<py::ssize_t>(i), python_of_value(values[i]).release().ptr());
  return list;
}

py::list run(SessionHandle& self, const py::object& output_names, const py::object& input_feed,
             const py::object& run_options) {
  return to_python(PendingRun(self, output_names, input_feed, run_options).finish(self));
}

// A run that another thread finishes: the feed is read and checked now.
class StartedRun {
 public:
  StartedRun(py::object session, const py::object& output_names, const py::object& input_feed,
             const py::object& run_options)
      : session_(std::move(session)),
        run_(session_.cast<SessionHandle&>(), output_names, input_feed, run_options) {
    run_.stop_by(stop_);
  }
  std::vector<Value> finish() { return run_.finish(session_.cast<SessionHandle&>()); }
  void cancel() { *stop_ = true; }

 private:
  py::object session_;  // a SessionHandle
  PendingRun run_;
  std::shared_ptr<std::atomic<bool>> stop_ = std::make_shared<std::atomic<bool>>(false);
};

// What a run costs without Python, for bench/python_overhead.py.
double seconds_per_run(SessionHandle& self, const py::object& input_feed, int count) {
  const std::shared_ptr<OpenSession> open = self.use();
  const RunCount running(self);
  Feed feed(*open->session, input_feed);
  const std::vector<const char*> outputs = output_names_from(*open->session, py::none(), feed.kept);
  std::chrono::duration<double> seconds{};
  unlocked([&] {
    const RunOptions options;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i)
      open->session->Run(options, feed.names.data(), feed.values.data(), feed.values.size(), outputs.data(),
                         outputs.size());
    seconds = std::chrono::steady_clock::now() - start;
  });
  return seconds.count() / count;
}

void run_binding(SessionHandle& self, PythonIoBinding& binding, const py::object& run_options) {
  const std::shared_ptr<OpenSession> open = self.use();
  const PythonIoBinding::Use use(binding);
  const RunCount count(self);
  unlocked_run(run_options_from(run_options),
               [&](const RunOptions& options) { open->session->Run(options, binding.binding); });
}

// (name, kind, type, text, dims, symbols, ranked), from which plimsoll/metadata.py makes a NodeArg.
py::list infos_to_python(const std::vector<ValueInfo>& infos) {
  py::list list;
  for (const ValueInfo& info : infos)
    list.append(
        py::make_tuple(info.name, static_cast<int>(info.type), info.type_text, info.dims, info.symbols));
  return list;
}

}  // namespace

SessionHandle::SessionHandle(const py::object& model, const py::dict& options)
    : open_(std::make_shared<OpenSession>()), generation_(fork_generation()) {
  open_->kept = py::make_tuple(model, options);
  open_->options = session_options_from(options);
  open_->ops = std::make_unique<PythonOps>(options["python_ops"]);
  if (open_->ops->table()->count > 0) open_->options.custom_ops.push_back(open_->ops->table());
  const SessionOptions& native = open_->options;
  const bool is_path = py::isinstance<py::str>(model);
  const std::string path = is_path ? model.cast<std::string>() : "";
  const std::string_view bytes = is_path ? std::string_view() : model.cast<std::string_view>();
  unlocked([&] {
    open_->session = is_path ? std::make_unique<Session>(environment(), path, native)
                             : std::make_unique<Session>(environment(), bytes.data(), bytes.size(), native);
  });
}

SessionHandle::SessionHandle(std::shared_ptr<OpenSession> open)
    : open_(std::move(open)), generation_(fork_generation()) {}

std::shared_ptr<OpenSession> SessionHandle::use() {
  if (open_ == nullptr) refuse_state("the session is closed");
  if (generation_ != fork_generation()) {
    if (runs_ != 0)
      refuse_state("the session was running when this process was forked; open another one here");
    generation_ = fork_generation();
  }
  return open_;
}

void bind_session(py::module_& module) {
  const auto no_options = py::arg_v("run_options", py::none(), "None");
  py::class_<StartedRun>(module, "StartedRun")
      .def("finish", [](StartedRun& self) { return to_python(self.finish()); })
      .def("finish_values", &StartedRun::finish)
      .def("cancel", &StartedRun::cancel);
  py::class_<SessionHandle>(module, "Session")
      .def(py::init<const py::object&, const py::dict&>(), py::arg("model"), py::arg("options"))
      .def("run", &run, py::arg("output_names"), py::arg("input_feed"), no_options)
      .def(
          "_start",
          [](const py::object& self, const py::object& output_names, const py::object& input_feed,
             const py::object& run_options) {
            return std::make_unique<StartedRun>(self, output_names, input_feed, run_options);
          },
          py::arg("output_names"), py::arg("input_feed"), py::arg("run_options"))
      .def("_seconds_per_run", &seconds_per_run, py::arg("input_feed"), py::arg("count"))
      .def("_run_binding", &run_binding, py::arg("binding"), py::arg("run_options"))
      .def("_infos",
           [](SessionHandle& self) {
             const Session& session = *self.use()->session;
             return py::make_tuple(infos_to_python(session.GetInputs()),
                                   infos_to_python(session.GetOutputs()),
                                   infos_to_python(session.GetOverridableInitializers()));
           })
      .def("_warnings", [](SessionHandle& self) { return self.use()->session->GetWarnings(); })
      .def(
          "_prepare",
          [](SessionHandle& self, const Shapes& shapes) {
            const std::shared_ptr<OpenSession> open = self.use();
            const RunCount count(self);
            Plan plan;
            unlocked([&] { plan = open->session->Prepare(shapes); });
            return plan;
          },
          py::arg("shapes"))
      .def(
          "_plan",
          [](SessionHandle& self, const Shapes& shapes) {
            const std::shared_ptr<OpenSession> open = self.use();
            const RunCount count(self);
            Plan plan;
            unlocked([&] { plan = open->session->MakePlan(shapes); });
            return plan;
          },
          py::arg("shapes"))
      .def("_metadata",
           [](SessionHandle& self) {
             const ModelMetadata& metadata = self.use()->session->GetModelMetadata();
             py::dict result;
             result["producer_name"] = metadata.producer_name;
             result["graph_name"] = metadata.graph_name;
             result["domain"] = metadata.domain;
             result["description"] = metadata.description;
             result["graph_description"] = metadata.graph_description;
             result["version"] = metadata.version;
             result["custom_metadata_map"] = metadata.custom_metadata_map;
             return result;
           })
      .def("_arena_stats", [](SessionHandle& self) { return self.use()->session->GetArenaStats().ToMap(); })
      .def("_end_profiling",
           [](SessionHandle& self) {
             const std::shared_ptr<OpenSession> open = self.use();
             std::string file;
             unlocked([&] { file = open->session->EndProfiling(); });
             return file;
           })
      .def("_profiling_start_time_ns",
           [](SessionHandle& self) { return self.use()->session->GetProfilingStartTimeNs(); })
      .def("_memory_report", [](SessionHandle& self) { return self.use()->session->GetMemoryReport(); })
      .def("_release_memory",
           [](SessionHandle& self) {
             const std::shared_ptr<OpenSession> open = self.use();
             unlocked([&] { open->session->ReleaseMemory(); });
           })
      .def("_close", &SessionHandle::close);
}

}  // namespace plimsoll::bindings
