#include "onnx/try_run.h"

#include <chrono>
#include <cstring>

#include "plimsoll/session.h"

namespace plimsoll {
namespace {

constexpr int64_t kLimitBytes = 64 << 20;
constexpr int64_t kMostElements = 1 << 20;
constexpr int64_t kAnySize = 2;  // of a dimension that has no number
constexpr auto kDeadline = std::chrono::seconds(2);

// Zeros and ones in the element's last byte are small numbers in every type, and legal bools.
void fill(Value& value) {
  auto* bytes = static_cast<unsigned char*>(value.GetMutableData());
  const size_t count = value.GetElementCount();
  if (count == 0) return;
  const size_t width = value.GetByteCount() / count;
  for (size_t i = 0; i < count && width > 0; ++i) {
    if (value.GetElementType() == ElementType::kFloat && width == sizeof(float)) {
      const float number = static_cast<float>(static_cast<int>(i % 7) - 3) * 0.5f;
      std::memcpy(bytes + i * width, &number, sizeof number);
    } else {
      bytes[i * width] = i % 2;
    }
  }
}

Value make_tensor(const ValueInfo& info) {
  std::vector<int64_t> shape = info.ranked ? info.dims : std::vector<int64_t>{kAnySize, kAnySize};
  int64_t elements = 1;
  for (int64_t& dim : shape) {
    if (dim < 0) dim = kAnySize;
    if (dim > kMostElements) throw Error(ErrorCode::kInvalidArgument, "input too large to try");
    elements *= dim;
    if (elements > kMostElements) throw Error(ErrorCode::kInvalidArgument, "input too large to try");
  }
  if (info.type == ElementType::kString)
    return Value::CreateStrings(std::vector<std::string>(static_cast<size_t>(elements), "text"), shape);
  Value value = Value::CreateTensor(info.type, shape);
  fill(value);
  return value;
}

// Of lists two elements; an optional holds nothing. A type that is stranger is refused by the run.
Value make_input(const ValueInfo& info) {
  switch (info.kind) {
    case ValueKind::kSequence:
      return Value::CreateSequence({make_tensor(info), make_tensor(info)});
    case ValueKind::kOptional:
      return Value::CreateNone(info.type);
    default:
      return make_tensor(info);
  }
}

}  // namespace

void try_run(const std::string& model) {
  SessionOptions options;
  options.SetMemoryLimit(kLimitBytes).SetIntraOpNumThreads(1);
  const Env env;
  Session session(env, model.data(), model.size(), options);
  std::vector<std::string> input_names, output_names;
  std::vector<Value> inputs;
  for (const ValueInfo& info : session.GetInputs()) {
    if (info.has_default) continue;
    input_names.push_back(info.name);
    inputs.push_back(make_input(info));
  }
  for (const ValueInfo& info : session.GetOutputs()) output_names.push_back(info.name);
  RunOptions run;
  run.SetDeadline(std::chrono::steady_clock::now() + kDeadline);
  session.Run(run, input_names, inputs, output_names);
}

}  // namespace plimsoll
