#include "quantize/half_opsets.h"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr int kNever = 1 << 30;
constexpr int kFirstFloat16 = 1, kFirstBFloat16 = 13;  // of all that are not named below

struct FirstOpsets {
  std::string_view op_type;
  int float16, bfloat16;
};

// By name. Most that came late to bfloat16 did so with opset 22.
constexpr FirstOpsets kFirstOpsets[] = {
    {"Acos", 1, 22},
    {"Acosh", 1, 22},
    {"Asin", 1, 22},
    {"Asinh", 1, 22},
    {"Atan", 1, 22},
    {"Atanh", 1, 22},
    {"AveragePool", 1, 22},
    {"BatchNormalization", 1, 14},
    {"Bernoulli", 1, 22},
    {"Celu", kNever, kNever},
    {"Compress", 1, kNever},
    {"ConstantOfShape", 1, 20},
    {"Conv", 1, 22},
    {"ConvTranspose", 1, 22},
    {"Cos", 1, 22},
    {"Cosh", 1, 22},
    {"DeformConv", 1, 22},
    {"DequantizeLinear", 19, 19},
    {"Det", 1, 22},
    {"Dropout", 1, 22},
    {"Einsum", 1, kNever},
    {"Elu", 1, 22},
    {"EyeLike", 1, 22},
    {"GRU", 1, 22},
    {"GlobalAveragePool", 1, 22},
    {"GlobalLpPool", 1, 22},
    {"GlobalMaxPool", 1, 22},
    {"GreaterOrEqual", 1, 16},
    {"GridSample", 1, 22},
    {"HardSigmoid", 1, 22},
    {"HardSwish", 1, 22},
    {"InstanceNormalization", 1, 22},
    {"IsInf", 20, 20},
    {"LSTM", 1, 22},
    {"LeakyRelu", 1, 16},
    {"LessOrEqual", 1, 16},
    {"LpNormalization", 1, 22},
    {"LpPool", 1, 22},
    {"MaxPool", 1, 22},
    {"MaxRoiPool", 1, 22},
    {"MaxUnpool", 1, 22},
    {"MeanVarianceNormalization", kNever, kNever},  // what it stands for has constants of 32 bits
    {"Mish", 1, 22},
    {"Multinomial", 1, 22},
    {"NegativeLogLikelihoodLoss", 1, 22},
    {"OneHot", 1, kNever},
    {"PRelu", 1, 16},
    {"Pow", 1, 15},
    {"QLinearMatMul", 21, 21},
    {"QuantizeLinear", 19, 19},
    {"RNN", 1, 22},
    {"RandomNormal", 1, 22},
    {"RandomNormalLike", 1, 22},
    {"RandomUniform", 1, 22},
    {"RandomUniformLike", 1, 22},
    {"ReverseSequence", 1, kNever},
    {"RoiAlign", 1, 22},
    {"Round", 1, 22},
    {"Scatter", 1, kNever},
    {"Selu", 1, 22},
    {"Shrink", 1, kNever},
    {"Sin", 1, 22},
    {"Sinh", 1, 22},
    {"Softplus", 1, 22},
    {"Softsign", 1, 22},
    {"Tan", 1, 22},
    {"TfIdfVectorizer", kNever, kNever},
    {"ThresholdedRelu", 1, 22},
    {"Trilu", 1, 14},
    {"Unique", 1, kNever},
    {"Upsample", 1, kNever},
    {"Where", 1, 16},
};

}  // namespace

int first_opset_with(std::string_view op_type, ElementType type) {
  const bool is_float16 = type == ElementType::kFloat16;
  const auto* found =
      std::lower_bound(std::begin(kFirstOpsets), std::end(kFirstOpsets), op_type,
                       [](const FirstOpsets& row, std::string_view name) { return row.op_type < name; });
  if (found == std::end(kFirstOpsets) || found->op_type != op_type)
    return is_float16 ? kFirstFloat16 : kFirstBFloat16;
  return is_float16 ? found->float16 : found->bfloat16;
}

}  // namespace plimsoll
