// plimsoll/run_options.h, with the attributes that ONNX Runtime's RunOptions has.
#include <plimsoll/run_options.h>
#include <pybind11/stl.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

struct PythonRunOptions {
  RunOptions options;
  double timeout = 0;  // seconds from the beginning of each run; 0: none
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
      .def_property(
          "log_severity_level", [](const Options& self) { return self.options.GetRunLogSeverityLevel(); },
          [](Options& self, int level) { self.options.SetRunLogSeverityLevel(level); })
      .def_property(
          "log_verbosity_level", [](const Options& self) { return self.options.GetRunLogVerbosityLevel(); },
          [](Options& self, int level) { self.options.SetRunLogVerbosityLevel(level); })
      .def_property(
          "logid", [](const Options& self) { return self.options.GetRunTag(); },
          [](Options& self, const std::string& tag) { self.options.SetRunTag(tag); })
      .def_property(
          "only_execute_path_to_fetches",
          [](const Options& self) { return self.options.only_execute_path_to_fetches(); },
          [](Options& self, bool on) { self.options.SetOnlyExecutePathToFetches(on); })
      .def_readwrite("timeout", &Options::timeout)
      .def_property(
          "terminate", [](const Options& self) { return self.options.terminate(); },
          [](Options& self, bool on) { on ? self.options.SetTerminate() : self.options.UnsetTerminate(); })
      .def_property(
          "_memory_limit", [](const Options& self) { return self.options.memory_limit_bytes(); },
          [](Options& self, int64_t bytes) { self.options.SetMemoryLimit(bytes); })
      .def_property(
          "_random_seed", [](const Options& self) { return self.options.random_seed(); },
          [](Options& self, uint64_t seed) { self.options.SetRandomSeed(seed); })
      .def(
          "_add_entry",
          [](Options& self, const std::string& key, const std::string& value) {
            self.options.AddConfigEntry(key, value);
          },
          py::arg("key"), py::arg("value"))
      .def("_entries", [](const Options& self) { return self.options.config_entries(); });
}

}  // namespace plimsoll::bindings
