// Pooling and resampling of random shapes in every float type, against their definitions in double.
#include <cmath>
#include <limits>

#include "kernels/float_types.h"
#include "kernels/pool.h"
#include "kernels/resize.h"

namespace plimsoll::kernels {
namespace {

template <typename T>
class Windows : public testing::Test {};
TYPED_TEST_SUITE(Windows, FloatTypes);

// ---- pooling ----------------------------------------------------------------------------------------------

PoolShape random_pool(Dice& dice) {
  PoolShape s;
  s.batch = dice.pick(1, 2), s.channels = dice.length();
  s.in_h = dice.pick(1, 7), s.in_w = dice.pick(1, 7);
  s.kernel_h = dice.pick(1, 4), s.kernel_w = dice.pick(1, 4);
  s.stride_h = dice.pick(1, 3), s.stride_w = dice.pick(1, 3);
  s.dilation_h = dice.pick(1, 2), s.dilation_w = dice.pick(1, 2);
  s.pad_top = dice.pick(0, 3), s.pad_left = dice.pick(0, 3);
  s.pad_bottom = dice.pick(0, 3), s.pad_right = dice.pick(0, 3);
  // As many as fit, or one more, as where sizes are rounded up.
  const int64_t down = s.in_h + s.pad_top + s.pad_bottom - (s.kernel_h - 1) * s.dilation_h - 1;
  const int64_t across = s.in_w + s.pad_left + s.pad_right - (s.kernel_w - 1) * s.dilation_w - 1;
  s.out_h = down < 0 ? 1 : down / s.stride_h + dice.pick(1, 2);
  s.out_w = across < 0 ? 1 : across / s.stride_w + dice.pick(1, 2);
  return s;
}

struct Pooled {
  double largest, sum = 0, size = 0;
  int64_t inside = 0, padded = 0;
  bool has_nan = false;
};

template <typename T>
Pooled pooled(const PoolShape& s, const std::vector<T>& x, int64_t image, int64_t row, int64_t column,
              int64_t channel, double lowest) {
  Pooled found{lowest};
  for (int64_t i = 0; i < s.kernel_h; ++i)
    for (int64_t k = 0; k < s.kernel_w; ++k) {
      const int64_t h = row * s.stride_h - s.pad_top + i * s.dilation_h;
      const int64_t w = column * s.stride_w - s.pad_left + k * s.dilation_w;
      if (h >= s.in_h + s.pad_bottom || w >= s.in_w + s.pad_right) continue;
      ++found.padded;
      if (h < 0 || h >= s.in_h || w < 0 || w >= s.in_w) continue;
      ++found.inside;
      const double v =
          wide(x[static_cast<size_t>(((image * s.in_h + h) * s.in_w + w) * s.channels + channel)]);
      found.largest = std::max(found.largest, v);
      found.has_nan = found.has_nan || std::isnan(v);
      found.sum += v, found.size += std::fabs(v);
    }
  return found;
}

template <typename T>
double lowest_of() {
  if (std::is_same_v<T, Float16>) return -65504;
  if (std::is_same_v<T, BFloat16>) return -0x1.fep127;
  return wide(std::numeric_limits<LaneOf<T>>::lowest());
}

// The largest of a window with a NaN in it is NaN, wherever it lies; infinities of both signs are none.
TYPED_TEST(Windows, PoolingKeepsNaN) {
  using T = TypeParam;
  for_each_target([] {
    Dice dice(2);
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int round = 0; round < 60; ++round) {
      const PoolShape s = random_pool(dice);
      auto values = dice.values<T>(s.batch * s.in_h * s.in_w * s.channels);
      for (T& value : values) {
        const int64_t kind = dice.pick(0, 19);
        if (kind == 0) value = T(std::numeric_limits<float>::quiet_NaN());
        if (kind == 1) value = T(dice.one_of(2) ? kInfinity : -kInfinity);
      }
      const int64_t pixels = s.batch * s.out_h * s.out_w;
      const Array<T> x(values), most(pixels * s.channels);
      max_pool(s, x.data(), most.data(), static_cast<int>(dice.pick(1, 3)));
      for (int64_t i = 0; i < pixels * s.channels; ++i) {
        const int64_t pixel = i / s.channels;
        const Pooled exact = pooled(s, values, pixel / s.out_w / s.out_h, pixel / s.out_w % s.out_h,
                                    pixel % s.out_w, i % s.channels, lowest_of<T>());
        ASSERT_EQ(std::isnan(most.at(i)), exact.has_nan) << i << ", channels " << s.channels;
        if (!exact.has_nan) {
          ASSERT_EQ(most.at(i), exact.largest) << i << ", channels " << s.channels;
        }
      }
    }
  });
}

TYPED_TEST(Windows, Pooled) {
  using T = TypeParam;
  for_each_target([] {
    Dice dice(1);
    for (int round = 0; round < 60; ++round) {
      const PoolShape s = random_pool(dice);
      const auto values = dice.values<T>(s.batch * s.in_h * s.in_w * s.channels);
      const int64_t pixels = s.batch * s.out_h * s.out_w;
      const Array<T> x(values), most(pixels * s.channels), mean(pixels * s.channels);
      const bool count_padding = dice.one_of(2);
      max_pool(s, x.data(), most.data(), static_cast<int>(dice.pick(1, 3)));
      average_pool(s, count_padding, x.data(), mean.data(), static_cast<int>(dice.pick(1, 3)));
      for (int64_t i = 0; i < pixels * s.channels; ++i) {
        const int64_t pixel = i / s.channels;
        const Pooled exact = pooled(s, values, pixel / s.out_w / s.out_h, pixel / s.out_w % s.out_h,
                                    pixel % s.out_w, i % s.channels, lowest_of<T>());
        ASSERT_EQ(most.at(i), exact.largest) << i << ", channels " << s.channels;
        const auto count =
            static_cast<double>(std::max<int64_t>(1, count_padding ? exact.padded : exact.inside));
        ASSERT_NEAR(mean.at(i), exact.sum / count, allowed<T>(exact.sum / count, exact.size / count))
            << i << ", channels " << s.channels;
      }
    }
  });
}

// ---- resampling -------------------------------------------------------------------------------------------

struct Axis {
  Axis(Dice& dice, int64_t most_taps)
      : in(dice.pick(1, 9)),
        out(dice.one_of(3) ? dice.pick(20, 40) : dice.pick(1, 19)),
        taps(dice.pick(1, most_taps)),
        index(taps * out),
        weight(dice.values<float>(taps * out)) {
    for (int64_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(dice.pick(0, in - 1));
  }
  ResizeAxis view() const { return {in, out, taps, index.data(), weight.data()}; }
  int64_t in, out, taps;
  Array<int32_t> index;
  Array<float> weight;
};

struct Images {
  Images(Dice& dice, int64_t most_taps)
      : rows(dice, most_taps), columns(dice, most_taps), blends_rows(!dice.one_of(3)) {
    shape.outer = dice.pick(1, 3), shape.middle = dice.one_of(3) ? dice.pick(2, 3) : 1;
    shape.inner = dice.one_of(2) ? 1 : dice.length();
    shape.columns = columns.view();
    if (blends_rows) shape.rows = rows.view();  // else they are among the outer ones
  }
  int64_t in() const { return shape.outer * shape.rows.in * shape.middle * shape.columns.in * shape.inner; }
  int64_t out() const {
    return shape.outer * shape.rows.out * shape.middle * shape.columns.out * shape.inner;
  }
  // Calls f(element of the input, weight) for each tap of an element of the output.
  template <typename F>
  void for_each_tap(int64_t at, F f) const {
    const ResizeShape& s = shape;
    const int64_t inner = at % s.inner, column = at / s.inner % s.columns.out;
    const int64_t middle = at / s.inner / s.columns.out % s.middle;
    const int64_t line = at / s.inner / s.columns.out / s.middle, row = line % s.rows.out;
    for (int64_t t = 0; t < (blends_rows ? s.rows.taps : 1); ++t)
      for (int64_t u = 0; u < s.columns.taps; ++u) {
        const int64_t from_row = blends_rows ? rows.index[t * s.rows.out + row] : 0;
        const double by_row = blends_rows ? rows.weight.at(t * s.rows.out + row) : 1;
        const int64_t from = ((line / s.rows.out * s.rows.in + from_row) * s.middle + middle) * s.columns.in +
                             columns.index[u * s.columns.out + column];
        f(static_cast<size_t>(from * s.inner + inner),
          by_row * columns.weight.at(u * s.columns.out + column));
      }
  }
  Axis rows, columns;
  bool blends_rows;
  ResizeShape shape;
};

TYPED_TEST(Windows, Resampled) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(2);
    for (int round = 0; round < 60; ++round) {
      const Images p(dice, 5);
      const int threads = static_cast<int>(dice.pick(1, 3));
      const ResizeShape& s = p.shape;
      const auto values = dice.values<T>(p.in());
      const Array<T> x(values), y(p.out());
      const Array<W> scratch(threads * s.middle * s.inner *
                             (s.columns.in + (kIsHalf<T> ? s.columns.out : 0)));
      resize_linear(s, x.data(), y.data(), scratch.data(), threads);
      for (int64_t i = 0; i < p.out(); ++i) {
        double exact = 0, size = 0;
        p.for_each_tap(i, [&](size_t at, double weight) {
          exact += weight * wide(values[at]), size += std::fabs(weight * wide(values[at]));
        });
        ASSERT_NEAR(y.at(i), exact, allowed<T>(exact, size))
            << i << " of " << p.out() << ", inner " << s.inner;
      }
    }
  });
}

template <typename T>
void expect_nearest(Dice& dice, size_t width) {
  const Images p(dice, 1);
  const auto values = dice.values<float>(p.in() * static_cast<int64_t>(width));
  const Array<float> numbers(values);
  const auto elements = static_cast<size_t>(p.in()) * width;
  const Array<uint8_t> x(std::vector<uint8_t>(reinterpret_cast<const uint8_t*>(values.data()),
                                              reinterpret_cast<const uint8_t*>(values.data()) + elements));
  const Array<T> y(p.out() * static_cast<int64_t>(width / sizeof(T)));
  resize_nearest(p.shape, reinterpret_cast<const std::byte*>(x.data()),
                 reinterpret_cast<std::byte*>(y.data()), width, static_cast<int>(dice.pick(1, 3)));
  const auto* found = reinterpret_cast<const uint8_t*>(y.data());
  for (int64_t i = 0; i < p.out(); ++i)
    p.for_each_tap(i, [&](size_t at, double) {
      for (size_t b = 0; b < width; ++b)
        ASSERT_EQ(found[static_cast<size_t>(i) * width + b], x[static_cast<int64_t>(at * width + b)])
            << i << " of " << p.out() << ", width " << width;
    });
}

TEST(ResizeNearest, ElementsOfEveryWidth) {
  Dice dice(3);
  for (int round = 0; round < 25 && !testing::Test::HasFailure(); ++round) {
    expect_nearest<uint8_t>(dice, 1);
    expect_nearest<uint16_t>(dice, 2);
    expect_nearest<uint32_t>(dice, 4);
    expect_nearest<uint64_t>(dice, 8);
    expect_nearest<uint64_t>(dice, 16);
  }
}

}  // namespace
}  // namespace plimsoll::kernels
