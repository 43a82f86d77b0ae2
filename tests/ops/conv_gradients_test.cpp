// Both gradients of convolutions of random shapes, in both layouts and both wide types, at every instruction
// set, against the definition in double.
#include <cmath>
#include <random>

#include "kernels/each_target.h"
#include "ops/op_case.h"

namespace plimsoll {
namespace {

constexpr const char* kOurs = "ai.plimsoll";
using Dims = std::vector<int64_t>;

// Channels last; a kernel's height and width have strides and dilations of their own.
struct Problem {
  int64_t batch, groups, in_c, out_c;  // channels of a group
  Dims in, kernel, stride, dilation, pads;
  bool channels_last;
  int64_t out(size_t i) const {
    return (in[i] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilation[i] - 1) / stride[i] + 1;
  }
  Dims x_dims() const { return {batch, in[0], in[1], groups * in_c}; }
  Dims y_dims() const { return {batch, out(0), out(1), groups * out_c}; }
  Dims w_dims() const { return {groups * out_c, in_c, kernel[0], kernel[1]}; }
};

int64_t product(const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

Problem make(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Problem p;
  const bool depthwise = pick(0, 3) == 0;
  p.batch = pick(1, 3), p.groups = depthwise ? pick(2, 70) : pick(0, 2) == 0 ? pick(2, 3) : 1;
  p.in_c = depthwise ? 1 : pick(1, 20), p.out_c = depthwise ? 1 : pick(1, 20);
  p.in = {pick(3, 9), pick(3, 12)}, p.kernel = {pick(1, 3), pick(1, 3)};
  p.stride = {pick(1, 2), pick(1, 3)}, p.dilation = {pick(1, 2), pick(1, 2)};
  p.pads = {pick(0, 2), pick(0, 2), pick(0, 2), pick(0, 2)};
  for (size_t i : {size_t{0}, size_t{1}}) p.in[i] = std::max(p.in[i], (p.kernel[i] - 1) * p.dilation[i] + 1);
  p.channels_last = pick(0, 1) == 0;
  return p;
}

template <typename T>
std::vector<T> random_values(int64_t count, std::mt19937& random) {
  std::vector<T> values(static_cast<size_t>(count));
  for (T& v : values) v = static_cast<T>(std::uniform_real_distribution<float>(-1, 1)(random));
  return values;
}

// Calls f(element of x, of y, of w) for each product of the convolution.
template <typename F>
void for_each_product(const Problem& p, F f) {
  const int64_t channels = p.groups * p.out_c;
  for (int64_t at = 0; at < product(p.y_dims()); ++at) {
    const int64_t o = at % channels, ow = at / channels % p.out(1), oh = at / channels / p.out(1) % p.out(0);
    const int64_t n = at / channels / p.out(1) / p.out(0);
    for (int64_t tap = 0; tap < p.kernel[0] * p.kernel[1]; ++tap) {
      const int64_t ih = oh * p.stride[0] - p.pads[0] + tap / p.kernel[1] * p.dilation[0];
      const int64_t iw = ow * p.stride[1] - p.pads[1] + tap % p.kernel[1] * p.dilation[1];
      if (ih < 0 || ih >= p.in[0] || iw < 0 || iw >= p.in[1]) continue;
      for (int64_t i = 0; i < p.in_c; ++i)
        f(static_cast<size_t>(((n * p.in[0] + ih) * p.in[1] + iw) * p.groups * p.in_c + o / p.out_c * p.in_c +
                              i),
          static_cast<size_t>(at), static_cast<size_t>((o * p.in_c + i) * p.kernel[0] * p.kernel[1] + tap));
    }
  }
}

// Images as the operator is to see them.
Dims in_layout(const Problem& p, const Dims& last) {
  return p.channels_last ? last : Dims{last[0], last[3], last[1], last[2]};
}
template <typename T>
std::vector<T> in_layout(const Problem& p, const Dims& dims, const std::vector<T>& last) {
  if (p.channels_last) return last;
  std::vector<T> first(last.size());
  const int64_t channels = dims[3], pixels = dims[1] * dims[2];
  for (int64_t i = 0; i < product(dims); ++i) {
    const int64_t image = i / channels / pixels, pixel = i / channels % pixels;
    first[static_cast<size_t>((image * channels + i % channels) * pixels + pixel)] =
        last[static_cast<size_t>(i)];
  }
  return first;
}

OpCase& windowed(OpCase& op, const Problem& p) {
  return op.attr("kernel_shape", p.kernel)
      .attr("strides", p.stride)
      .attr("dilations", p.dilation)
      .attr("pads", p.pads)
      .attr("group", p.groups)
      .attr("channels_last", int64_t{p.channels_last});
}

// Sums of so many random signs grow as the root.
template <typename T>
double tolerance(double terms) {
  return (std::is_same_v<T, double> ? 1e-6 : 2e-6) * (1 + std::sqrt(terms));  // expect compares as floats
}

template <typename T>
std::vector<T> as(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

template <typename T>
class ConvGradients : public testing::Test {
 protected:
  // f(problem, number of threads), for many problems.
  template <typename F>
  static void for_problems(unsigned seed, F f) {
    std::mt19937 random(seed);
    for (int round = 0; round < 12 && !testing::Test::HasFailure(); ++round) {
      const Problem p = make(random);
      SCOPED_TRACE(testing::Message() << "round " << round << ", groups " << p.groups << " of " << p.in_c
                                      << " to " << p.out_c << ", kernel " << p.kernel[0] << "x" << p.kernel[1]
                                      << (p.channels_last ? ", channels last" : ""));
      f(p, random, round % 3 + 1);
    }
  }
};
using WideTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(ConvGradients, WideTypes);

// Not under the truths: while channels are not known, it cannot tell its scratch.
TYPED_TEST(ConvGradients, OfTheWeights) {
  using T = TypeParam;
  this->for_problems(1, [](const Problem& p, std::mt19937& random, int threads) {
    const auto x = random_values<T>(product(p.x_dims()), random),
               dy = random_values<T>(product(p.y_dims()), random);
    std::vector<double> dw(static_cast<size_t>(product(p.w_dims())));
    for_each_product(p, [&](size_t i, size_t o, size_t k) { dw[k] += double{x[i]} * double{dy[o]}; });
    const double terms = static_cast<double>(p.batch * p.out(0) * p.out(1));
    for_each_target([&] {
      OpCase op("ConvWeightGradient", 1, kOurs);
      op.input<T>(in_layout(p, p.x_dims()), in_layout(p, p.x_dims(), x))
          .template input<T>(in_layout(p, p.y_dims()), in_layout(p, p.y_dims(), dy));
      windowed(op, p).threads(threads).run_alone().template expect<T>(0, p.w_dims(), as<T>(dw),
                                                                      tolerance<T>(terms));
    });
  });
}

TYPED_TEST(ConvGradients, OfTheData) {
  using T = TypeParam;
  this->for_problems(2, [](const Problem& p, std::mt19937& random, int threads) {
    const auto w = random_values<T>(product(p.w_dims()), random),
               dy = random_values<T>(product(p.y_dims()), random);
    std::vector<double> dx(static_cast<size_t>(product(p.x_dims())));
    for_each_product(p, [&](size_t i, size_t o, size_t k) { dx[i] += double{w[k]} * double{dy[o]}; });
    OpCase op("ConvDataGradient", 1, kOurs);
    op.input<T>(in_layout(p, p.y_dims()), in_layout(p, p.y_dims(), dy))
        .template input<T>(p.w_dims(), w)
        .template input<int64_t>({4}, {p.batch, p.groups * p.in_c, p.in[0], p.in[1]});
    const double terms = static_cast<double>(p.out_c * p.kernel[0] * p.kernel[1]);
    windowed(op, p).threads(threads).run().template expect<T>(
        0, in_layout(p, p.x_dims()), as<T>(in_layout(p, p.x_dims(), dx)), tolerance<T>(terms));
  });
}

}  // namespace
}  // namespace plimsoll
