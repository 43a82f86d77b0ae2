// Both gradients of a 3x3 convolution by Winograd's way, and the convolution itself with weights that are not
// packed ahead, against the definition in double.
#include <cmath>
#include <random>

#include "kernels/each_target.h"
#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr const char* kOurs = "ai.plimsoll";

// Channels last. Padding behind is what the sizes leave.
struct Problem {
  int64_t batch, height, width, in_c, out_c, top, left, bottom, right;
  int64_t out_h() const { return height + top + bottom - 2; }
  int64_t out_w() const { return width + left + right - 2; }
  std::vector<float> x, dy, w;
};

std::vector<float> random_values(int64_t count, std::mt19937& random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

Problem make(int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Problem p;
  p.batch = pick(1, 3), p.height = pick(2, 11), p.width = pick(2, 11);
  p.in_c = pick(1, 40), p.out_c = pick(1, 40);
  p.top = pick(0, 2), p.left = pick(0, 2), p.bottom = pick(0, 2), p.right = pick(0, 2);
  p.top += p.out_h() < 1, p.left += p.out_w() < 1;
  p.x = random_values(p.batch * p.height * p.width * p.in_c, random);
  p.dy = random_values(p.batch * p.out_h() * p.out_w() * p.out_c, random);
  p.w = random_values(p.out_c * p.in_c * 9, random);
  return p;
}

// Calls f(element of x, of y, of w) for each product of the convolution.
template <typename F>
void for_each_product(const Problem& p, F f) {
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t oh = 0; oh < p.out_h(); ++oh)
      for (int64_t ow = 0; ow < p.out_w(); ++ow)
        for (int64_t tap = 0; tap < 9; ++tap) {
          const int64_t ih = oh - p.top + tap / 3, iw = ow - p.left + tap % 3;
          if (ih < 0 || ih >= p.height || iw < 0 || iw >= p.width) continue;
          for (int64_t o = 0; o < p.out_c; ++o)
            for (int64_t i = 0; i < p.in_c; ++i)
              f(static_cast<size_t>(((n * p.height + ih) * p.width + iw) * p.in_c + i),
                static_cast<size_t>(((n * p.out_h() + oh) * p.out_w() + ow) * p.out_c + o),
                static_cast<size_t>((o * p.in_c + i) * 9 + tap));
        }
}

std::vector<float> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

OpCase& windowed(OpCase& op, const Problem& p) {
  return op.attr("kernel_shape", std::vector<int64_t>{3, 3})
      .attr("pads", std::vector<int64_t>{p.top, p.left, p.bottom, p.right})
      .attr("channels_last", int64_t{1})
      .attr("winograd", int64_t{2});
}

// Sums of so many random signs grow as the root.
double tolerance(double terms) {
  return 2e-6 * (1 + std::sqrt(terms));
}

TEST(WinogradGradients, OfTheWeights) {
  for (int seed = 0; seed < 12; ++seed) {
    SCOPED_TRACE(seed);
    const Problem p = make(seed);
    const int threads = seed % 3 + 1;
    std::vector<double> dw(p.w.size());
    for_each_product(p, [&](size_t x, size_t y, size_t w) { dw[w] += double{p.x[x]} * double{p.dy[y]}; });
    for_each_target([&] {
      OpCase op("ConvWeightGradient", 1, kOurs);
      op.input<float>({p.batch, p.height, p.width, p.in_c}, p.x)
          .input<float>({p.batch, p.out_h(), p.out_w(), p.out_c}, p.dy);
      windowed(op, p).threads(threads).run_alone().expect<float>(
          0, {p.out_c, p.in_c, 3, 3}, rounded(dw),
          tolerance(static_cast<double>(p.batch * p.out_h() * p.out_w())));
    });
    if (testing::Test::HasFailure()) return;
  }
}

// More tiles than a block has, and more output channels than sums are held for.
TEST(WinogradGradients, OfManyWeightsAndPixels) {
  std::mt19937 random(3);
  const int threads = 2;
  for (const auto& [size, in_c, out_c] : {std::array{27, 17, 5}, std::array{5, 1100, 70}}) {
    Problem p{2, size, size + 2, in_c, out_c, 1, 1, 1, 1, {}, {}, {}};
    p.x = random_values(p.batch * p.height * p.width * p.in_c, random);
    p.dy = random_values(p.batch * p.out_h() * p.out_w() * p.out_c, random);
    std::vector<double> dw(static_cast<size_t>(p.out_c * p.in_c * 9));
    for_each_product(p, [&](size_t x, size_t y, size_t w) { dw[w] += double{p.x[x]} * double{p.dy[y]}; });
    OpCase op("ConvWeightGradient", 1, kOurs);
    op.input<float>({p.batch, p.height, p.width, p.in_c}, p.x)
        .input<float>({p.batch, p.out_h(), p.out_w(), p.out_c}, p.dy);
    windowed(op, p).threads(threads).run_alone().expect<float>(
        0, {p.out_c, p.in_c, 3, 3}, rounded(dw),
        tolerance(static_cast<double>(p.batch * p.out_h() * p.out_w())));
  }
}

TEST(WinogradGradients, OfTheData) {
  for (int seed = 20; seed < 32; ++seed) {
    SCOPED_TRACE(seed);
    const Problem p = make(seed);
    std::vector<double> dx(p.x.size());
    for_each_product(p, [&](size_t x, size_t y, size_t w) { dx[x] += double{p.w[w]} * double{p.dy[y]}; });
    OpCase op("ConvDataGradient", 1, kOurs);
    op.input<float>({p.batch, p.out_h(), p.out_w(), p.out_c}, p.dy)
        .input<float>({p.out_c, p.in_c, 3, 3}, p.w)
        .input<int64_t>({4}, {p.batch, p.in_c, p.height, p.width});
    windowed(op, p).run().expect<float>(0, {p.batch, p.height, p.width, p.in_c}, rounded(dx),
                                        tolerance(9.0 * static_cast<double>(p.out_c)));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(WinogradGradients, TheConvolutionItself) {
  for (int seed = 40; seed < 46; ++seed) {
    SCOPED_TRACE(seed);
    const Problem p = make(seed);
    std::vector<double> y(p.dy.size());
    for_each_product(p, [&](size_t x, size_t at, size_t w) { y[at] += double{p.w[w]} * double{p.x[x]}; });
    OpCase op("Conv", 1, kOurs);
    op.input<float>({p.batch, p.height, p.width, p.in_c}, p.x).input<float>({p.out_c, p.in_c, 3, 3}, p.w);
    windowed(op, p).run().expect<float>(0, {p.batch, p.out_h(), p.out_w(), p.out_c}, rounded(y),
                                        tolerance(9.0 * static_cast<double>(p.in_c)));
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace plimsoll
