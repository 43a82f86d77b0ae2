// plimsoll/value.h: what is inside an OrtValue (plimsoll/values.py).
#include <plimsoll/value.h>

#include <plimsoll/error.h>
#include <pybind11/stl.h>

#include <cstring>

#include "arrays.h"
#include "dlpack.h"
#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

std::string type_text(const Value& value) {
  const std::string element = std::string("tensor(") + element_type_name(value.GetElementType()) + ")";
  switch (value.GetKind()) {
    case ValueKind::kSequence:
      if (value.GetCount() > 0) return "seq(" + type_text(value.GetValue(0)) + ")";
      return "seq(" + element + ")";
    case ValueKind::kMap:
      return std::string("map(") + element_type_name(value.GetValue(0).GetElementType()) + "," + element + ")";
    case ValueKind::kOptional:
      return "optional(" + element + ")";
    default:
      return element;
  }
}

void copy_from(Value& to, const Value& from) {
  if (to.GetElementType() != from.GetElementType() || to.GetElementCount() != from.GetElementCount())
    throw Error(ErrorCode::kInvalidArgument, "expected " + to.GetTypeInfo() + ", found " + from.GetTypeInfo());
  if (to.GetElementType() == ElementType::kString)
    throw Error(ErrorCode::kInvalidArgument, "a tensor of strings cannot be overwritten in place");
  if (to.GetByteCount() > 0) std::memmove(to.GetMutableData(), from.GetData(), to.GetByteCount());
}

}  // namespace

void bind_value(py::module_& module) {
  py::class_<Value>(module, "OrtValue")
      .def_static("from_numpy",
                  [](const py::array& array) { return value_of_array(array); }, py::arg("array"))
      .def_static("from_numpy_as",
                  [](const py::array& array, int type) { return value_of_array_as(array, element_type_from(py::int_(type))); },
                  py::arg("array"), py::arg("onnx_element_type"))
      .def_static("from_shape",
                  [](const std::vector<int64_t>& shape, const py::object& type) {
                    const ElementType element = element_type_from(type);
                    if (element == ElementType::kString)
                      throw Error(ErrorCode::kInvalidArgument, "a tensor of strings cannot be made empty");
                    return Value::CreateTensor(element, shape);
                  },
                  py::arg("shape"), py::arg("element_type"))
      .def_static("from_dlpack", &value_of_dlpack, py::arg("capsule"), py::arg("is_bool_tensor"))
      .def_static("from_sequence",
                  [](const std::vector<Value>& values, int type) {
                    return Value::CreateSequence(values, static_cast<ElementType>(type));
                  },
                  py::arg("values"), py::arg("onnx_element_type"))
      .def("numpy", &array_of_value)
      .def("to_python", &python_of_value)
      .def("data_ptr",
           [](const Value& self) {
             return self.GetByteCount() == 0 ? uintptr_t{0} : reinterpret_cast<uintptr_t>(self.GetData());
           })
      .def("shape", [](const Value& self) { return self.GetShape(); })
      .def("data_type", &type_text)
      .def("element_type", [](const Value& self) { return static_cast<int>(self.GetElementType()); })
      .def("tensor_size_in_bytes", &Value::GetByteCount)
      .def("has_value", &Value::HasValue)
      .def("is_tensor", &Value::IsTensor)
      .def("is_tensor_sequence",
           [](const Value& self) { return self.IsSequence() && (self.GetCount() == 0 || self.GetValue(0).IsTensor()); })
      .def("elements",
           [](const Value& self) {
             std::vector<Value> elements;
             for (size_t i = 0; i < self.GetCount(); ++i) elements.push_back(self.GetValue(i));
             return elements;
           })
      .def("update_inplace", &copy_from, py::arg("source"))
      .def("to_dlpack", &dlpack_of_value);
}

}  // namespace plimsoll::bindings
