// plimsoll/env.h and plimsoll/allocator.h: what all sessions of the process share.
#include <plimsoll/env.h>

#include <pybind11/stl.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

ArenaCfg arena_from(const std::map<std::string, int64_t>& settings) {
  std::map<std::string, std::string> text;
  for (const auto& [name, value] : settings) {
    if (value >= 0 && !(name == "max_mem" && value == 0)) text[name] = std::to_string(value);
  }
  return ArenaCfg(text);
}

void register_allocator(const std::string& provider, const std::string& name, int type, int device, int memory,
                        const std::map<std::string, std::string>& options,
                        const std::map<std::string, int64_t>& arena) {
  const MemoryInfo info(name, static_cast<AllocatorType>(type), device, static_cast<MemoryType>(memory));
  environment().CreateAndRegisterAllocatorV2(provider, info, options, arena_from(arena));
}

}  // namespace

Env& environment() {
  static Env env;
  return env;
}

void bind_env(py::module_& module) {
  module.def("instruction_set", &Env::GetInstructionSet);
  module.def("register_allocator", &register_allocator, py::arg("provider"), py::arg("name"), py::arg("type"),
             py::arg("device_id"), py::arg("memory_type"), py::arg("options"), py::arg("arena"));
  module.def("unregister_allocator", [] {
    environment().UnregisterAllocator(MemoryInfo("Cpu", AllocatorType::kArena));
  });
  module.def("shared_allocator_stats", []() -> py::object {
    const auto allocator = environment().GetSharedAllocator(MemoryInfo("Cpu", AllocatorType::kArena));
    return allocator ? py::cast(allocator->GetStats().ToMap()) : py::none();
  });
}

}  // namespace plimsoll::bindings
