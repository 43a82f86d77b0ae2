#include "onnx/tensor_file.h"

#include "onnx/fields.h"
#include "onnx/tensor_reader.h"

namespace plimsoll {

TensorData read_tensor(std::span<const std::byte> bytes, BumpArena& arena, std::string_view* name) {
  using namespace onnx;
  const LoadOptions options;
  const TensorReader::Named tensor =
      TensorReader(arena, nullptr, options).read({"TensorProto", as_text(bytes)});
  if (name != nullptr) *name = tensor.name;
  return tensor.data;
}

}  // namespace plimsoll
