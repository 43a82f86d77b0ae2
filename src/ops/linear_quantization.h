// What QuantizeLinear and DequantizeLinear, of ONNX and com.microsoft, share: scales and zero points for a
// whole tensor, along an axis, or in blocks along an axis.
#pragma once

#include "graph/op_def.h"
#include "tensor/small_types.h"

namespace plimsoll {

struct QuantizationAttrs {
  int64_t axis = 1;
  int64_t block = 0;                             // elements of an axis that share a scale; 0: no blocks
  ElementType output = ElementType::kUndefined;  // undefined: by the zero point, or the scale
  ElementType precision = ElementType::kUndefined;
  SmallFloatRules rules;
};

inline constexpr size_t kQuantizeX = 0, kQuantizeScale = 1, kQuantizeZero = 2;

// An attribute that names an element type; undefined if it is absent or 0.
ElementType read_type(AttrContext& c, std::string_view name, TypeSet allowed);
void read_block(AttrContext& c, QuantizationAttrs& attrs);

// Scale and zero point fit X and each other; output 0 is like X.
void infer_quantization(InferContext& c, ElementType output);

// A run of neighbouring elements and their scales: one for all (stride 0) or one each (stride 1).
struct QuantizedRun {
  int64_t start = 0, count = 0, scale = 0, scale_stride = 0;
};

// Runs cover X once.
class QuantizedRuns {
 public:
  explicit QuantizedRuns(const RunContext& c);
  int64_t count() const { return runs_; }
  QuantizedRun at(int64_t i) const;

 private:
  int64_t runs_ = 0, length_ = 0, elements_ = 0;
  int64_t axis_ = 1, inner_ = 1, block_ = 0, blocks_ = 1;
  enum class Kind : uint8_t { kWhole, kAxis, kLastAxis, kBlocks, kLastBlocks } kind_ = Kind::kWhole;
};

// Elements [start, start + count), of any type that is quantized to or a scale, as floats; int32 rounds.
void read_as_floats(const TensorView& view, int64_t start, int64_t count, float* to);
inline float read_as_float(const TensorView& view, int64_t i) {
  float value;
  read_as_floats(view, i, 1, &value);
  return value;
}

void run_quantize(const RunContext& c);
void run_dequantize(const RunContext& c);

}  // namespace plimsoll
