// Functions of elements, softmax, normalization, reductions, pooling, resizing, copies and optimizer steps.
#include "kernels/arg_extreme.h"
#include "kernels/binary.h"
#include "kernels/byte_table.h"
#include "kernels/convert.h"
#include "kernels/copy.h"
#include "kernels/norm_gradient.h"
#include "kernels/normalize.h"
#include "kernels/pool.h"
#include "kernels/quantize.h"
#include "kernels/reduce.h"
#include "kernels/resize.h"
#include "kernels/scale_shift.h"
#include "kernels/score_rows.h"
#include "kernels/softmax.h"
#include "kernels/softmax_gradient.h"
#include "kernels/trees.h"
#include "kernels/unary.h"
#include "kernels/unary_gradient.h"
#include "kernels/update.h"
#include "rows.h"

#include <array>
#include <limits>

namespace plimsoll::micro {
namespace {

Kernel unary(const char* name, kernels::UnaryKind kind) {
  return {std::string("unary/") + name, 2,
          [kind](const Operands& o) { kernels::unary_f32({kind}, o.a.get(), o.y.get(), o.count); }};
}

Kernel binary(const char* name, kernels::BinaryKind kind, bool bias) {
  return {std::string("binary/") + name, bias ? 2.0 : 3.0, [=](const Operands& o) {
            const int64_t rows = bias ? o.rows : 1, cols = bias ? kCols : o.count;
            const kernels::BroadcastBlock block{rows, cols, 0, cols, {0, 0}, {cols, bias ? 0 : cols}, {1, 1}};
            kernels::binary(kind, block, o.a.get(), o.b.get(), o.y.get());
          }};
}

// An image whose rows have as many pixels as columns, 64 channels.
kernels::PoolShape pooled(const Operands& o, int64_t kernel, int64_t stride) {
  constexpr int64_t kChannels = 64, kWidth = 16;
  kernels::PoolShape s;
  s.channels = kChannels, s.in_w = kWidth, s.in_h = o.count / kChannels / kWidth;
  s.kernel_h = s.kernel_w = kernel, s.stride_h = s.stride_w = stride;
  s.out_h = (s.in_h - kernel) / stride + 1, s.out_w = (s.in_w - kernel) / stride + 1;
  return s;
}

// The last two axes of [n, rows, cols] change places.
void transpose(const Operands& o, int64_t rows, int64_t cols) {
  kernels::CopyShape shape;
  shape.add(cols, 1, rows);
  shape.add(rows, cols, 1);
  shape.add(o.count / rows / cols, rows * cols, rows * cols);
  kernels::strided_copy(reinterpret_cast<std::byte*>(o.y.get()), reinterpret_cast<std::byte*>(o.a.get()),
                        shape, sizeof(float), 1);
}

Kernel unary_gradient(const char* name, kernels::UnaryKind kind) {
  return {std::string("gradient/") + name, 3, [kind](const Operands& o) {
            kernels::unary_gradient<float>({kind}, o.a.get(), o.b.get(), o.y.get(), o.count);
          }};
}

// One step of an optimizer with gradients in a, weights in y, states in b and c.
template <typename Update>
Kernel step(const char* name, double states, const Update& how) {
  return {std::string("update/") + name, 3 + 2 * states, [how](const Operands& o) {
            kernels::update<float>(how, {o.count, o.a.get(), o.y.get(), {o.b.get(), o.c.get(), nullptr}});
          }};
}

// Images of 16 channels become twice as large, from what is a fifth of all elements.
template <bool kLinear>
void enlarge(const Operands& o) {
  constexpr int64_t kChannels = 16, kSide = 16;
  const int64_t images = o.count / (5 * kSide * kSide * kChannels);
  std::array<int32_t, 4 * kSide> index;
  std::array<float, 4 * kSide> weight;
  for (int64_t i = 0; i < 2 * kSide; ++i) {
    const auto at = static_cast<size_t>(i);
    index[at] = static_cast<int32_t>(i / 2);
    index[at + 2 * kSide] = static_cast<int32_t>(std::min(i / 2 + 1, kSide - 1));
    weight[at] = i % 2 == 0 ? 0.75f : 0.25f, weight[at + 2 * kSide] = 1 - weight[at];
  }
  const kernels::ResizeAxis axis{kSide, 2 * kSide, kLinear ? 2 : 1, index.data(), weight.data()};
  const kernels::ResizeShape shape{images, axis, 1, axis, kChannels};
  if constexpr (kLinear) {
    kernels::resize_linear(shape, o.a.get(), o.y.get(), o.b.get(), 1);
  } else {
    kernels::resize_nearest(shape, reinterpret_cast<const std::byte*>(o.a.get()),
                            reinterpret_cast<std::byte*>(o.y.get()), sizeof(float), 1);
  }
}

// Rows of 16 features through one tree of eight levels, whose nodes stay in the nearest cache.
void descend(const Operands& o) {
  constexpr uint32_t kLevels = 8, kFeatures = 16;
  static const auto nodes = [] {
    std::vector<kernels::TreeNode<float>> tree((size_t{2} << kLevels) - 1);
    for (uint32_t i = 0; i < tree.size(); ++i) {
      const bool is_leaf = 2 * i + 1 >= tree.size();
      tree[i] = {is_leaf ? std::numeric_limits<float>::infinity() : 0.06f, i % kFeatures,
                 is_leaf ? i : 2 * i + 1, 0};
    }
    return tree;
  }();
  const uint32_t root = 0, levels = kLevels;
  const kernels::Trees<float> trees{nodes.data(), &root, &levels, 1};
  kernels::find_leaves(trees, 0, o.a.get(), kFeatures, o.count / kFeatures,
                       reinterpret_cast<uint32_t*>(o.y.get()));
}

std::vector<Kernel> all() {
  using kernels::BinaryKind;
  using kernels::ReduceKind;
  using kernels::UnaryKind;
  return {
      unary("relu", UnaryKind::kRelu),
      unary("sqrt", UnaryKind::kSqrt),
      unary("exp", UnaryKind::kExp),
      unary("log", UnaryKind::kLog),
      unary("erf", UnaryKind::kErf),
      unary("tanh", UnaryKind::kTanh),
      unary("sigmoid", UnaryKind::kSigmoid),
      unary("silu", UnaryKind::kSilu),
      unary("gelu", UnaryKind::kGelu),
      unary("gelu_tanh", UnaryKind::kGeluTanh),
      unary("hard_swish", UnaryKind::kHardSwish),
      unary("sin", UnaryKind::kSin),
      binary("add", BinaryKind::kAdd, false),
      binary("add_bias", BinaryKind::kAdd, true),
      binary("div", BinaryKind::kDiv, false),
      binary("pow", BinaryKind::kPow, false),
      {"softmax/rows", 2,
       [](const Operands& o) { kernels::softmax_rows_f32(false, o.a.get(), o.y.get(), o.rows, kCols); }},
      {"softmax/columns", 2,
       [](const Operands& o) {
         kernels::softmax_columns_f32(false, o.a.get(), o.y.get(), o.rows, kCols, kCols);
       }},
      {"score_rows", 2,
       [](const Operands& o) {
         float factors[32];
         for (int64_t row = 0; row + 32 <= o.rows; row += 32)
           kernels::score_rows_f32(o.y.get() + row * kCols, 32, kCols, kCols, nullptr, 0, factors);
       }},
      {"layer_norm", 2,
       [](const Operands& o) {
         kernels::layer_norm_f32(o.a.get(), o.b.get(), o.b.get(), o.y.get(), o.rows, kCols, 1e-5f, nullptr,
                                 nullptr);
       }},
      {"scale_shift", 2,
       [](const Operands& o) {
         const kernels::ScaleShiftRows rows{o.rows, kCols, o.b.get(), o.b.get(), true, true, {}};
         kernels::scale_shift(rows, o.a.get(), nullptr, o.y.get());
       }},
      {"reduce/rows_sum", 1,
       [](const Operands& o) {
         kernels::reduce_rows_f32(ReduceKind::kSum, o.a.get(), o.rows, kCols, o.y.get());
       }},
      {"reduce/columns_max", 1,
       [](const Operands& o) {
         kernels::reduce_columns_f32(ReduceKind::kMax, o.a.get(), o.rows, kCols, kCols, o.y.get());
       }},
      {"arg_max/rows", 1,
       [](const Operands& o) {
         kernels::arg_rows<float>({}, o.a.get(), o.rows, kCols, reinterpret_cast<int64_t*>(o.y.get()));
       }},
      {"pool/max_3x3s2", 1.25,
       [](const Operands& o) { kernels::max_pool(pooled(o, 3, 2), o.a.get(), o.y.get(), 1); }},
      {"pool/average_2x2s2", 1.25,
       [](const Operands& o) { kernels::average_pool(pooled(o, 2, 2), false, o.a.get(), o.y.get(), 1); }},
      {"pool/whole_image", 1,
       [](const Operands& o) {
         kernels::average_pool(kernels::whole_image(1, o.count / 64, 64), false, o.a.get(), o.y.get(), 1);
       }},
      {"copy/transpose_32x768", 2, [](const Operands& o) { transpose(o, 32, kCols); }},
      {"copy/transpose_3_inner", 2, [](const Operands& o) { transpose(o, 3, o.count / 3); }},
      {"convert/f32_f16", 1.5,
       [](const Operands& o) {
         kernels::convert(ElementType::kFloat, o.a.get(), ElementType::kFloat16, o.y.get(), o.count);
       }},
      {"quantize/f32_u8", 1.25,
       [](const Operands& o) {
         kernels::quantize_8(o.a.get(), o.count, 0.01f, 3, 0, reinterpret_cast<uint8_t*>(o.y.get()), 1);
       }},
      {"byte_table", 0.5,
       [](const Operands& o) {
         kernels::apply_byte_table(reinterpret_cast<const uint8_t*>(o.a.get()),
                                   reinterpret_cast<const uint8_t*>(o.b.get()), o.count,
                                   reinterpret_cast<uint8_t*>(o.y.get()), 1);
       }},
      {"resize/linear_2x", 1, enlarge<true>},
      {"resize/nearest_2x", 1, enlarge<false>},
      {"trees/8_levels", 1, descend},
      unary_gradient("gelu", UnaryKind::kGelu),
      unary_gradient("tanh", UnaryKind::kTanh),
      {"gradient/softmax_rows", 3,
       [](const Operands& o) {
         kernels::softmax_gradient_rows(false, o.a.get(), o.b.get(), o.y.get(), o.rows, kCols);
       }},
      {"gradient/layer_norm", 3,
       [](const Operands& o) {
         kernels::row_norm_gradient<float>(
             {o.a.get(), o.b.get(), o.c.get(), o.y.get(), nullptr, nullptr, o.rows, kCols, 1e-5f, true});
       }},
      step("sgd_momentum", 1, kernels::SgdUpdate{{}, 1e-9, 0.9}),
      step("adam", 2, kernels::AdamUpdate{{}, 1e-9, 0.9, 0.999, 1e-8}),
      step("adagrad", 1, kernels::AdagradUpdate{{}, 1e-9, 1e-8}),
      step("rms_prop", 1, kernels::RmsPropUpdate{{}, 1e-9, 0.9, 1e-8}),
      {"update/lamb_moments", 6,
       [](const Operands& o) {
         kernels::update_moments<float>({{}, 1e-9, 0.9, 0.999, 1e-8},
                                        {o.count, o.a.get(), o.y.get(), {o.b.get(), o.c.get(), nullptr}});
       }},
      {"update/add_to", 3, [](const Operands& o) { kernels::add_to(o.count, o.a.get(), o.y.get()); }},
      {"update/sum_of_squares", 1,
       [](const Operands& o) { benchmark::DoNotOptimize(kernels::sum_of_squares(o.count, o.a.get())); }},
      {"dequantize/u8_f32", 1.25,
       [](const Operands& o) {
         kernels::dequantize_8(reinterpret_cast<const uint8_t*>(o.a.get()), false, o.count, 0.01f, 3,
                               o.y.get(), 1);
       }},
  };
}

const bool kRegistered = register_rows(all());

}  // namespace
}  // namespace plimsoll::micro
