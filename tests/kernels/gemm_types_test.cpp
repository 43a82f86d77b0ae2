// Products of 16-bit and 64-bit floats against plain loops in double; gemm_test.cpp looks at f32 more
// closely.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "kernels/each_target.h"
#include "kernels/gemm.h"

namespace plimsoll::kernels {
namespace {

template <typename T>
double wide(T value) {
  return static_cast<double>(static_cast<LaneOf<T>>(value));
}
// Units in the last place of 1, halved.
template <typename T>
constexpr double kRounding = std::is_same_v<T, double>     ? 1e-16
                             : std::is_same_v<T, Float16>  ? 0x1p-11
                             : std::is_same_v<T, BFloat16> ? 0x1p-8
                                                           : 0x1p-24;

template <typename T>
std::vector<T> random_values(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = T(uniform(generator));
  return values;
}

// Of exactly the size asked for, so that the address sanitizer sees any access behind it.
class Aligned {
 public:
  explicit Aligned(size_t bytes) : data_(std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free) {}
  void* get() const { return data_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> data_;
};

struct Case {
  GemmShape shape;
  bool transposed_a = false, transposed_b = false, bias = false, addend = false, in_place = false;
  bool dynamic = false;
  float alpha = 1, beta = 1;
  Activation activation = {};
  int64_t padding = 1;  // of every row
};

double activate(const Activation& f, double x) {
  switch (f.kind) {
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kClip:
      return std::min(std::max(x, double{f.a}), double{f.b});
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case ActivationKind::kTanh:
      return std::tanh(x);
    default:
      return x;
  }
}

template <typename T>
class GemmTypesTest : public testing::Test {
 protected:
  static void check(const Case& t) {
    const auto [m, k, n] = t.shape;
    SCOPED_TRACE(testing::Message() << m << "x" << k << "x" << n << " ta " << t.transposed_a << " tb "
                                    << t.transposed_b << " activation "
                                    << static_cast<int>(t.activation.kind));
    const int64_t lda = (t.transposed_a ? m : k) + t.padding, ldb = (t.transposed_b ? k : n) + t.padding;
    const int64_t ldc = n + t.padding;
    const auto a = random_values<T>(lda * (t.transposed_a ? k : m), 1);
    const auto b = random_values<T>(ldb * (t.transposed_b ? n : k), 2);
    const auto bias = random_values<T>(n, 3), other = random_values<T>(m * ldc, 4);
    const GemmLeft<T> left{a.data(), t.transposed_a ? 1 : lda, t.transposed_a ? lda : 1};
    const GemmRight right{b.data(), t.transposed_b ? 1 : ldb, t.transposed_b ? ldb : 1};
    std::vector<T> first;
    for (int threads : {1, 2, 5}) {
      auto c = other;
      GemmEpilogue<T> e;
      e.alpha = t.alpha, e.beta = t.beta, e.activation = t.activation;
      e.bias = t.bias ? bias.data() : nullptr;
      e.addend = !t.addend ? nullptr : t.in_place ? c.data() : other.data();
      e.addend_stride = ldc;
      if (t.dynamic) {
        Aligned scratch(gemm_dynamic_scratch_bytes<T>(t.shape, left.row_stride, left.col_stride, threads));
        gemm_as<T>(t.shape, left, right, {c.data(), ldc}, e, scratch.get(), threads);
      } else {
        Aligned packed(packed_b_bytes<T>(k, n));
        pack_b<T>(k, n, right, packed.get(), threads);
        const size_t bytes = gemm_scratch_bytes<T>(t.shape, left.row_stride, left.col_stride, threads);
        ASSERT_LE(bytes, gemm_most_scratch_bytes<T>(k, threads));
        Aligned scratch(bytes);
        gemm_packed_as<T>(t.shape, left, packed.get(), {c.data(), ldc}, e, scratch.get(), threads);
      }
      if (first.empty()) first = c;
      ASSERT_TRUE(c.empty() || std::memcmp(c.data(), first.data(), c.size() * sizeof(T)) == 0) << threads;
    }
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t col = 0; col < ldc; ++col) {
        const auto at = static_cast<size_t>(row * ldc + col);
        if (col >= n) {
          ASSERT_EQ(wide(first[at]), wide(other[at])) << "wrote behind row " << row;
          continue;
        }
        double sum = 0, size = 0;
        for (int64_t i = 0; i < k; ++i) {
          const double product = wide(a[static_cast<size_t>(row * left.row_stride + i * left.col_stride)]) *
                                 wide(b[static_cast<size_t>(i * right.row_stride + col * right.col_stride)]);
          sum += product;
          size += std::fabs(product);
        }
        double x = double{t.alpha} * sum + (t.bias ? wide(bias[static_cast<size_t>(col)]) : 0);
        if (t.addend) x += double{t.beta} * wide(other[at]);
        const double expected = activate(t.activation, x);
        // The sum's own rounding, then one of the result.
        const double own = std::is_same_v<T, double> ? 1e-15 : 1e-6;
        ASSERT_NEAR(wide(first[at]), expected,
                    own * (size + 2) + kRounding<T> * std::fabs(expected) + 1e-7 * kRounding<T>)
            << row << ", " << col;
      }
    }
  }
};
using Types = testing::Types<Float16, BFloat16, double>;
TYPED_TEST_SUITE(GemmTypesTest, Types);

TYPED_TEST(GemmTypesTest, SmallShapesAndTails) {
  for_each_target([] {
    for (int64_t m : {0, 1, 2, 3, 6, 13, 15, 29}) {
      for (int64_t k : {0, 1, 7, 65}) {
        for (int64_t n : {0, 1, 7, 8, 9, 16, 17, 33, 64, 131}) {
          TestFixture::check({.shape = {m, k, n}, .bias = (k + n) % 2 == 0});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TYPED_TEST(GemmTypesTest, StridesAndBlocks) {
  for_each_target([] {
    for (const GemmShape shape :
         {GemmShape{33, 70, 45}, {5, 6, 7}, {16, 33, 130}, {200, 801, 70}, {70, 2000, 40}}) {
      for (int bits = 0; bits < 8; ++bits) {
        TestFixture::check({.shape = shape,
                            .transposed_a = (bits & 1) != 0,
                            .transposed_b = (bits & 2) != 0,
                            .bias = true,
                            .dynamic = (bits & 4) != 0});
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

TYPED_TEST(GemmTypesTest, Epilogues) {
  for_each_target([] {
    for (const Activation& activation : std::vector<Activation>{{},
                                                                {ActivationKind::kRelu},
                                                                {ActivationKind::kClip, -0.5f, 0.75f},
                                                                {ActivationKind::kSilu},
                                                                {ActivationKind::kTanh},
                                                                {ActivationKind::kGelu}}) {
      for (int bits = 0; bits < 16; ++bits) {
        for (const GemmShape shape : {GemmShape{17, 40, 50}, {1, 30, 150}, {3, 0, 20}}) {
          TestFixture::check({.shape = shape,
                              .bias = (bits & 1) != 0,
                              .addend = (bits & 2) != 0,
                              .in_place = (bits & 4) != 0,
                              .alpha = (bits & 8) != 0 ? -0.125f : 1.0f,
                              .beta = (bits & 8) != 0 ? 0.5f : 1.0f,
                              .activation = activation});
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  });
}

TYPED_TEST(GemmTypesTest, RandomShapes) {
  std::mt19937 random(7);
  const auto pick = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(most));
  };
  for (int i = 0; i < 30; ++i) {
    const Case t{.shape = {1 + pick(80), 1 + pick(300), 1 + pick(200)},
                 .transposed_a = pick(3) == 0,
                 .transposed_b = pick(2) == 0,
                 .bias = pick(2) == 0,
                 .addend = pick(2) == 0,
                 .in_place = pick(2) == 0,
                 .dynamic = pick(2) == 0,
                 .padding = pick(4)};
    for_each_target([&] { TestFixture::check(t); });
    if (testing::Test::HasFatalFailure()) return;
  }
}

// A large B is packed past the caches, in another order: panel by panel, as small ones are, the bytes are the
// same.
template <typename T>
void expect_one_format(int64_t k, int64_t n, int threads) {
  const int64_t stride = n + 3, panel = packed_b_format<T>();
  const std::vector<T> b = random_values<T>(k * stride + 1, 5);
  std::vector<T> turned(static_cast<size_t>(k * n));
  for (int64_t row = 0; row < k; ++row) {
    for (int64_t col = 0; col < n; ++col)
      turned[static_cast<size_t>(col * k + row)] = b[static_cast<size_t>(1 + row * stride + col)];
  }
  const size_t bytes = packed_b_bytes<T>(k, n);
  const Aligned by_rows(bytes), by_columns(bytes), by_panels(bytes);
  for (const Aligned* one : {&by_rows, &by_columns, &by_panels}) std::memset(one->get(), 1, bytes);
  pack_b<T>(k, n, {b.data() + 1, stride, 1}, by_rows.get(), threads);
  pack_b<T>(k, n, {turned.data(), 1, k}, by_columns.get(), threads);
  for (int64_t col = 0; col < n; col += panel)
    pack_b<T>(k, std::min(panel, n - col), {b.data() + 1 + col, stride, 1},
              static_cast<T*>(by_panels.get()) + col * k);
  EXPECT_EQ(std::memcmp(by_rows.get(), by_panels.get(), bytes), 0) << k << " x " << n << ", " << threads;
  EXPECT_EQ(std::memcmp(by_columns.get(), by_panels.get(), bytes), 0) << k << " x " << n << ", " << threads;
}

TEST(GemmTypes, ALargeRightOperandIsPackedAsASmallOne) {
  for_each_target([] {
    for (const int threads : {1, 3}) {
      expect_one_format<float>(701, 1003, threads);
      expect_one_format<float>(1030, 512, threads);
      expect_one_format<float>(6, 50001, threads);
      expect_one_format<double>(701, 505, threads);
      expect_one_format<Float16>(1401, 1003, threads);
      expect_one_format<BFloat16>(1401, 1003, threads);
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
