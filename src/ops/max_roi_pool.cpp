#include <algorithm>
#include <cmath>

#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "tensor/half_bits.h"

namespace plimsoll {
namespace {

struct RoiPoolAttrs {
  int64_t height = 1, width = 1;
  float scale = 1;
};

constexpr int64_t kMaxPooled = 1 << 20;

const void* attrs(AttrContext& c) {
  auto* a = c.make<RoiPoolAttrs>();
  const auto shape = c.integers("pooled_shape");
  if (shape.size() != 2 || std::min(shape[0], shape[1]) < 1 || std::max(shape[0], shape[1]) > kMaxPooled)
    c.reject("attribute 'pooled_shape': expected two sizes from 1 to {}, found {}", kMaxPooled,
             to_string(shape));
  a->height = shape[0], a->width = shape[1];
  a->scale = c.real("spatial_scale", 1.0f);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<RoiPoolAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  c.expect_rank(0, 4, 4);
  c.expect_rank(1, 2, 2);
  if (c.ranked(1)) unify(c, c.dims(1)[1], Dim(5));
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  c.set_output(0, c.type(0), std::vector<Dim>{c.dims(1)[0], c.dims(0)[1], Dim(a.height), Dim(a.width)});
}

// A region in whole pixels; sizes are at least 1.
struct Region {
  int64_t image = 0;
  double x = 0, y = 0, width = 1, height = 1;
};

Region region_of(const RunContext& c, int64_t roi) {
  double numbers[5];
  read_floats(c.inputs[1], roi * 5, 5, numbers);
  for (double number : numbers) {
    if (!std::isfinite(number))
      fail(ErrorCode::kInvalidArgument, "{}: region {} is not finite", c.node->label(), roi);
  }
  if (numbers[0] < 0 || numbers[0] >= static_cast<double>(c.inputs[0].dims[0]))
    fail(ErrorCode::kInvalidArgument, "{}: region {}: batch index {} is outside [0, {})", c.node->label(),
         roi, numbers[0], c.inputs[0].dims[0]);
  const double scale = static_cast<double>(c.attrs<RoiPoolAttrs>().scale);
  Region r;
  r.image = static_cast<int64_t>(numbers[0]);
  r.x = std::round(numbers[1] * scale), r.y = std::round(numbers[2] * scale);
  r.width = std::max(std::round(numbers[3] * scale) - r.x + 1, 1.0);
  r.height = std::max(std::round(numbers[4] * scale) - r.y + 1, 1.0);
  return r;
}

struct Bin {
  int64_t begin, end;
};
Bin bin_of(double start, double size, int64_t bins, int64_t i, int64_t limit) {
  const double step = size / static_cast<double>(bins);
  const double begin = std::floor(static_cast<double>(i) * step) + start;
  const double end = std::ceil(static_cast<double>(i + 1) * step) + start;
  const double most = static_cast<double>(limit);
  return {static_cast<int64_t>(std::clamp(begin, 0.0, most)),
          static_cast<int64_t>(std::clamp(end, 0.0, most))};
}

// The first of the largest; 0 of none. What comes after a NaN is not larger.
template <typename T>
T largest_in(const T* plane, int64_t width, Bin rows, Bin cols) {
  if (rows.begin >= rows.end || cols.begin >= cols.end) return narrowed<T>(0.0f);
  WideType<T> largest = load_inline(plane[rows.begin * width + cols.begin]);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = cols.begin; w < cols.end; ++w) {
      const WideType<T> value = load_inline(plane[h * width + w]);
      largest = value > largest ? value : largest;
    }
  }
  return narrowed<T>(largest);
}

// A bin is found once for all channels: that takes longer than looking at its elements.
template <typename T>
void pool_region(const RunContext& c, const Region& r, int64_t roi) {
  const auto& a = c.attrs<RoiPoolAttrs>();
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3], bins = a.height * a.width;
  const T* image = x.as<T>() + r.image * channels * height * width;
  T* pooled = y.as<T>() + roi * channels * bins;
  kernels::parallel_for(c.threads, a.height, [&](int64_t i) {
    const Bin rows = bin_of(r.y, r.height, a.height, i, height);
    for (int64_t j = 0; j < a.width; ++j) {
      const Bin cols = bin_of(r.x, r.width, a.width, j, width);
      for (int64_t k = 0; k < channels; ++k)
        pooled[k * bins + i * a.width + j] = largest_in(image + k * height * width, width, rows, cols);
    }
  });
}

void run(const RunContext& c) {
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t roi = 0; roi < c.outputs[0].dims[0]; ++roi) pool_region<T>(c, region_of(c, roi), roi);
  });
}

}  // namespace

extern const OpDef op_max_roi_pool = {
    .name = "MaxRoiPool",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
