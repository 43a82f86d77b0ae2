// plimsoll/isolate.h: Call. Its Pool is in isolate_pool.cpp.
#include "bindings.h"
#include "isolate_values.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

using std::chrono::milliseconds;

// Runs one request to its end. Ctrl-C kills the process and cleans up before it is raised.
py::tuple call(const py::dict& spec, const std::string& request, int64_t result_bytes, int64_t output_bytes,
               const std::vector<int>& descriptors) {
  WorkerSpec worker = worker_spec(spec);
  CallOptions options{result_bytes, output_bytes, attachment(descriptors)};
  Call running = without_lock(
      [&] { return Call::Start(std::move(worker.command), worker.limits, request, std::move(options)); });
  const auto wait = [&] { return without_lock([&] { return running.WaitFor(kSignalLook); }); };
  std::optional<Called> called;
  while (!(called = wait())) {
    if (PyErr_CheckSignals() != 0) {
      const py::error_already_set interrupted;
      running.Kill();
      while (!wait()) continue;
      throw py::error_already_set(interrupted);
    }
  }
  return py::make_tuple(to_python(called->outcome), py::bytes(called->output), py::bytes(called->error),
                        called->truncated);
}

}  // namespace

void bind_isolate(py::module_& module) {
  module.def("call", &call, py::arg("spec"), py::arg("request"), py::arg("result_bytes"),
             py::arg("output_bytes"), py::arg("descriptors"),
             "One request to a worker in a process of its own: ((kind, answer, message, receipt, attempts, "
             "descriptors), "
             "stdout, stderr, truncated).");
  module.def(
      "clean_up_leftovers", [] { without_lock([] { CleanUpLeftovers(); }); },
      "Removes what killed predecessors left.");
  bind_pool(module);
}

}  // namespace plimsoll::bindings
