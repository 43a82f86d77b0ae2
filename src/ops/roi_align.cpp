// Opset 10 has no pixel shift; opset 16 shifts by half a pixel unless told otherwise.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"
#include "tensor/half_bits.h"

namespace plimsoll {
namespace {

struct RoiAlignAttrs {
  bool average = true, half_pixel = true;
  int64_t height = 1, width = 1, samples = 0;
  float scale = 1;
};

constexpr int64_t kMaxSize = 1 << 20, kMaxRatio = 1024;
constexpr size_t kX = 0, kRois = 1, kImages = 2;

int64_t read_number(AttrContext& c, std::string_view name, int64_t fallback, int64_t least, int64_t most) {
  const int64_t value = c.integer(name, fallback);
  if (value < least || value > most)
    c.reject("attribute '{}': expected {} to {}, found {}", name, least, most, value);
  return value;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<RoiAlignAttrs>();
  const std::string_view mode = c.text("mode", "avg");
  if (mode != "avg" && mode != "max") c.reject("attribute 'mode': expected avg or max, found '{}'", mode);
  a->average = mode == "avg";
  a->half_pixel = false;
  if (c.opset() >= 16) {
    const std::string_view shift = c.text("coordinate_transformation_mode", "half_pixel");
    a->half_pixel = shift == "half_pixel";
    if (!a->half_pixel && shift != "output_half_pixel")
      c.reject("attribute 'coordinate_transformation_mode': '{}' is not known", shift);
  }
  a->height = read_number(c, "output_height", 1, 1, kMaxSize);
  a->width = read_number(c, "output_width", 1, 1, kMaxSize);
  a->samples = read_number(c, "sampling_ratio", 0, 0, kMaxRatio);
  a->scale = c.real("spatial_scale", 1.0f);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<RoiAlignAttrs>();
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kRois);
  c.expect_type(kImages, types(ElementType::kInt64));
  c.expect_rank(kX, 4, 4);
  c.expect_rank(kRois, 2, 2);
  c.expect_rank(kImages, 1, 1);
  if (c.ranked(kRois)) unify(c, c.dims(kRois)[1], Dim(4));
  if (!c.ranked(kX) || !c.ranked(kRois)) return c.set_unranked_output(0, c.type(kX));
  Dim count = c.dims(kRois)[0];
  if (c.ranked(kImages)) count = unify(c, count, c.dims(kImages)[0]);
  c.set_output(0, c.type(kX), std::vector<Dim>{count, c.dims(kX)[1], Dim(a.height), Dim(a.width)});
}

// The samples of one bin along one axis: `count` of them, of which [first, last) touch the image.
struct Samples {
  double start = 0, step = 0, count = 0;
  int64_t first = 0, last = 0;
};

// One sample: two neighbours and the weight of the second.
struct Tap {
  int64_t low = 0, high = 0;
  double weight = 0;
};

Samples samples_of(double bin_start, double bin_size, int64_t ratio, int64_t size) {
  Samples s;
  const double wanted = ratio > 0 ? static_cast<double>(ratio) : std::ceil(bin_size);
  if (!(wanted >= 1)) return s;
  s.step = bin_size / wanted;
  s.start = bin_start + 0.5 * s.step;
  s.count = wanted;
  // Samples in [-1, size] count, others are 0. The bounds are wide by one or two: tap_of looks again.
  double first = 0, last = wanted;
  if (s.step != 0) {
    const double low = (-1 - s.start) / s.step, high = (static_cast<double>(size) - s.start) / s.step;
    first = std::clamp(std::min(low, high) - 1, 0.0, wanted);
    last = std::clamp(std::max(low, high) + 2, 0.0, wanted);
  }
  // Positions are doubles: beyond 2^53 of them neighbours are one and the same.
  s.first = static_cast<int64_t>(std::min(first, 9e15)), s.last = static_cast<int64_t>(std::min(last, 9e15));
  return s;
}

// False if the sample lies outside.
bool tap_of(const Samples& s, int64_t i, int64_t size, Tap& tap) {
  double at = s.start + static_cast<double>(i) * s.step;
  if (size == 0 || at < -1 || at > static_cast<double>(size)) return false;
  at = std::max(at, 0.0);
  tap.low = static_cast<int64_t>(at);
  if (tap.low >= size - 1) {
    tap.low = tap.high = size - 1;
    tap.weight = 0;
  } else {
    tap.high = tap.low + 1;
    tap.weight = at - static_cast<double>(tap.low);
  }
  return true;
}

struct Region {
  int64_t image = 0;
  double x = 0, y = 0, bin_width = 0, bin_height = 0;
};

Region region_of(const RunContext& c, int64_t roi) {
  const auto& a = c.attrs<RoiAlignAttrs>();
  double corners[4];
  read_floats(c.inputs[kRois], roi * 4, 4, corners);
  Region r;
  r.image = c.inputs[kImages].as<int64_t>()[roi];
  if (r.image < 0 || r.image >= c.inputs[kX].dims[0])
    fail(ErrorCode::kInvalidArgument, "{}: batch index {} is outside [0, {})", c.node->label(), r.image,
         c.inputs[kX].dims[0]);
  for (double& corner : corners) {
    corner = corner * static_cast<double>(a.scale) - (a.half_pixel ? 0.5 : 0.0);
    if (!std::isfinite(corner))
      fail(ErrorCode::kInvalidArgument, "{}: region {} is not finite", c.node->label(), roi);
  }
  double width = corners[2] - corners[0], height = corners[3] - corners[1];
  if (!a.half_pixel) width = std::max(width, 1.0), height = std::max(height, 1.0);
  r.x = corners[0], r.y = corners[1];
  r.bin_width = width / static_cast<double>(a.width);
  r.bin_height = height / static_cast<double>(a.height);
  return r;
}

constexpr int64_t kTaps = 64;

// The taps of samples [from, from + kTaps) that touch the image; returns how many.
int64_t fill_taps(const Samples& s, int64_t from, int64_t size, Tap* taps) {
  int64_t count = 0;
  for (int64_t i = from; i < std::min(s.last, from + kTaps); ++i)
    count += tap_of(s, i, size, taps[count]) ? 1 : 0;
  return count;
}

struct Pooled {
  double sum = 0, largest = 0, seen = 0;
};

// The largest of the weighted neighbours, not of the interpolated values, is what the specification's
// reference takes.
template <typename T>
void pool_taps(const T* plane, int64_t width, const Tap* ys, int64_t rows, const Tap* xs, int64_t cols,
               Pooled& result) {
  const auto at = [&](int64_t h, int64_t w) {
    return static_cast<double>(load_inline(plane[h * width + w]));
  };
  for (int64_t i = 0; i < rows; ++i) {
    const Tap& v = ys[i];
    for (int64_t j = 0; j < cols; ++j) {
      const Tap& h = xs[j];
      const double a = (1 - v.weight) * (1 - h.weight) * at(v.low, h.low);
      const double b = (1 - v.weight) * h.weight * at(v.low, h.high);
      const double d = v.weight * (1 - h.weight) * at(v.high, h.low);
      const double e = v.weight * h.weight * at(v.high, h.high);
      result.sum += a + b + d + e;
      const double most = std::max(std::max(a, b), std::max(d, e));
      result.largest = result.seen == 0 ? most : std::max(result.largest, most);
      result.seen += 1;
    }
  }
}

// The sum over a bin's samples as one over the elements that they touch: few of them, the same for all
// channels.
class FlatTaps {
 public:
  static constexpr int64_t kMost = 256;
  FlatTaps(const Tap* ys, int64_t rows, const Tap* xs, int64_t cols, int64_t width) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        const Tap &v = ys[i], &h = xs[j];
        add(v.low * width + h.low, (1 - v.weight) * (1 - h.weight));
        add(v.low * width + h.high, (1 - v.weight) * h.weight);
        add(v.high * width + h.low, v.weight * (1 - h.weight));
        add(v.high * width + h.high, v.weight * h.weight);
      }
    }
  }
  template <typename T>
  double sum(const T* plane) const {
    double even = 0, odd = 0;  // there are four for every sample
    for (int64_t i = 0; i < count_; i += 2) {
      even += weights_[i] * static_cast<double>(load_inline(plane[offsets_[i]]));
      odd += weights_[i + 1] * static_cast<double>(load_inline(plane[offsets_[i + 1]]));
    }
    return even + odd;
  }

 private:
  void add(int64_t offset, double weight) { offsets_[count_] = offset, weights_[count_++] = weight; }

  int64_t count_ = 0;
  int64_t offsets_[kMost];
  double weights_[kMost];
};

// One bin of all channels.
template <typename T>
void pool_bin(bool average, const Samples& rows, const Samples& cols, const T* x, T* y, int64_t channels,
              int64_t height, int64_t width, int64_t bins) {
  const double count = rows.count * cols.count;
  Tap ys[kTaps], xs[kTaps];
  const bool fits = rows.last - rows.first <= kTaps && cols.last - cols.first <= kTaps;
  int64_t y_count = fill_taps(rows, rows.first, height, ys), x_count = fill_taps(cols, cols.first, width, xs);
  if (average && fits && 4 * y_count * x_count <= FlatTaps::kMost) {
    const FlatTaps taps(ys, y_count, xs, x_count, width);
    for (int64_t k = 0; k < channels; ++k)
      y[k * bins] = narrowed<T>(taps.sum(x + k * height * width) / std::max(count, 1.0));
    return;
  }
  for (int64_t k = 0; k < channels; ++k) {
    Pooled p;
    const T* plane = x + k * height * width;
    if (fits) {
      pool_taps(plane, width, ys, y_count, xs, x_count, p);
    } else {
      for (int64_t i = rows.first; i < rows.last; i += kTaps) {
        y_count = fill_taps(rows, i, height, ys);
        for (int64_t j = cols.first; j < cols.last; j += kTaps) {
          x_count = fill_taps(cols, j, width, xs);
          pool_taps(plane, width, ys, y_count, xs, x_count, p);
        }
      }
    }
    if (p.seen < count) p.largest = p.seen == 0 ? 0 : std::max(p.largest, 0.0);  // samples outside are 0
    y[k * bins] = narrowed<T>(average ? p.sum / std::max(count, 1.0) : p.largest);
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<RoiAlignAttrs>();
  const TensorView &x = c.inputs[kX], &y = c.outputs[0];
  const int64_t channels = x.dims[1], height = x.dims[2], width = x.dims[3], bins = a.height * a.width;
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t roi = 0; roi < y.dims[0]; ++roi) {
      const Region r = region_of(c, roi);
      kernels::parallel_for(c.threads, bins, [&](int64_t bin) {
        const double i = static_cast<double>(bin / a.width), j = static_cast<double>(bin % a.width);
        pool_bin(a.average, samples_of(r.y + i * r.bin_height, r.bin_height, a.samples, height),
                 samples_of(r.x + j * r.bin_width, r.bin_width, a.samples, width),
                 x.as<T>() + r.image * channels * height * width, y.as<T>() + roi * channels * bins + bin,
                 channels, height, width, bins);
      });
    }
  });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 40;
  return {checked_mul(kOperationsPerElement, product(c.output(0).type.dims).value()), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_roi_align = {
    .name = "RoiAlign",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
