#include "ops/movement.h"
#include "ops/qlinear.h"

namespace plimsoll {
namespace {

struct ReduceAttrs {
  std::span<const int64_t> axes;  // none: all
  bool keep = true;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ReduceAttrs>();
  a->axes = c.integers("axes");
  a->keep = c.integer("keepdims", 1) != 0;
  return a;
}

bool is_reduced(const ReduceAttrs& a, size_t axis, size_t rank) {
  const auto named = [&](int64_t i) {
    return (i < 0 ? i + static_cast<int64_t>(rank) : i) == static_cast<int64_t>(axis);
  };
  return a.axes.empty() || std::any_of(a.axes.begin(), a.axes.end(), named);
}

void infer(InferContext& c) {
  const auto& a = c.attrs<ReduceAttrs>();
  expect_qlinear_unary(c);
  if (!c.ranked(kUnaryX)) return c.set_unranked_output(0, c.type(kUnaryX));
  resolve_axes(c, a.axes, c.rank(kUnaryX));
  std::vector<Dim> dims;
  for (size_t i = 0; i < c.rank(kUnaryX); ++i) {
    if (!is_reduced(a, i, c.rank(kUnaryX))) {
      dims.push_back(c.dims(kUnaryX)[i]);
    } else if (a.keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, c.type(kUnaryX), dims);
}

// Counts through the axes of one kind; false when it starts again.
struct Walk {
  size_t rank = 0;
  int64_t dims[InferContext::kMaxRank], strides[InferContext::kMaxRank], at[InferContext::kMaxRank] = {};
  int64_t offset = 0;
  void add(int64_t dim, int64_t stride) { dims[rank] = dim, strides[rank++] = stride; }
  bool next() {
    for (size_t i = rank; i-- > 0;) {
      offset += strides[i];
      if (++at[i] < dims[i]) return true;
      offset -= strides[i] * dims[i];
      at[i] = 0;
    }
    return false;
  }
};

void run(const RunContext& c) {
  const TensorView &x = c.inputs[kUnaryX], &y = c.outputs[0];
  if (y.elements() == 0) return;
  const Quantization from = read_quantization(c, kUnaryXScale, kUnaryXZero);
  const Quantization to = read_quantization(c, kUnaryYScale, kUnaryYZero);
  Walk kept, reduced;
  for (size_t i = 0; i < x.rank(); ++i)
    (is_reduced(c.attrs<ReduceAttrs>(), i, x.rank()) ? reduced : kept).add(x.dims[i], stride_of(x.dims, i));
  const int64_t count = x.elements() / y.elements();
  for (int64_t i = 0; i < y.elements(); ++i, kept.next()) {
    int64_t sum = 0;
    for (int64_t k = 0; k < count; ++k, reduced.next())
      sum += byte_value(x.type, x.as<uint8_t>()[kept.offset + reduced.offset]) - from.zero;
    const double mean = count > 0 ? static_cast<double>(sum) / static_cast<double>(count) : 0.0;
    y.as<uint8_t>()[i] =
        quantize_byte(x.type, to, static_cast<float>(mean * static_cast<double>(from.scale)));
  }
}

}  // namespace

extern const OpDef op_qlinear_reduce_mean = {
    .domain = kMicrosoftDomain,
    .name = "QLinearReduceMean",
    .inputs = {4, 5},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .optional_inputs = 1u << kUnaryXZero,
};

}  // namespace plimsoll
