// What batch normalization in training and its gradient do to channels, and what the weight gradient of a
// convolution moves and multiplies, in every float type, against their definitions in double.
#include "kernels/batch_norm.h"
#include "kernels/channel_sums.h"
#include "kernels/float_types.h"
#include "kernels/patches.h"
#include "kernels/scale_shift.h"

namespace plimsoll::kernels {
namespace {

template <typename T>
class Channels : public testing::Test {};
TYPED_TEST_SUITE(Channels, FloatTypes);

// Elements [outer, channels, inner].
struct Layout {
  int64_t outer, channels, inner;
  int64_t count() const { return outer * channels * inner; }
  template <typename F>
  void for_each_of(int64_t channel, F f) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i) f(static_cast<size_t>((o * channels + channel) * inner + i));
  }
};

Layout random_layout(Dice& dice) {
  if (dice.one_of(2)) return {dice.pick(1, 4), dice.pick(1, 6), dice.pick(2, 200)};
  return {dice.pick(1, dice.one_of(3) ? 300 : 20), dice.length(), 1};
}

TYPED_TEST(Channels, Sums) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(1);
    for (int round = 0; round < 40; ++round) {
      const Layout p = random_layout(dice);
      const float offset = dice.one_of(2) ? 0 : 2;
      const bool with_dy = dice.one_of(2);
      const auto x = dice.values<T>(p.count(), offset - 1, offset + 1), dy = dice.values<T>(p.count());
      const Array<T> of_x(x), of_dy(dy);
      const Array<W> mean(p.channels), squares(p.channels), sum(p.channels), product(p.channels);
      const Array<W> work(4 * p.channels);
      ChannelSums<W> sums{mean.data(), squares.data()};
      if (with_dy) sums.dy = sum.data(), sums.product = product.data();
      channel_sums(of_x.data(), with_dy ? of_dy.data() : nullptr, p.outer, p.channels, p.inner, sums,
                   work.data());
      ASSERT_EQ(sums.count, p.outer * p.inner);
      for (int64_t c = 0; c < p.channels; ++c) {
        double middle = 0, spread = 0, all = 0, all_size = 0, along = 0, along_size = 0;
        const auto n = static_cast<double>(sums.count);
        p.for_each_of(c, [&](size_t at) { middle += wide(x[at]) / n; });
        p.for_each_of(c, [&](size_t at) {
          const double distance = wide(x[at]) - middle, g = wide(dy[at]);
          spread += distance * distance, all += g, all_size += std::fabs(g);
          along += g * distance, along_size += std::fabs(g) * 3;
        });
        ASSERT_NEAR(mean.at(c), middle, allowed<W>(middle, 3)) << c;
        ASSERT_NEAR(squares.at(c), spread, allowed<W>(spread, 3 * n)) << c;
        if (!with_dy) continue;
        ASSERT_NEAR(sum.at(c), all, allowed<W>(all, all_size)) << c;
        ASSERT_NEAR(product.at(c), along, allowed<W>(along, along_size)) << c;
      }
    }
  });
}

TYPED_TEST(Channels, Terms) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(2);
    for (int round = 0; round < 40; ++round) {
      const Layout p = random_layout(dice);
      const auto x = dice.values<T>(p.count()), dy = dice.values<T>(p.count());
      const Array<T> of_x(x), of_dy(dy), apart(p.count());
      const Array<W> a(dice.values<W>(p.channels)), b(dice.values<W>(p.channels));
      const Array<W> mean(dice.values<W>(p.channels)), shift(dice.values<W>(p.channels));
      const int64_t place = dice.pick(0, 2);
      const Array<T>& dx = place == 0 ? apart : place == 1 ? of_x : of_dy;
      channel_terms(of_x.data(), of_dy.data(), dx.data(), p.outer, p.channels, p.inner,
                    ChannelTerms<W>{a.data(), b.data(), mean.data(), shift.data()});
      for (int64_t c = 0; c < p.channels; ++c) {
        p.for_each_of(c, [&](size_t at) {
          const double exact = a.at(c) * wide(dy[at]) + b.at(c) * (wide(x[at]) - mean.at(c)) + shift.at(c);
          EXPECT_NEAR(dx.at(static_cast<int64_t>(at)), exact, allowed<T>(exact, 4)) << c;
        });
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

TYPED_TEST(Channels, NormalizedWithWhatFollows) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(3);
    for (int round = 0; round < 40; ++round) {
      const int64_t rows = dice.pick(0, 9), channels = dice.length(), place = dice.pick(0, 2);
      const bool adds = dice.one_of(2), relu = dice.one_of(2);
      const auto x = dice.values<T>(rows * channels), z = dice.values<T>(rows * channels);
      const Array<T> of_x(x), of_z(z), apart(rows * channels);
      const Array<W> a(dice.values<W>(channels)), b(dice.values<W>(channels));
      const Array<T>& y = place == 0 ? apart : place == 1 ? of_x : of_z;
      normalize_rows(NormalizedRows<T>{of_x.data(), adds ? of_z.data() : nullptr, y.data(), rows, channels,
                                       a.data(), b.data(), relu});
      for (int64_t i = 0; i < rows * channels; ++i) {
        const auto at = static_cast<size_t>(i);
        double exact = a.at(i % channels) * wide(x[at]) + b.at(i % channels) + (adds ? wide(z[at]) : 0);
        if (relu) exact = std::max(exact, 0.0);
        ASSERT_NEAR(y.at(i), exact, allowed<T>(exact, 3)) << i << " of " << rows << "x" << channels;
      }
    }
  });
}

// Values in steps of 1/8, and 1/8 and a half of that: a * x + b is exact, and never 0, where a Relu's mask
// ends.
template <typename T>
std::vector<T> steps(Dice& dice, int64_t count, double shift) {
  std::vector<T> found(static_cast<size_t>(count));
  for (T& value : found) value = T(static_cast<float>(static_cast<double>(dice.pick(-8, 8)) / 8 + shift));
  return found;
}

TYPED_TEST(Channels, GradientBehindAMask) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(4);
    for (int round = 0; round < 40; ++round) {
      const int64_t rows = dice.pick(0, dice.one_of(2) ? 9 : 80), channels = dice.length();
      const bool masked = !dice.one_of(3);
      const auto x = steps<T>(dice, rows * channels, 0), dy = dice.values<T>(rows * channels);
      const Array<T> of_x(x), of_dy(dy), apart(rows * channels);
      const Array<W> a(steps<W>(dice, channels, 0)), b(steps<W>(dice, channels, 1.0 / 128));
      const Array<W> mean(dice.values<W>(channels)), slope(dice.values<W>(channels));
      const Array<W> tilt(dice.values<W>(channels)), shift(dice.values<W>(channels));
      const Array<W> sum(channels), product(channels);
      NormGradientRows<T> job{of_x.data(), of_dy.data(), rows, channels};
      if (masked) job.a = a.data(), job.b = b.data();
      job.mean = mean.data();
      norm_gradient_sums(job, sum.data(), product.data());
      const int64_t place = dice.pick(0, 2);
      const Array<T>& dx = place == 0 ? apart : place == 1 ? of_x : of_dy;
      norm_gradient_rows(job, slope.data(), tilt.data(), shift.data(), dx.data());
      for (int64_t c = 0; c < channels; ++c) {
        double all = 0, all_size = 0, along = 0, along_size = 0;
        for (int64_t i = c; i < rows * channels; i += channels) {
          const double from = wide(x[static_cast<size_t>(i)]), distance = from - mean.at(c);
          const double g = masked && a.at(c) * from + b.at(c) <= 0 ? 0 : wide(dy[static_cast<size_t>(i)]);
          all += g, all_size += std::fabs(g);
          along += g * distance, along_size += std::fabs(g) * 2;
          const double exact = slope.at(c) * g + tilt.at(c) * distance + shift.at(c);
          ASSERT_NEAR(dx.at(i), exact, allowed<T>(exact, 4)) << i << " of " << rows << "x" << channels;
        }
        ASSERT_NEAR(sum.at(c), all, allowed<W>(all, all_size)) << c << " of " << channels;
        ASSERT_NEAR(product.at(c), along, allowed<W>(along, along_size)) << c << " of " << channels;
      }
    }
  });
}

// ---- a scale and a shift -------------------------------------------------------------------------------

double activate(const Activation& f, double x) {
  switch (f.kind) {
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kLeakyRelu:
      return x < 0 ? double{f.a} * x : x;
    case ActivationKind::kClip:
      return std::min(std::max(x, double{f.a}), double{f.b});
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case ActivationKind::kHardSigmoid:
      return std::min(std::max(double{f.a} * x + double{f.b}, 0.0), 1.0);
    case ActivationKind::kHardSwish:
      return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    default:
      return x;
  }
}

template <typename T>
class ScaleShift : public testing::Test {};
using ScaledTypes = testing::Types<float, Float16, BFloat16>;
TYPED_TEST_SUITE(ScaleShift, ScaledTypes);

TYPED_TEST(ScaleShift, RandomRowsUnderEveryActivation) {
  using T = TypeParam;
  const Activation kinds[] = {{},
                              {ActivationKind::kRelu},
                              {ActivationKind::kLeakyRelu, 0.1f},
                              {ActivationKind::kClip, -0.25f, 0.5f},
                              {ActivationKind::kSigmoid},
                              {ActivationKind::kSilu},
                              {ActivationKind::kTanh},
                              {ActivationKind::kGelu},
                              {ActivationKind::kHardSigmoid, 0.2f, 0.5f},
                              {ActivationKind::kHardSwish}};
  for_each_target([&] {
    Dice dice(5);
    for (int round = 0; round < 100; ++round) {
      const int64_t rows = dice.pick(0, 6), width = dice.length(), place = dice.pick(0, 2);
      const bool scales = dice.one_of(2), shifts = dice.one_of(2), adds = dice.one_of(2);
      const auto x = dice.values<T>(rows * width, -3, 3), z = dice.values<T>(rows * width, -3, 3);
      const Array<T> of_x(x), of_z(z), apart(rows * width);
      const Array<float> scale(dice.values<float>(scales ? width : 1)),
          shift(dice.values<float>(shifts ? width : 1));
      const Array<T>& y = place == 0 ? apart : place == 1 ? of_x : of_z;
      const Activation f = kinds[round % 10];
      scale_shift({rows, width, scale.data(), shift.data(), scales, shifts, f}, of_x.data(),
                  adds ? of_z.data() : nullptr, y.data());
      for (int64_t i = 0; i < rows * width; ++i) {
        const auto at = static_cast<size_t>(i);
        const double exact = activate(f, scale.at(scales ? i % width : 0) * wide(x[at]) +
                                             shift.at(shifts ? i % width : 0) + (adds ? wide(z[at]) : 0));
        ASSERT_NEAR(y.at(i), exact, allowed<T>(exact, 8))
            << "activation " << static_cast<int>(f.kind) << ", " << i << " of " << rows << "x" << width;
      }
    }
  });
}

// ---- patches --------------------------------------------------------------------------------------------

TYPED_TEST(Channels, RunsAreCopiedExactly) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(6);
    for (int round = 0; round < 60; ++round) {
      const int64_t length = dice.one_of(3) ? 8 * dice.pick(1, 4) : dice.length(), count = dice.pick(1, 9);
      const int64_t from_stride = dice.pick(0, 2 * length), to_stride = length + dice.pick(0, 9);
      const Array<T> from(dice.values<T>((count - 1) * from_stride + length));
      const auto before = dice.values<W>((count - 1) * to_stride + length);
      const Array<W> to(before);
      copy_runs(from.data(), from_stride, to.data(), to_stride, length, count);
      for (int64_t i = 0; i < to.size(); ++i) {
        const int64_t run = i / to_stride, at = i % to_stride;
        const double expected =
            at < length ? from.at(run * from_stride + at) : wide(before[static_cast<size_t>(i)]);
        ASSERT_EQ(to.at(i), expected) << at << " of " << length << " in run " << run;
      }
    }
  });
}

TYPED_TEST(Channels, ProductsOfPixels) {
  using T = TypeParam;
  using W = LaneOf<T>;
  for_each_target([] {
    Dice dice(7);
    for (int round = 0; round < 60; ++round) {
      const int64_t channels = dice.length(), count = dice.pick(0, 40);
      const int64_t a_stride = channels + dice.pick(0, 9), b_stride = channels + dice.pick(0, 9);
      const int64_t last = std::max<int64_t>(count - 1, 0);
      const Array<T> a(dice.values<T>(last * a_stride + channels)),
          b(dice.values<T>(last * b_stride + channels));
      const auto before = dice.values<W>(channels);
      const Array<W> to(before);
      add_channel_products(a.data(), a_stride, b.data(), b_stride, channels, count, to.data());
      for (int64_t c = 0; c < channels; ++c) {
        double exact = wide(before[static_cast<size_t>(c)]), size = std::fabs(exact);
        for (int64_t i = 0; i < count; ++i) {
          const double term = a.at(i * a_stride + c) * b.at(i * b_stride + c);
          exact += term, size += std::fabs(term);
        }
        ASSERT_NEAR(to.at(c), exact, allowed<W>(exact, size)) << c << " of " << channels;
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
