// plimsoll/run_options.h, with the attributes that ONNX Runtime's RunOptions has.
#include <plimsoll/run_options.h>
#include <pybind11/stl.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

struct PythonRunOptions {
  RunOptions options;
  int log_severity_level = 2;
  int log_verbosity_level = 0;
  std::string logid;
  bool only_execute_path_to_fetches = false;
  double timeout = 0;  // seconds from the beginning of each run; 0: none
  std::map<std::string, std::string> entries;
};

}  // namespace

RunOptions run_options_from(py::handle options) {
  if (options.is_none()) return {};
  if (!py::isinstance<PythonRunOptions>(options))
    throw py::type_error(std::string("run_options: expected RunOptions or None, found ") +
                         Py_TYPE(options.ptr())->tp_name);
  const auto& given = options.cast<const PythonRunOptions&>();
  RunOptions result = given.options;
  if (given.timeout > 0)
    result.SetDeadline(std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           std::chrono::duration<double>(std::min(given.timeout, 1e9))));
  return result;
}

void bind_run_options(py::module_& module) {
  using Options = PythonRunOptions;
  py::class_<Options>(module, "RunOptions")
      .def(py::init<>())
      .def_readwrite("log_severity_level", &Options::log_severity_level)
      .def_readwrite("log_verbosity_level", &Options::log_verbosity_level)
      .def_readwrite("logid", &Options::logid)
      .def_readwrite("only_execute_path_to_fetches", &Options::only_execute_path_to_fetches)
      .def_readwrite("timeout", &Options::timeout)
      .def_property(
          "terminate", [](const Options& self) { return self.options.terminate(); },
          [](Options& self, bool on) { on ? self.options.SetTerminate() : self.options.UnsetTerminate(); })
      .def_property(
          "_memory_limit", [](const Options& self) { return self.options.memory_limit_bytes(); },
          [](Options& self, int64_t bytes) { self.options.SetMemoryLimit(bytes); })
      .def_readwrite("_entries", &Options::entries);
}

}  // namespace plimsoll::bindings
