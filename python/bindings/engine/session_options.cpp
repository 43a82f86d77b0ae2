// plimsoll/session_options.h. Python's SessionOptions (plimsoll/options.py) crosses as a dict.
#include <plimsoll/session_options.h>
#include <pybind11/stl.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {

SessionOptions session_options_from(const py::dict& options) {
  SessionOptions result;
  const auto read = [&](const char* name, auto& to) {
    if (options.contains(name)) to = options[name].cast<std::remove_reference_t<decltype(to)>>();
  };
  read("intra_op_threads", result.intra_op_threads);
  read("memory_limit_bytes", result.memory_limit_bytes);
  read("max_concurrent_runs", result.max_concurrent_runs);
  read("keep_arena", result.keep_arena);
  read("strict", result.strict);
  read("read_model_into_memory", result.read_model_into_memory);
  read("random_seed", result.random_seed);
  read("custom_ops_libraries", result.custom_ops_libraries);
  read("overridden_initializers", result.overridden_initializers);
  read("plan_cache_bytes", result.plan_cache_bytes);
  int level = 3;
  read("optimization_level", level);
  result.optimization_level = static_cast<GraphOptimizationLevel>(level);
  bool pattern = true;
  read("enable_mem_pattern", pattern);
  result.placer = pattern ? Placer::kGreedy : Placer::kNaive;
  return result;
}

}  // namespace plimsoll::bindings
