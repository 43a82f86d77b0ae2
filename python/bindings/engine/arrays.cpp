#include "arrays.h"

#include <plimsoll/error.h>

#include <array>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

using py::detail::array_descriptor_proxy;
using py::detail::array_proxy;
using py::detail::npy_api;

// numpy's numbers of its types, which never change.
enum NumpyType { kLong = 7, kUlong = 8, kObject = 17, kBytes = 18, kUnicode = 19, kVoid = 20, kHalf = 23 };

// By ONNX's number; what numpy has not is an unsigned integer of its size.
constexpr std::array<int8_t, 27> kNumpyTypes = {-1, 11, 2, 1, 4, 3, 5, 7, 17, 0, 23, 12, 6, 8,
                                                14, 15, 4, 2, 2, 2, 2, 2, 1,  2, 2,  2,  1};
constexpr std::array<int16_t, 27> kBits = {0,  32, 8,  8, 16, 16, 32, 64, 128, 8, 16, 64, 32, 64,
                                          64, 128, 16, 8, 8, 8,  8,  4,  4,   4, 8,  2,  2};

ElementType type_of_number(int number) {
  switch (number) {
    case 9:
      return ElementType::kInt64;  // long long
    case 10:
      return ElementType::kUint64;
    case kBytes:
    case kUnicode:
    case kVoid:
      return ElementType::kString;
    default:
      for (size_t i = 1; i < 16; ++i) {
        if (kNumpyTypes[i] == number) return static_cast<ElementType>(i);
      }
      return ElementType::kUndefined;
  }
}

// Types that packages such as ml_dtypes add to numpy.
ElementType type_of_name(const std::string& name) {
  static const std::pair<const char*, ElementType> kNames[] = {
      {"bfloat16", ElementType::kBFloat16},
      {"float8_e4m3fn", ElementType::kFloat8E4M3FN},
      {"float8_e4m3fnuz", ElementType::kFloat8E4M3FNUZ},
      {"float8_e5m2", ElementType::kFloat8E5M2},
      {"float8_e5m2fnuz", ElementType::kFloat8E5M2FNUZ},
      {"float8_e8m0fnu", ElementType::kFloat8E8M0},
      {"float4_e2m1fn", ElementType::kFloat4E2M1},
      {"int4", ElementType::kInt4},
      {"uint4", ElementType::kUint4},
      {"int2", ElementType::kInt2},
      {"uint2", ElementType::kUint2}};
  for (const auto& [known, type] : kNames) {
    if (name == known) return type;
  }
  return ElementType::kUndefined;
}

ElementType type_of_descriptor(PyObject* descriptor) {
  const auto* proxy = array_descriptor_proxy(descriptor);
  const ElementType type = type_of_number(proxy->type_num);
  if (type != ElementType::kUndefined || proxy->type_num < 24) return type;
  return type_of_name(py::str(py::handle(descriptor).attr("name")));
}

bool is_readable_in_place(PyObject* array) {
  const auto* proxy = array_proxy(array);
  constexpr int kWanted = npy_api::NPY_ARRAY_C_CONTIGUOUS_ | npy_api::NPY_ARRAY_ALIGNED_;
  return (proxy->flags & kWanted) == kWanted && array_descriptor_proxy(proxy->descr)->byteorder != '>';
}

std::vector<int64_t> shape_of(const py::array& array) {
  return {array.shape(), array.shape() + array.ndim()};
}

py::object in_order(const py::object& array) {
  const auto* proxy = array_descriptor_proxy(array_proxy(array.ptr())->descr);
  py::object descriptor = py::reinterpret_borrow<py::object>(array_proxy(array.ptr())->descr);
  if (proxy->byteorder == '>') descriptor = descriptor.attr("newbyteorder")("=");
  return py::reinterpret_steal<py::object>(npy_api::get().PyArray_FromAny_(
      array.ptr(), descriptor.release().ptr(), 0, 0,
      npy_api::NPY_ARRAY_C_CONTIGUOUS_ | npy_api::NPY_ARRAY_ALIGNED_ | npy_api::NPY_ARRAY_FORCECAST_, nullptr));
}

// Objects as ONNX Runtime reads them: text as UTF-8, bytes as they are, anything else by its str().
std::string text_of(py::handle item) {
  const py::object text =
      PyUnicode_Check(item.ptr()) || PyBytes_Check(item.ptr()) ? py::reinterpret_borrow<py::object>(item)
                                                               : py::object(py::str(item));
  if (PyBytes_Check(text.ptr())) return {PyBytes_AS_STRING(text.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(text.ptr()))};
  Py_ssize_t size = 0;
  if (const char* characters = PyUnicode_AsUTF8AndSize(text.ptr(), &size))
    return {characters, static_cast<size_t>(size)};
  PyErr_Clear();  // halves of surrogate pairs, as `surrogateescape` leaves them
  return text.attr("encode")("utf-8", "surrogateescape").cast<std::string>();
}

Value strings_of(const py::array& array) {
  const py::array objects = array.attr("astype")("O").attr("ravel")();
  const auto* items = static_cast<PyObject* const*>(objects.data());
  std::vector<std::string> strings;
  strings.reserve(static_cast<size_t>(objects.size()));
  for (py::ssize_t i = 0; i < objects.size(); ++i) strings.push_back(text_of(items[i]));
  return Value::CreateStrings(strings, shape_of(array));
}

Value packed_of(const py::array& array, ElementType type) {
  Value value = Value::CreateTensor(type, shape_of(array));
  const auto* from = static_cast<const uint8_t*>(array.data());
  auto* to = static_cast<uint8_t*>(value.GetMutableData());
  const auto bits = static_cast<size_t>(element_bits(type)), per_byte = 8 / bits;
  for (size_t i = 0; i < static_cast<size_t>(array.size()); ++i)
    to[i / per_byte] = static_cast<uint8_t>(to[i / per_byte] | (from[i] & ((1U << bits) - 1)) << (i % per_byte * bits));
  return value;
}

py::object unpacked_of(const Value& value) {
  const ElementType type = value.GetElementType();
  const std::vector<int64_t>& shape = value.GetShape();
  py::array array(dtype_of(type), std::vector<py::ssize_t>(shape.begin(), shape.end()));
  const auto* from = static_cast<const uint8_t*>(value.GetData());
  auto* to = static_cast<uint8_t*>(array.mutable_data());
  const auto bits = static_cast<unsigned>(element_bits(type)), per_byte = 8 / bits;
  const unsigned mask = (1U << bits) - 1, sign = 1U << (bits - 1);
  const bool is_signed = type == ElementType::kInt4 || type == ElementType::kInt2;
  for (size_t i = 0; i < value.GetElementCount(); ++i) {
    const unsigned element = from[i / per_byte] >> (i % per_byte * bits) & mask;
    to[i] = static_cast<uint8_t>(is_signed && (element & sign) != 0 ? element | ~mask : element);
  }
  return array;
}

py::object text_to_python(std::string_view text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "surrogateescape"));
}

py::object string_array_of(const Value& value) {
  const std::vector<int64_t>& shape = value.GetShape();
  py::array array(dtype_of(ElementType::kString), std::vector<py::ssize_t>(shape.begin(), shape.end()));
  auto* items = static_cast<PyObject**>(array.mutable_data());
  for (size_t i = 0; i < value.GetElementCount(); ++i) {
    PyObject* old = std::exchange(items[i], text_to_python(value.GetString(i)).release().ptr());
    Py_XDECREF(old);
  }
  return array;
}

py::object view_of(const Value& value, py::dtype dtype) {
  const std::vector<int64_t>& shape = value.GetShape();
  const py::capsule owner(std::make_unique<Value>(value).release(),
                          [](void* owned) { const std::unique_ptr<Value> last(static_cast<Value*>(owned)); });
  return py::array(dtype, std::vector<py::ssize_t>(shape.begin(), shape.end()), {}, value.GetData(), owner);
}

py::object dict_of_map(const Value& map) {
  const py::object keys = array_of_value(map.GetValue(0)).attr("tolist")();
  const py::object values = array_of_value(map.GetValue(1)).attr("tolist")();
  return py::module_::import("builtins").attr("dict")(py::module_::import("builtins").attr("zip")(keys, values));
}

}  // namespace

std::shared_ptr<const void> keep(py::object object) {
  return {object.release().ptr(), [](const void* kept) {
            if (_Py_IsFinalizing() != 0) return;  // nobody will look for it any more
            const PyGILState_STATE state = PyGILState_Ensure();
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(kept)));
            PyGILState_Release(state);
          }};
}

Value with_owner(Value view, std::shared_ptr<const void> owner) {
  struct Owned {
    Value view;
    std::shared_ptr<const void> owner;
  };
  const auto owned = std::make_shared<Owned>(Owned{std::move(view), std::move(owner)});
  return Value(std::shared_ptr<Value::Impl>(owned, owned->view.impl().get()));
}

bool is_array(py::handle object) {
  return py::isinstance<py::array>(object);
}

int element_bits(ElementType type) {
  const auto index = static_cast<size_t>(type);
  return index < kBits.size() ? kBits[index] : 0;
}

ElementType element_type_of(const py::dtype& dtype) {
  return type_of_descriptor(dtype.ptr());
}

py::dtype dtype_of(ElementType type) {
  const auto index = static_cast<size_t>(type);
  if (index == 0 || index >= kNumpyTypes.size())
    throw Error(ErrorCode::kInvalidArgument, "there is no numpy type for the element type " +
                                                 std::to_string(index) + " of ONNX");
  return py::reinterpret_steal<py::dtype>(npy_api::get().PyArray_DescrFromType_(kNumpyTypes[index]));
}

ElementType element_type_from(py::handle type) {
  if (PyLong_CheckExact(type.ptr()) != 0) {
    const long number = PyLong_AsLong(type.ptr());
    if (number > 0 && number < static_cast<long>(kBits.size())) return static_cast<ElementType>(number);
    PyErr_Clear();
    throw Error(ErrorCode::kInvalidArgument,
                "element type " + std::string(py::str(type)) + ": expected a number of onnx.TensorProto.DataType");
  }
  const py::dtype dtype = py::dtype::from_args(py::reinterpret_borrow<py::object>(type));
  const ElementType found = element_type_of(dtype);
  if (found == ElementType::kUndefined)
    throw Error(ErrorCode::kInvalidArgument,
                "numpy's type " + std::string(py::str(py::object(dtype))) + " has no counterpart in ONNX");
  return found;
}

Value value_of_array(py::object array) {
  const ElementType type = type_of_descriptor(array_proxy(array.ptr())->descr);
  if (type == ElementType::kString) return strings_of(py::reinterpret_borrow<py::array>(array));
  if (type == ElementType::kUndefined)
    throw Error(ErrorCode::kInvalidArgument, "numpy's type " + std::string(py::str(array.attr("dtype"))) +
                                                 " has no counterpart in ONNX");
  if (!is_readable_in_place(array.ptr())) array = in_order(array);
  if (!array) throw py::error_already_set();
  return value_of_array_as(py::reinterpret_borrow<py::array>(array), type);
}

Value value_of_array_as(const py::array& array, ElementType type) {
  const int bits = element_bits(type);
  if (bits == 0 || type == ElementType::kString || array.itemsize() * 8 != (bits < 8 ? 8 : bits))
    throw Error(ErrorCode::kInvalidArgument,
                "expected elements of " + std::to_string((bits + 7) / 8) + " bytes for " + element_type_name(type) +
                    ", found " + std::to_string(array.itemsize()));
  if (!is_readable_in_place(array.ptr()))
    throw Error(ErrorCode::kInvalidArgument, "expected a contiguous array in this machine's byte order");
  if (bits < 8) return packed_of(array, type);
  return with_owner(Value::CreateTensor(type, shape_of(array), const_cast<void*>(array.data()),
                                        static_cast<size_t>(array.nbytes())),
                    keep(array));
}

py::object array_of_value(const Value& value) {
  const ElementType type = value.GetElementType();
  value.GetShape();  // throws of what is no tensor
  if (type == ElementType::kString) return string_array_of(value);
  if (element_bits(type) < 8) return unpacked_of(value);
  return view_of(value, dtype_of(type));
}

py::object python_of_value(const Value& value) {
  if (!value.HasValue()) return py::none();
  if (value.IsTensor()) return array_of_value(value);
  if (value.IsMap()) return dict_of_map(value);
  py::list list(value.GetCount());
  for (size_t i = 0; i < list.size(); ++i) list[i] = python_of_value(value.GetValue(i));
  return list;
}

}  // namespace plimsoll::bindings
