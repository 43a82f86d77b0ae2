// What chooses, compares or samples elements, on random shapes against plain loops: TopK, Gather along any
// axis, NonMaxSuppression, NonZero, GatherND, GridSample, RoiAlign, ReduceLogSumExp, Pow, rows that
// broadcast.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  float real(float low, float high) { return std::uniform_real_distribution<float>(low, high)(random_); }
  std::vector<float> reals(int64_t count, float low, float high) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = real(low, high);
    return values;
  }

 private:
  std::mt19937 random_;
};

TEST(TopK, AlongAnyAxisAgainstAStableSort) {
  Dice dice(1);
  for (int round = 0; round < 40; ++round) {
    const int64_t outer = dice.pick(1, 3), size = dice.pick(1, 300), inner = dice.pick(1, 20);
    const int64_t k = dice.pick(1, dice.pick(0, 2) == 0 ? size : 1 + size / 9);
    const bool largest = dice.pick(0, 1) == 0;
    std::vector<float> in(static_cast<size_t>(outer * size * inner));
    for (float& v : in) v = dice.pick(0, 60) == 0 ? NAN : static_cast<float>(dice.pick(-9, 9)) / 3;
    std::vector<float> best(static_cast<size_t>(outer * k * inner));
    std::vector<int64_t> at(best.size());
    for (int64_t line = 0; line < outer * inner; ++line) {
      const int64_t o = line / inner, i = line % inner;
      const auto value = [&](int64_t n) { return in[static_cast<size_t>((o * size + n) * inner + i)]; };
      std::vector<int64_t> order(static_cast<size_t>(size));
      std::iota(order.begin(), order.end(), int64_t{0});
      const auto less = [](float x, float y) { return std::isnan(y) ? !std::isnan(x) : x < y; };
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return largest ? less(value(b), value(a)) : less(value(a), value(b));
      });
      for (int64_t n = 0; n < k; ++n) {
        const auto to = static_cast<size_t>((o * k + n) * inner + i);
        at[to] = order[static_cast<size_t>(n)];
        best[to] = value(at[to]);
      }
    }
    OpCase c("TopK", 11);
    c.input<float>({outer, size, inner}, in).input<int64_t>({1}, {k}).attr("axis", int64_t{1});
    c.attr("largest", int64_t{largest}).outputs(2).threads(2).run();
    c.expect<int64_t>(1, {outer, k, inner}, at);
    for (size_t i = 0; i < best.size(); ++i) {
      const float found = c.result(0).as<float>()[i];
      ASSERT_TRUE(found == best[i] || (std::isnan(found) && std::isnan(best[i]))) << i;
    }
    if (HasFailure()) FAIL() << outer << " x " << size << " x " << inner << ", " << k;
  }
}

TEST(Gather, AlongAnyAxisInPiecesOfAnySize) {
  Dice dice(7);
  for (int round = 0; round < 40; ++round) {
    const int64_t outer = dice.pick(1, 9), rows = dice.pick(1, 50), inner = dice.pick(1, 5);
    const int64_t count = dice.pick(0, round % 4 == 0 ? 4000 : 60);
    std::vector<int64_t> in(static_cast<size_t>(outer * rows * inner)), out;
    std::iota(in.begin(), in.end(), int64_t{0});
    std::vector<int32_t> indices(static_cast<size_t>(count));
    for (int32_t& i : indices) i = static_cast<int32_t>(dice.pick(-rows, rows - 1));
    for (int64_t o = 0; o < outer; ++o) {
      for (int32_t i : indices) {
        for (int64_t k = 0; k < inner; ++k) out.push_back((o * rows + (i < 0 ? i + rows : i)) * inner + k);
      }
    }
    std::vector<float> floats(in.begin(), in.end()), expected(out.begin(), out.end());
    OpCase("Gather", 13)
        .input<int64_t>({outer, rows, inner}, in)
        .input<int32_t>({count}, indices)
        .attr("axis", int64_t{1})
        .threads(2)
        .run()
        .expect<int64_t>(0, {outer, count, inner}, out);
    OpCase("Gather", 13)
        .input<float>({outer, rows, inner}, floats)
        .input<int64_t>({count}, std::vector<int64_t>(indices.begin(), indices.end()))
        .attr("axis", int64_t{1})
        .run()
        .expect<float>(0, {outer, count, inner}, expected, 0);
    if (HasFailure()) FAIL() << outer << " x " << rows << " x " << inner << ", " << count;
  }
}

TEST(NonMaxSuppression, RandomBoxesAgainstEveryPair) {
  Dice dice(2);
  for (int round = 0; round < 30; ++round) {
    const int64_t batches = dice.pick(1, 2), classes = dice.pick(1, 3), count = dice.pick(1, 150);
    const int64_t most = dice.pick(1, count + 5), format = dice.pick(0, 1);
    const float overlap = dice.real(0, 1), least = dice.pick(0, 1) == 0 ? -1.0f : 0.3f;
    const auto boxes = dice.reals(batches * count * 4, 0.1f, 4);
    std::vector<float> scores(static_cast<size_t>(batches * classes * count));
    for (float& s : scores) s = static_cast<float>(dice.pick(0, 20)) / 20;  // many are equal
    std::vector<int64_t> expected;
    for (int64_t n = 0; n < batches * classes; ++n) {
      struct Sides {
        float low[2], high[2];
      };
      const auto sides = [&](int64_t i) {
        const float* b = boxes.data() + (n / classes * count + i) * 4;
        if (format == 1) return Sides{{b[0] - b[2] / 2, b[1] - b[3] / 2}, {b[0] + b[2] / 2, b[1] + b[3] / 2}};
        return Sides{{std::min(b[1], b[3]), std::min(b[0], b[2])},
                     {std::max(b[1], b[3]), std::max(b[0], b[2])}};
      };
      const auto area = [](const Sides& s) { return (s.high[0] - s.low[0]) * (s.high[1] - s.low[1]); };
      std::vector<int64_t> order, kept;
      for (int64_t i = 0; i < count; ++i)
        if (scores[static_cast<size_t>(n * count + i)] > least) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return scores[static_cast<size_t>(n * count + a)] > scores[static_cast<size_t>(n * count + b)];
      });
      for (int64_t i : order) {
        const Sides a = sides(i);
        const bool stays = std::none_of(kept.begin(), kept.end(), [&](int64_t j) {
          const Sides b = sides(j);
          const float w = std::min(a.high[0], b.high[0]) - std::max(a.low[0], b.low[0]);
          const float h = std::min(a.high[1], b.high[1]) - std::max(a.low[1], b.low[1]);
          return w > 0 && h > 0 && w * h / (area(a) + area(b) - w * h) > overlap;
        });
        if (!stays || static_cast<int64_t>(kept.size()) >= most) continue;
        kept.push_back(i);
        expected.insert(expected.end(), {n / classes, n % classes, i});
      }
    }
    OpCase("NonMaxSuppression", 11)
        .input<float>({batches, count, 4}, boxes)
        .input<float>({batches, classes, count}, scores)
        .input<int64_t>({1}, {most})
        .input<float>({1}, {overlap})
        .input<float>({1}, {least})
        .attr("center_point_box", format)
        .run()
        .expect<int64_t>(0, {static_cast<int64_t>(expected.size()) / 3, 3}, expected);
    if (HasFailure()) FAIL() << count << " boxes";
  }
}

TEST(NonZeroAndGatherND, RandomMasks) {
  Dice dice(3);
  for (int round = 0; round < 30; ++round) {
    const std::vector<int64_t> dims = {dice.pick(1, 4), dice.pick(1, 9), dice.pick(1, 70)};
    const int64_t count = dims[0] * dims[1] * dims[2], rarely = dice.pick(1, 9);
    std::vector<float> in(static_cast<size_t>(count));
    for (float& v : in) v = dice.pick(0, rarely) == 0 ? dice.real(1, 2) : 0.0f;
    std::vector<std::vector<int64_t>> axes(3);
    std::vector<int64_t> tuples;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      if (in[static_cast<size_t>(i)] == 0) continue;
      const int64_t at[] = {i / dims[2] / dims[1], i / dims[2] % dims[1], i % dims[2]};
      for (size_t a = 0; a < 3; ++a) axes[a].push_back(at[a]), tuples.push_back(at[a] - dims[a] * (i % 2));
      values.push_back(in[static_cast<size_t>(i)]);
    }
    const auto found = static_cast<int64_t>(values.size());
    std::vector<int64_t> positions;
    for (const auto& axis : axes) positions.insert(positions.end(), axis.begin(), axis.end());
    OpCase("NonZero", 13).input<float>(dims, in).run().expect<int64_t>(0, {3, found}, positions);
    OpCase("GatherND", 13)
        .input<float>(dims, in)
        .input<int64_t>({found, 3}, tuples)
        .run()
        .expect<float>(0, {found}, values, 0);
    if (HasFailure()) FAIL() << dims[0] << " x " << dims[1] << " x " << dims[2];
  }
}

// Every way outside, both corners, and planes that are too narrow for the quick way.
TEST(GridSample, RandomPlanesAgainstFourElements) {
  Dice dice(4);
  for (int round = 0; round < 40; ++round) {
    const int64_t batch = dice.pick(1, 2), channels = dice.pick(1, 3), h = dice.pick(1, 9),
                  w = dice.pick(1, 9);
    const int64_t rows = dice.pick(1, 9), cols = dice.pick(1, 20), corners = dice.pick(0, 1);
    const bool border = dice.pick(0, 1) == 0;
    const auto x = dice.reals(batch * channels * h * w, -2, 2),
               grid = dice.reals(batch * rows * cols * 2, -1.4f, 1.4f);
    std::vector<float> y;
    for (int64_t n = 0; n < batch * channels; ++n) {
      for (int64_t i = 0; i < rows * cols; ++i) {
        const float* at = grid.data() + (n / channels * rows * cols + i) * 2;
        double places[2];
        for (int d = 0; d < 2; ++d) {
          const double size = static_cast<double>(d == 0 ? w : h), g = double{at[d]};
          places[d] = corners != 0 ? (g + 1) / 2 * (size - 1) : ((g + 1) * size - 1) / 2;
          if (border) places[d] = std::clamp(places[d], 0.0, size - 1);
        }
        double sum = 0;
        for (int tap = 0; tap < 4; ++tap) {
          const double left = std::floor(places[0]), top = std::floor(places[1]);
          const auto column = static_cast<int64_t>(left) + tap % 2, row = static_cast<int64_t>(top) + tap / 2;
          const double u = places[0] - left, v = places[1] - top;
          if (column < 0 || column >= w || row < 0 || row >= h) continue;
          sum += (tap % 2 != 0 ? u : 1 - u) * (tap / 2 != 0 ? v : 1 - v) *
                 double{x[static_cast<size_t>((n * h + row) * w + column)]};
        }
        y.push_back(static_cast<float>(sum));
      }
    }
    OpCase("GridSample", 16)
        .input<float>({batch, channels, h, w}, x)
        .input<float>({batch, rows, cols, 2}, grid)
        .attr("align_corners", corners)
        .attr("padding_mode", border ? "border" : "zeros")
        .threads(2)
        .run()
        .expect<float>(0, {batch, channels, rows, cols}, y, 1e-4);
    if (HasFailure()) FAIL() << h << " x " << w;
  }
}

// Few samples of a bin and many, regions that leave the image.
TEST(RoiAlign, RandomRegionsAgainstEverySample) {
  Dice dice(8);
  for (int round = 0; round < 30; ++round) {
    const int64_t channels = dice.pick(1, 4), h = dice.pick(1, 12), w = dice.pick(1, 12),
                  bins = dice.pick(1, 4);
    const int64_t ratio = dice.pick(1, round % 5 == 0 ? 12 : 3);
    const auto x = dice.reals(2 * channels * h * w, -2, 2);
    const float left = dice.real(-3, 8), top = dice.real(-3, 8);
    const std::vector<float> roi = {left, top, left + dice.real(0.5f, 9), top + dice.real(0.5f, 9)};
    std::vector<float> y;
    for (int64_t bin = 0; bin < channels * bins * bins; ++bin) {
      const float* plane = x.data() + (channels + bin / bins / bins) * h * w;
      double sum = 0;
      for (int64_t sample = 0; sample < ratio * ratio; ++sample) {
        const auto place = [&](int64_t axis, int64_t cell, int64_t n, int64_t size) {
          const double low = double{roi[static_cast<size_t>(axis)]} - 0.5;
          const double length = double{roi[static_cast<size_t>(axis + 2)]} - 0.5 - low;
          const double at = low + length / static_cast<double>(bins) *
                                      (static_cast<double>(cell) +
                                       (static_cast<double>(n) + 0.5) / static_cast<double>(ratio));
          return at < -1 || at > static_cast<double>(size)
                     ? NAN
                     : std::clamp(at, 0.0, static_cast<double>(size - 1));
        };
        const double row = place(1, bin / bins % bins, sample / ratio, h),
                     column = place(0, bin % bins, sample % ratio, w);
        if (std::isnan(row) || std::isnan(column)) continue;
        const auto r = static_cast<int64_t>(row), k = static_cast<int64_t>(column);
        const double v = row - static_cast<double>(r), u = column - static_cast<double>(k);
        const auto value = [&](int64_t i, int64_t j) {
          return double{plane[std::min(i, h - 1) * w + std::min(j, w - 1)]};
        };
        sum += (1 - v) * ((1 - u) * value(r, k) + u * value(r, k + 1)) +
               v * ((1 - u) * value(r + 1, k) + u * value(r + 1, k + 1));
      }
      y.push_back(static_cast<float>(sum / static_cast<double>(ratio * ratio)));
    }
    OpCase("RoiAlign", 16)
        .input<float>({2, channels, h, w}, x)
        .input<float>({1, 4}, roi)
        .input<int64_t>({1}, {1})
        .attr("output_height", bins)
        .attr("output_width", bins)
        .attr("sampling_ratio", ratio)
        .threads(2)
        .run()
        .expect<float>(0, {1, channels, bins, bins}, y, 1e-4);
    if (HasFailure()) FAIL() << h << " x " << w << ", " << ratio;
  }
}

TEST(ReduceLogSumExp, RandomShapesAgainstDoubles) {
  Dice dice(5);
  for (int round = 0; round < 40; ++round) {
    const std::vector<int64_t> dims = {dice.pick(1, 3), dice.pick(1, round % 4 == 0 ? 5000 : 90),
                                       dice.pick(1, 150)};
    const bool last = dice.pick(0, 1) == 0;
    auto in = dice.reals(dims[0] * dims[1] * dims[2], -30, 90);
    for (float& v : in)
      if (dice.pick(0, 40) == 0) v = -kInfinity;
    in[0] = dice.pick(0, 3) == 0 ? kInfinity : in[0];
    const int64_t length = last ? dims[2] : dims[1], lines = dims[0] * (last ? dims[1] : dims[2]);
    std::vector<float> expected;
    for (int64_t line = 0; line < lines; ++line) {
      const auto value = [&](int64_t i) {
        const int64_t at =
            last ? line * length + i : (line / dims[2] * length + i) * dims[2] + line % dims[2];
        return double{in[static_cast<size_t>(at)]};
      };
      double largest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < length; ++i) largest = std::max(largest, value(i));
      for (int64_t i = 0; i < length && std::isfinite(largest); ++i) sum += std::exp(value(i) - largest);
      expected.push_back(static_cast<float>(std::isfinite(largest) ? largest + std::log(sum) : largest));
    }
    OpCase c("ReduceLogSumExp", 13);
    c.input<float>(dims, in).attr("axes", std::vector<int64_t>{last ? 2 : 1}).attr("keepdims", int64_t{0});
    c.threads(2).run();
    for (size_t i = 0; i < expected.size(); ++i) {
      const float found = c.result().as<float>()[i];
      ASSERT_TRUE(found == expected[i] || std::fabs(found - expected[i]) < 1e-4f)
          << found << ", " << expected[i];
    }
  }
}

TEST(Pow, RootsAtTheEdges) {
  const std::vector<float> x = {-0.0f, 0, 4, 81, -1, kInfinity, -kInfinity, NAN, 1e-30f, 1e30f};
  for (const float exponent : {0.5f, -0.5f, 0.75f}) {
    OpCase c("Pow", 15);
    c.input<float>({10}, x).input<float>({}, {exponent}).run();
    for (size_t i = 0; i < x.size(); ++i) {
      const float found = c.result().as<float>()[i], exact = std::pow(x[i], exponent);
      EXPECT_TRUE(found == exact || (std::isnan(found) && std::isnan(exact)) ||
                  std::fabs(found - exact) < 1e-6f * std::fabs(exact))
          << x[i] << "^" << exponent << " is " << exact << ", not " << found;
    }
  }
}

// Operands as wide as the row, or of one element, on either side.
TEST(Broadcasting, ComparisonsAndRemainders) {
  Dice dice(6);
  for (int round = 0; round < 24; ++round) {
    const int64_t rows = dice.pick(1, 5), cols = dice.pick(1, 40);
    const int64_t a_cols = dice.pick(0, 1) == 0 ? 1 : cols,
                  b_cols = a_cols == cols && dice.pick(0, 1) == 0 ? 1 : cols;
    std::vector<int64_t> a(static_cast<size_t>(rows * a_cols)), b(static_cast<size_t>(rows * b_cols));
    for (int64_t& v : a) v = dice.pick(-50, 50);
    for (int64_t& v : b) v = dice.pick(1, 9) * (dice.pick(0, 1) == 0 ? 1 : -1);
    std::vector<int64_t> rest;
    std::vector<uint8_t> below;
    for (int64_t i = 0; i < rows * cols; ++i) {
      const int64_t x = a[static_cast<size_t>(i / cols * a_cols + (a_cols == 1 ? 0 : i % cols))];
      const int64_t y = b[static_cast<size_t>(i / cols * b_cols + (b_cols == 1 ? 0 : i % cols))];
      rest.push_back(((x % y) + y) % y);
      below.push_back(x < y ? 1 : 0);
    }
    const int64_t width = std::max(a_cols, b_cols);
    OpCase("Mod", 13)
        .input<int64_t>({rows, a_cols}, a)
        .input<int64_t>({rows, b_cols}, b)
        .run()
        .expect<int64_t>(0, {rows, width}, rest);
    OpCase c("Less", 13);
    c.input<int64_t>({rows, a_cols}, a).input<int64_t>({rows, b_cols}, b).run();
    for (size_t i = 0; i < below.size(); ++i) ASSERT_EQ(c.result().as<uint8_t>()[i], below[i]) << i;
    if (HasFailure()) FAIL() << rows << " x " << cols;
  }
}

}  // namespace
}  // namespace plimsoll
