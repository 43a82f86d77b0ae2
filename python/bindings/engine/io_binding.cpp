// plimsoll/io_binding.h.
#include "io_binding.h"

#include <pybind11/stl.h>

#include "arrays.h"
#include "feeds.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

// Memory that the caller keeps.
Value value_at(py::handle element_type, const std::vector<int64_t>& shape, uintptr_t address) {
  const ElementType type = element_type_from(element_type);
  if (type == ElementType::kString)
    throw Error(ErrorCode::kInvalidArgument, "strings cannot be bound by their address");
  if (address == 0) throw Error(ErrorCode::kInvalidArgument, "buffer_ptr: expected an address, found 0");
  int64_t bits = element_bits(type);
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bits, size, &bits))
      throw Error(ErrorCode::kInvalidArgument,
                  "shape: expected sizes that fit, found " + std::string(py::str(py::cast(shape))));
  }
  return Value::CreateTensor(type, shape, reinterpret_cast<void*>(address),
                             static_cast<size_t>(bits / 8 + (bits % 8 != 0)));
}

const ValueInfo* find(const std::vector<ValueInfo>& infos, const std::string& name) {
  for (const ValueInfo& info : infos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

void bind_object(PythonIoBinding& self, const std::string& name, const py::object& object) {
  const ValueInfo* info = find(self.open->session->GetInputs(), name);
  const Value value = info != nullptr ? value_for_input(object, *info) : Value();
  const PythonIoBinding::Use use(self);
  self.binding.BindInput(name, value);  // refuses unknown names
}

}  // namespace

PythonIoBinding::Use::Use(PythonIoBinding& binding) : used_(binding.used) {
  if (used_.exchange(true)) throw Error(ErrorCode::kBusy, "the binding is in use by another thread's run");
}

void bind_io_binding(py::module_& module) {
  using Binding = PythonIoBinding;
  using Use = PythonIoBinding::Use;
  py::class_<Binding>(module, "SessionIOBinding", "What is inside an IOBinding: plimsoll/binding.py.")
      .def(py::init<SessionHandle&>(), py::arg("session"))
      .def("bind_input", &bind_object, py::arg("name"), py::arg("value"))
      .def(
          "bind_ortvalue_input",
          [](Binding& self, const std::string& name, const Value& value) {
            const Use use(self);
            self.binding.BindInput(name, value);
          },
          py::arg("name"), py::arg("value"))
      .def(
          "bind_input_at",
          [](Binding& self, const std::string& name, const py::object& type,
             const std::vector<int64_t>& shape, uintptr_t address) {
            const Value value = value_at(type, shape, address);
            const Use use(self);
            self.binding.BindInput(name, value);
          },
          py::arg("name"), py::arg("element_type"), py::arg("shape"), py::arg("address"))
      .def(
          "bind_output",
          [](Binding& self, const std::string& name) {
            const Use use(self);
            self.binding.BindOutput(name);
          },
          py::arg("name"))
      .def(
          "bind_ortvalue_output",
          [](Binding& self, const std::string& name, const Value& value) {
            const Use use(self);
            self.binding.BindOutput(name, value);
          },
          py::arg("name"), py::arg("value"))
      .def(
          "bind_output_at",
          [](Binding& self, const std::string& name, const py::object& type,
             const std::vector<int64_t>& shape, uintptr_t address) {
            const Value value = value_at(type, shape, address);
            const Use use(self);
            self.binding.BindOutput(name, value);
          },
          py::arg("name"), py::arg("element_type"), py::arg("shape"), py::arg("address"))
      .def("clear_binding_inputs",
           [](Binding& self) {
             const Use use(self);
             self.binding.ClearBoundInputs();
           })
      .def("clear_binding_outputs",
           [](Binding& self) {
             const Use use(self);
             self.binding.ClearBoundOutputs();
           })
      .def("get_outputs",
           [](Binding& self) {
             const Use use(self);
             return self.binding.GetOutputValues();
           })
      .def("output_names", [](Binding& self) {
        const Use use(self);
        return self.binding.GetOutputNames();
      });
}

}  // namespace plimsoll::bindings
