#include "dlpack.h"

#include <plimsoll/error.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "arrays.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

// The layout that the protocol fixes.
struct DlDevice {
  int32_t type;
  int32_t id;
};
struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t rank;
  DlType type;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*release)(DlManaged*);
};

constexpr int32_t kCpu = 1;
enum DlCode : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBFloat = 4, kComplex = 5, kBool = 6 };

constexpr struct {
  uint8_t code, bits;
  ElementType type;
} kTypes[] = {{kFloat, 32, ElementType::kFloat},     {kFloat, 64, ElementType::kDouble},
              {kFloat, 16, ElementType::kFloat16},   {kBFloat, 16, ElementType::kBFloat16},
              {kInt, 8, ElementType::kInt8},         {kInt, 16, ElementType::kInt16},
              {kInt, 32, ElementType::kInt32},       {kInt, 64, ElementType::kInt64},
              {kUint, 8, ElementType::kUint8},       {kUint, 16, ElementType::kUint16},
              {kUint, 32, ElementType::kUint32},     {kUint, 64, ElementType::kUint64},
              {kComplex, 64, ElementType::kComplex64}, {kComplex, 128, ElementType::kComplex128},
              {kBool, 8, ElementType::kBool}};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorCode::kInvalidArgument, "DLPack: " + what);
}

ElementType element_type(const DlType& type, bool is_bool) {
  for (const auto& known : kTypes) {
    if (known.code != type.code || known.bits != type.bits || type.lanes != 1) continue;
    return is_bool && known.type == ElementType::kUint8 ? ElementType::kBool : known.type;
  }
  refuse("elements of code " + std::to_string(type.code) + " with " + std::to_string(type.bits) + " bits and " +
         std::to_string(type.lanes) + " lanes have no counterpart in ONNX");
}

// Older consumers know no bool: it travels as uint8, as ONNX Runtime sends it.
DlType dl_type(ElementType type) {
  if (type == ElementType::kBool) return {kUint, 8, 1};
  for (const auto& known : kTypes) {
    if (known.type == type) return {known.code, known.bits, 1};
  }
  refuse(std::string("a tensor of ") + element_type_name(type) + " cannot be exported");
}

bool is_contiguous(const DlTensor& tensor) {
  if (tensor.strides == nullptr) return true;
  int64_t expected = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    if (tensor.shape[d] == 0) return true;
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

Value strided_copy(const DlTensor& tensor, const std::byte* data, ElementType type, std::vector<int64_t> shape) {
  Value value = Value::CreateTensor(type, std::move(shape));
  auto* to = static_cast<std::byte*>(value.GetMutableData());
  const size_t bytes = static_cast<size_t>(tensor.type.bits) / 8;
  std::vector<int64_t> at(static_cast<size_t>(tensor.rank));
  for (size_t i = 0; i < value.GetElementCount(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) offset += at[d] * tensor.strides[d];
    std::memcpy(to + i * bytes, data + offset * static_cast<int64_t>(bytes), bytes);
    for (size_t d = at.size(); d-- > 0 && ++at[d] == tensor.shape[d];) at[d] = 0;
  }
  return value;
}

struct Export {
  DlManaged managed{};
  Value value;
  std::vector<int64_t> shape;
};

}  // namespace

Value value_of_dlpack(const py::object& capsule, bool is_bool) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor") == 0)
    refuse("expected a capsule 'dltensor' that was not used before, found " + std::string(py::repr(capsule)));
  auto* managed = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  const DlTensor& tensor = managed->tensor;
  if (tensor.device.type != kCpu)
    refuse("expected a tensor in the CPU's memory, found device " + std::to_string(tensor.device.type) +
           "; move it first, for example by .cpu()");
  const ElementType type = element_type(tensor.type, is_bool);
  std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.rank);
  auto* data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  if (!is_contiguous(tensor)) return strided_copy(tensor, data, type, std::move(shape));

  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  const std::shared_ptr<const void> owner(managed, [](DlManaged* last) {
    if (last->release == nullptr || _Py_IsFinalizing() != 0) return;
    const PyGILState_STATE state = PyGILState_Ensure();
    last->release(last);
    PyGILState_Release(state);
  });
  size_t bytes = static_cast<size_t>(tensor.type.bits) / 8;
  for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
  return with_owner(Value::CreateTensor(type, std::move(shape), data, bytes), owner);
}

Value value_of_dlpack_owner(py::object owner) {
  if (py::hasattr(owner, "detach")) owner = owner.attr("detach")();
  bool is_bool = false;
  if (py::hasattr(owner, "dtype")) {
    const std::string name = py::str(owner.attr("dtype"));
    is_bool = name == "bool" || name == "torch.bool";
  }
  return value_of_dlpack(owner.attr("__dlpack__")(), is_bool);
}

py::object dlpack_of_value(const Value& value) {
  auto exported = std::make_unique<Export>();
  exported->value = value;
  exported->shape = value.GetShape();
  DlTensor& tensor = exported->managed.tensor;
  tensor.data = exported->value.GetMutableData();
  tensor.device = {kCpu, 0};
  tensor.rank = static_cast<int32_t>(exported->shape.size());
  tensor.type = dl_type(value.GetElementType());
  tensor.shape = exported->shape.data();
  exported->managed.context = exported.get();
  exported->managed.release = [](DlManaged* last) {
    const std::unique_ptr<Export> owned(static_cast<Export*>(last->context));
  };
  PyObject* capsule = PyCapsule_New(&exported->managed, "dltensor", [](PyObject* unused) {
    if (PyCapsule_IsValid(unused, "dltensor") == 0) return;  // a consumer has it
    auto* managed = static_cast<DlManaged*>(PyCapsule_GetPointer(unused, "dltensor"));
    managed->release(managed);
  });
  if (capsule == nullptr) throw py::error_already_set();
  exported.release();
  return py::reinterpret_steal<py::object>(capsule);
}

}  // namespace plimsoll::bindings
