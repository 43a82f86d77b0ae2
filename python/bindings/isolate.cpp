// plimsoll/isolate.h: Call. Its Pool is in isolate_pool.cpp.
#include "bindings.h"
#include "isolate_values.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSignalLook{50};

// Runs one request to its end. Ctrl-C kills the process and cleans up before it is raised.
py::tuple call(const py::dict& spec, const std::string& request, int64_t result_bytes, int64_t output_bytes) {
  WorkerSpec worker = worker_spec(spec);
  std::optional<py::gil_scoped_release> released(std::in_place);
  Call running = Call::Start(std::move(worker.command), worker.limits, request, {result_bytes, output_bytes});
  std::optional<Called> called;
  while (!(called = running.WaitFor(kSignalLook))) {
    released.reset();
    if (PyErr_CheckSignals() != 0) {
      const py::error_already_set interrupted;
      released.emplace();
      running.Kill();
      while (!running.WaitFor(kSignalLook)) continue;
      released.reset();
      throw py::error_already_set(interrupted);
    }
    released.emplace();
  }
  released.reset();
  return py::make_tuple(to_python(called->outcome), py::bytes(called->output), py::bytes(called->error),
                        called->truncated);
}

}  // namespace

void bind_isolate(py::module_& module) {
  module.def("call", &call, py::arg("spec"), py::arg("request"), py::arg("result_bytes"),
             py::arg("output_bytes"),
             "One request to a worker in a process of its own: ((kind, answer, message, receipt, attempts), "
             "stdout, stderr, truncated).");
  module.def("clean_up_leftovers", &CleanUpLeftovers, py::call_guard<py::gil_scoped_release>(),
             "Removes what killed predecessors left.");
  bind_pool(module);
}

}  // namespace plimsoll::bindings
