// FusedMatMul and FusedConv with the attribute `rounded`, against the definition on rounded operands.
#include <cmath>
#include <random>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

std::vector<float> numbers(int64_t count, uint32_t seed, bool integers) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> integer(-7, 7);
  std::uniform_real_distribution<float> real(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = integers ? static_cast<float>(integer(generator)) : real(generator);
  return values;
}

double rounded(float value) {
  return static_cast<float>(BFloat16(value));
}

// An operator of our own with the attribute.
struct Rounded : OpCase {
  explicit Rounded(const char* name) : OpCase(name, 1, std::string(kPlimsollDomain)) {
    attr("rounded", int64_t{1});
  }
};

void check_matmul(int64_t batch, int64_t m, int64_t k, int64_t n, bool trans_b, bool integers) {
  SCOPED_TRACE(testing::Message() << batch << " x " << m << " x " << k << " x " << n);
  const std::vector<float> a = numbers(batch * m * k, 1, integers), b = numbers(k * n, 2, integers);
  const std::vector<float> bias = numbers(n, 3, integers), z = numbers(batch * m * n, 4, integers);
  std::vector<float> y;
  for (int64_t row = 0; row < batch * m; ++row) {
    for (int64_t col = 0; col < n; ++col) {
      double sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum += rounded(a[static_cast<size_t>(row * k + i)]) *
               rounded(b[static_cast<size_t>(trans_b ? col * k + i : i * n + col)]);
      const double value = 0.5 * sum + double{bias[static_cast<size_t>(col)]} + double{z[y.size()]};
      y.push_back(static_cast<float>(std::max(0.0, value)));
    }
  }
  Rounded("FusedMatMul")
      .input<float>({batch, m, k}, a)
      .input<float>(trans_b ? std::vector<int64_t>{n, k} : std::vector<int64_t>{k, n}, b)
      .input<float>({n}, bias)
      .input<float>({batch, m, n}, z)
      .attr("alpha", 0.5f)
      .attr("trans_b", int64_t{trans_b})
      .attr("activation", "Relu")
      .run()
      .expect<float>(0, {batch, m, n}, y, integers ? 0 : 1e-5);
}

TEST(RoundedMatMul, AsItIsDefined) {
  check_matmul(1, 3, 33, 17, false, true);
  check_matmul(2, 20, 70, 40, true, true);
  check_matmul(1, 1, 100, 50, false, false);
  check_matmul(3, 17, 64, 48, true, false);
  check_matmul(1, 35, 31, 5, false, false);
}

// Through a transposition of A and of the result no rows follow each other.
TEST(RoundedMatMul, Permuted) {
  const int64_t heads = 3, m = 5, k = 34, n = 18;
  const std::vector<float> a = numbers(m * heads * k, 1, true), b = numbers(k * n, 2, true);
  std::vector<float> y(static_cast<size_t>(m * heads * n));
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t col = 0; col < n; ++col) {
        float sum = 0;
        for (int64_t i = 0; i < k; ++i)
          sum += a[static_cast<size_t>((row * heads + head) * k + i)] * b[static_cast<size_t>(i * n + col)];
        y[static_cast<size_t>((row * heads + head) * n + col)] = sum;
      }
    }
  }
  const std::vector<int64_t> perm = {1, 0, 2};
  Rounded("FusedMatMul")
      .input<float>({m, heads, k}, a)
      .input<float>({k, n}, b)
      .attr("perm_a", perm)
      .attr("perm_y", perm)
      .run()
      .expect<float>(0, {m, heads, n}, y, 0);
}

struct ConvKind {
  int64_t in_c, out_c, size, kernel, stride = 1, pad = 0, dilation = 1;
  bool integers = true;
};

void check_conv(const ConvKind& c) {
  SCOPED_TRACE(testing::Message() << c.in_c << " to " << c.out_c << ", kernel " << c.kernel << ", stride "
                                  << c.stride);
  const int64_t batch = 2, in_h = c.size, in_w = c.size + 2;
  const auto out_of = [&](int64_t in) {
    return (in + 2 * c.pad - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
  };
  const int64_t out_h = out_of(in_h), out_w = out_of(in_w);
  const std::vector<float> x = numbers(batch * in_h * in_w * c.in_c, 5, c.integers);
  const std::vector<float> w = numbers(c.out_c * c.in_c * c.kernel * c.kernel, 6, c.integers);
  const std::vector<float> bias = numbers(c.out_c, 7, c.integers);
  std::vector<float> scale(static_cast<size_t>(c.out_c));
  for (size_t i = 0; i < scale.size(); ++i) scale[i] = i % 2 == 0 ? 1.0f : 0.5f;
  const std::vector<float> z = numbers(batch * out_h * out_w * c.out_c, 8, c.integers);
  std::vector<float> y;
  for (int64_t pixel = 0; pixel < batch * out_h * out_w; ++pixel) {
    const int64_t ox = pixel % out_w, oy = pixel / out_w % out_h, image = pixel / out_w / out_h;
    for (int64_t o = 0; o < c.out_c; ++o) {
      double sum = 0;
      for (int64_t ky = 0; ky < c.kernel; ++ky) {
        for (int64_t kx = 0; kx < c.kernel; ++kx) {
          const int64_t iy = oy * c.stride - c.pad + ky * c.dilation,
                        ix = ox * c.stride - c.pad + kx * c.dilation;
          if (iy < 0 || iy >= in_h || ix < 0 || ix >= in_w) continue;
          for (int64_t i = 0; i < c.in_c; ++i)
            sum += rounded(x[static_cast<size_t>(((image * in_h + iy) * in_w + ix) * c.in_c + i)]) *
                   rounded(w[static_cast<size_t>(((o * c.in_c + i) * c.kernel + ky) * c.kernel + kx)] *
                           scale[static_cast<size_t>(o)]);
        }
      }
      const double value = sum + double{bias[static_cast<size_t>(o)]} + double{z[y.size()]};
      y.push_back(static_cast<float>(std::max(0.0, value)));
    }
  }
  const std::vector<int64_t> pads(4, c.pad), strides(2, c.stride), dilations(2, c.dilation);
  Rounded("FusedConv")
      .input<float>({batch, in_h, in_w, c.in_c}, x)
      .input<float>({c.out_c, c.in_c, c.kernel, c.kernel}, w)
      .input<float>({c.out_c}, bias)
      .input<float>({batch, out_h, out_w, c.out_c}, z)
      .input<float>({c.out_c}, scale)
      .attr("channels_last", int64_t{1})
      .attr("pads", pads)
      .attr("strides", strides)
      .attr("dilations", dilations)
      .attr("activation", "Relu")
      .run()
      .expect<float>(0, {batch, out_h, out_w, c.out_c}, y, c.integers ? 0 : 1e-5);
}

TEST(RoundedConv, AsItIsDefined) {
  check_conv({.in_c = 40, .out_c = 20, .size = 5, .kernel = 1});
  check_conv({.in_c = 33, .out_c = 17, .size = 6, .kernel = 1, .stride = 2});
  check_conv({.in_c = 33, .out_c = 17, .size = 4, .kernel = 1, .pad = 1});
  check_conv({.in_c = 5, .out_c = 19, .size = 7, .kernel = 3, .pad = 1});
  check_conv({.in_c = 3, .out_c = 16, .size = 11, .kernel = 7, .stride = 2, .pad = 3});
  check_conv({.in_c = 6, .out_c = 33, .size = 9, .kernel = 3, .stride = 2, .pad = 2, .dilation = 2});
  check_conv({.in_c = 8, .out_c = 40, .size = 8, .kernel = 3, .pad = 1, .integers = false});
}

// What the kernel cannot do is computed as without the attribute.
TEST(RoundedConv, LeavesOthersAlone) {
  const std::vector<float> x = {1.00390625f, 2, 3, 4}, w = {1, 0, 0, 1};  // the first is no bfloat16
  Rounded("FusedConv")
      .input<float>({1, 2, 2}, x)
      .input<float>({2, 2, 1}, w)
      .run()
      .expect<float>(0, {1, 2, 2}, x, 0);
}

}  // namespace
}  // namespace plimsoll
