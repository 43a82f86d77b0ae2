#include "feeds.h"

#include <plimsoll/error.h>

#include <string>
#include <string_view>

#include "arrays.h"
#include "dlpack.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

py::object as_array(py::handle object, ElementType type) {
  const py::module_ numpy = py::module_::import("numpy");
  return type == ElementType::kUndefined ? numpy.attr("asarray")(object)
                                         : numpy.attr("asarray")(object, dtype_of(type));
}

std::string type_name(py::handle object) {
  return Py_TYPE(object.ptr())->tp_name;
}

[[noreturn]] void refuse(const ValueInfo& info, const std::string& problem) {
  // InvalidFeed is what ONNX Runtime's callers expect, a RuntimeError, and what ours do.
  const py::object type = py::module_::import("plimsoll.errors").attr("InvalidFeed");
  PyErr_SetString(type.ptr(), ("input '" + info.name + "': " + problem).c_str());
  throw py::error_already_set();
}

[[noreturn]] void refuse_element(const ValueInfo& info, const py::error_already_set& error) {
  refuse(info, "expected " + info.type_text + "; " + error.what());
}

// Numbers take the input's type, as ONNX Runtime reads lists.
Value tensor_of_numbers(py::handle object, const ValueInfo& info) {
  try {
    const bool as_bits = info.type == ElementType::kBFloat16 || info.type > ElementType::kBFloat16;
    if (as_bits) refuse(info, std::string("numpy has no type for ") + info.type_text +
                                  "; give an OrtValue made by ortvalue_from_numpy_with_onnx_type");
    return value_of_array(as_array(object, info.type));
  } catch (py::error_already_set& error) {
    if (error.matches(PyExc_KeyboardInterrupt) || error.matches(PyExc_MemoryError)) throw;
    refuse_element(info, error);
  }
}

Value map_of(py::handle object, const ValueInfo& info) {
  const auto dict = py::reinterpret_borrow<py::dict>(object);
  if (dict.empty()) refuse(info, "expected a dict with entries, found an empty one");
  const bool text = PyUnicode_Check((*dict.begin()).first.ptr()) != 0;
  const ElementType value_type = info.type == ElementType::kUndefined ? ElementType::kFloat : info.type;
  try {
    const py::list keys(dict.attr("keys")()), values(dict.attr("values")());
    return Value::CreateMap(value_of_array(as_array(keys, text ? ElementType::kString : ElementType::kInt64)),
                            value_of_array(as_array(values, value_type)));
  } catch (py::error_already_set& error) {
    refuse_element(info, error);
  }
}

bool is_number_or_text(py::handle object) {
  return PyNumber_Check(object.ptr()) != 0 || PyUnicode_Check(object.ptr()) != 0 || PyBytes_Check(object.ptr()) != 0;
}

Value element_of(py::handle object, const ValueInfo& info) {
  if (is_array(object)) return value_of_array(py::reinterpret_borrow<py::object>(object));
  if (PyDict_Check(object.ptr()) != 0) return map_of(object, info);
  if (py::hasattr(object, "_ortvalue")) return object.attr("_ortvalue").cast<Value>();
  if (py::hasattr(object, "__dlpack__")) return value_of_dlpack_owner(py::reinterpret_borrow<py::object>(object));
  return tensor_of_numbers(object, info);
}

Value sequence_of(py::handle object, const ValueInfo& info) {
  std::vector<Value> values;
  for (const py::handle element : py::reinterpret_borrow<py::iterable>(object))
    values.push_back(element_of(element, info));
  return Value::CreateSequence(values, values.empty() ? info.type : ElementType::kUndefined);
}

bool takes_sequence(const ValueInfo& info) {
  return info.type_text.starts_with("sequence(") || info.type_text.starts_with("optional(sequence(");
}

const ValueInfo* find(const std::vector<ValueInfo>& infos, std::string_view name) {
  for (const ValueInfo& info : infos) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

const char* text_of(py::handle name) {
  const char* text = PyUnicode_Check(name.ptr()) != 0 ? PyUnicode_AsUTF8(name.ptr()) : nullptr;
  if (text != nullptr) return text;
  PyErr_Clear();
  throw py::type_error("names of inputs and outputs: expected str, found " + type_name(name));
}

const ValueInfo& input_info(const Session& session, std::string_view name) {
  if (const ValueInfo* info = find(session.GetInputs(), name)) return *info;
  if (const ValueInfo* info = find(session.GetOverridableInitializers(), name)) return *info;
  std::string names;
  for (const ValueInfo& info : session.GetInputs()) names += " '" + info.name + "'";
  throw Error(ErrorCode::kInvalidArgument,
              "Invalid input name: '" + std::string(name) + "'; the model has" + (names.empty() ? " none" : names));
}

void check_complete(const Session& session, const std::vector<const char*>& given, const py::dict& feed) {
  size_t found = 0;
  for (const char* name : given) found += find(session.GetInputs(), name) != nullptr ? 1 : 0;
  if (found == session.GetInputs().size()) return;
  py::list missing;
  for (const ValueInfo& info : session.GetInputs()) {
    bool has = info.has_default || info.kind == ValueKind::kOptional;
    for (size_t i = 0; i < given.size() && !has; ++i) has = info.name == given[i];
    if (!has) missing.append(info.name);
  }
  if (missing.empty()) return;
  throw Error(ErrorCode::kInvalidArgument,
              "Required inputs (" + std::string(py::str(missing)) + ") are missing from input feed (" +
                  std::string(py::str(py::list(feed))) + ").");
}

}  // namespace

Value value_for_input(py::handle object, const ValueInfo& info) {
  if (is_array(object)) return value_of_array(py::reinterpret_borrow<py::object>(object));
  const bool is_list = PyList_Check(object.ptr()) != 0 || PyTuple_Check(object.ptr()) != 0;
  if (takes_sequence(info) && is_list) return sequence_of(object, info);
  if (is_list) return tensor_of_numbers(object, info);
  if (PyDict_Check(object.ptr()) != 0) return map_of(object, info);
  if (py::hasattr(object, "_ortvalue")) return object.attr("_ortvalue").cast<Value>();
  if (py::hasattr(object, "__dlpack__")) return value_of_dlpack_owner(py::reinterpret_borrow<py::object>(object));
  if (py::hasattr(object, "__array_interface__") || py::hasattr(object, "__array__"))
    return value_of_array(as_array(object, ElementType::kUndefined));
  if (is_number_or_text(object)) return tensor_of_numbers(object, info);
  if (takes_sequence(info) && py::isinstance<py::iterable>(object)) return sequence_of(object, info);
  refuse(info, "expected " + info.type_text + " as an array, a list, an OrtValue or a tensor, found an object of type " +
                   type_name(object));
}

Feed::Feed(const Session& session, py::handle feed) {
  py::object mapping = py::reinterpret_borrow<py::object>(feed);
  if (PyDict_Check(feed.ptr()) == 0) {
    if (PyMapping_Check(feed.ptr()) == 0 || !py::hasattr(feed, "keys"))
      throw py::type_error("input_feed: expected a dict from names to values, found " + type_name(feed));
    mapping = py::module_::import("builtins").attr("dict")(feed);
  }
  const auto dict = py::reinterpret_borrow<py::dict>(mapping);
  names.reserve(dict.size());
  values.reserve(dict.size());
  kept.reserve(dict.size());
  // Conversions may run Python code, and that may change the dict.
  std::vector<py::object> objects;
  objects.reserve(dict.size());
  for (const auto& [name, object] : dict) {
    if (object.is_none()) continue;
    names.push_back(text_of(name));
    kept.push_back(py::reinterpret_borrow<py::object>(name));
    objects.push_back(py::reinterpret_borrow<py::object>(object));
  }
  for (size_t i = 0; i < names.size(); ++i)
    values.push_back(value_for_input(objects[i], input_info(session, names[i])));
  check_complete(session, names, dict);
}

std::vector<const char*> output_names_from(const Session& session, py::handle names, std::vector<py::object>& kept) {
  std::vector<const char*> result;
  if (!names.is_none()) {
    if (PyUnicode_Check(names.ptr()) != 0)
      throw py::type_error("output_names: expected a list of names or None, found the str " +
                           std::string(py::repr(names)));
    for (const py::handle name : py::reinterpret_borrow<py::iterable>(names)) {
      result.push_back(text_of(name));
      kept.push_back(py::reinterpret_borrow<py::object>(name));
    }
  }
  if (result.empty()) {
    for (const ValueInfo& info : session.GetOutputs()) result.push_back(info.name.c_str());
  }
  return result;
}

}  // namespace plimsoll::bindings
