// plimsoll/session_options.h. Python's SessionOptions (plimsoll/options.py) crosses as a dict.
#include <plimsoll/session_options.h>

#include <pybind11/stl.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

std::span<const std::byte> bytes_of(const py::buffer& buffer) {
  const py::buffer_info info = buffer.request();
  return {static_cast<const std::byte*>(info.ptr), static_cast<size_t>(info.size * info.itemsize)};
}

void add_dimensions(const py::handle& dimensions, SessionOptions& to) {
  for (const auto& [by_denotation, name, size] :
       dimensions.cast<std::vector<std::tuple<bool, std::string, int64_t>>>()) {
    if (by_denotation)
      to.AddFreeDimensionOverride(name, size);
    else
      to.AddFreeDimensionOverrideByName(name, size);
  }
}

}  // namespace

SessionOptions session_options_from(const py::dict& options) {
  SessionOptions result;
  const auto read = [&](const char* name, auto& to) {
    if (options.contains(name)) to = options[name].cast<std::remove_reference_t<decltype(to)>>();
  };
  read("intra_op_threads", result.intra_op_threads);
  read("inter_op_threads", result.inter_op_threads);
  read("memory_limit_bytes", result.memory_limit_bytes);
  read("max_concurrent_runs", result.max_concurrent_runs);
  read("keep_arena", result.keep_arena);
  read("mem_reuse", result.mem_reuse);
  read("strict", result.strict);
  read("random_seed", result.random_seed);
  read("custom_ops_libraries", result.custom_ops_libraries);
  read("enable_profiling", result.enable_profiling);
  read("profile_file_prefix", result.profile_file_prefix);
  read("optimized_model_path", result.optimized_model_path);
  read("deterministic_compute", result.deterministic_compute);
  read("bfloat16_products", result.bfloat16_products);
  read("log_id", result.log_id);
  result.placer = options["mem_pattern"].cast<bool>() ? Placer::kGreedy : Placer::kNaive;
  result.optimization_level = static_cast<GraphOptimizationLevel>(options["optimization_level"].cast<int>());
  result.execution_mode = static_cast<ExecutionMode>(options["execution_mode"].cast<int>());
  result.execution_order = static_cast<ExecutionOrder>(options["execution_order"].cast<int>());
  add_dimensions(options["dimensions"], result);
  for (const auto& [name, value] : options["initializers"].cast<std::map<std::string, Value>>())
    result.AddInitializer(name, value);
  read("external_initializers", result.external_initializers);
  for (const auto& [name, contents] : options["files"].cast<py::dict>())
    result.external_files[name.cast<std::string>()] = bytes_of(contents.cast<py::buffer>());
  for (const auto& [name, settings] :
       options["providers"].cast<std::vector<std::pair<std::string, std::map<std::string, std::string>>>>())
    result.AppendExecutionProvider(name, settings);
  for (const auto& [key, value] : options["entries"].cast<std::map<std::string, std::string>>())
    result.AddConfigEntry(key, value);
  return result;
}

void bind_session_options(py::module_& module) {
  // Throws what opening a session would, when the entry is added.
  module.def(
      "check_config_entry",
      [](const std::string& key, const std::string& value) { SessionOptions().AddConfigEntry(key, value); },
      py::arg("key"), py::arg("value"));
  module.def(
      "check_provider",
      [](const std::string& name, const std::map<std::string, std::string>& settings) {
        SessionOptions().AppendExecutionProvider(name, settings);
      },
      py::arg("name"), py::arg("settings"));
  module.def("parse_memory_limit", &ParseMemoryLimit, py::arg("text"));
}

}  // namespace plimsoll::bindings
