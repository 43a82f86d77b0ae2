// CheckpointState of plimsoll/training.h, as plimsoll.training.api has it: arrays and properties by name.
#include <plimsoll/training.h>
#include <pybind11/stl.h>

#include "arrays.h"
#include "engine.h"
#include "unlocked.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

using Arrays = std::map<std::string, py::object>;
using Properties = std::map<std::string, Property>;

std::pair<py::dict, Properties> load_checkpoint(const std::string& path) {
  CheckpointState state;
  unlocked([&] { state = CheckpointState::LoadCheckpoint(path); });
  py::dict tensors;
  for (const std::string& name : state.TensorNames())
    tensors[py::str(name)] = array_of_value(state.GetParameter(name));
  Properties properties;
  for (const std::string& name : state.PropertyNames()) properties[name] = state.GetProperty(name);
  return {tensors, properties};
}

void save_checkpoint(const std::string& path, const Arrays& arrays, const Properties& properties) {
  CheckpointState state;
  for (const auto& [name, array] : arrays) state.UpdateParameter(name, value_of_array(array));
  for (const auto& [name, value] : properties) state.AddProperty(name, value);
  unlocked([&] { CheckpointState::SaveCheckpoint(state, path, true); });
}

}  // namespace

void bind_checkpoint(py::module_& module) {
  module.def("load_checkpoint", &load_checkpoint, py::arg("path"));
  module.def("save_checkpoint", &save_checkpoint, py::arg("path"), py::arg("arrays"), py::arg("properties"));
}

}  // namespace plimsoll::bindings
