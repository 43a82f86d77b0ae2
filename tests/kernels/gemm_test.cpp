#include "kernels/gemm.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace plimsoll::kernels {
namespace {

// Memory of exactly the size asked for, so that the address sanitizer sees any access behind it.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : data_(std::aligned_alloc(kGemmAlignment, (bytes + 63) / 64 * 64)) {}
  void* get() { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
};

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(generator);
  return values;
}

double activate(const Activation& f, double x) {
  const auto clamp = [](double v, double low, double high) { return std::min(std::max(v, low), high); };
  switch (f.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kLeakyRelu:
      return x < 0 ? f.a * x : x;
    case ActivationKind::kClip:
      return clamp(x, f.a, f.b);
    case ActivationKind::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kTanh:
      return std::tanh(x);
    case ActivationKind::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case ActivationKind::kHardSigmoid:
      return clamp(f.a * x + f.b, 0, 1);
    case ActivationKind::kHardSwish:
      return x * clamp(x / 6 + 0.5, 0, 1);
  }
  return 0;
}

struct Case {
  GemmShape shape = {};
  bool transposed_a = false;
  bool transposed_b = false;
  int64_t padding = 0;  // added to every leading dimension
  size_t misalign = 0;  // bytes before B's data
  bool bias = false;
  bool addend = false;
  bool in_place = false;
  bool addend_last = false;
  float alpha = 1;
  float beta = 1;
  Activation activation = {};
  bool dynamic = false;
};

std::string describe(const Case& t) {
  return "m=" + std::to_string(t.shape.m) + " k=" + std::to_string(t.shape.k) +
         " n=" + std::to_string(t.shape.n) + " ta=" + std::to_string(t.transposed_a) +
         " tb=" + std::to_string(t.transposed_b) +
         " activation=" + std::to_string(static_cast<int>(t.activation.kind));
}

// Runs with one and with two threads: both must agree to the bit, and with the reference within rounding.
void check(const Case& t) {
  SCOPED_TRACE(describe(t));
  const auto [m, k, n] = t.shape;
  const int64_t lda = (t.transposed_a ? m : k) + t.padding;
  const int64_t ldb = (t.transposed_b ? k : n) + t.padding;
  const int64_t ldc = n + t.padding;
  const int64_t ld_addend = t.in_place ? ldc : n + 2 * t.padding;
  const auto a = random_floats(static_cast<size_t>(lda * (t.transposed_a ? k : m)), 1);
  const auto b = random_floats(static_cast<size_t>(ldb * (t.transposed_b ? n : k)), 2);
  const auto bias = random_floats(static_cast<size_t>(n), 3);
  const auto other = random_floats(static_cast<size_t>(m * ld_addend), 4);
  const auto before = t.in_place ? other : random_floats(static_cast<size_t>(m * ldc), 5);

  const GemmLeft left{a.data(), t.transposed_a ? 1 : lda, t.transposed_a ? lda : 1};
  std::vector<char> raw(b.size() * sizeof(float) + t.misalign);
  if (!b.empty()) std::memcpy(raw.data() + t.misalign, b.data(), b.size() * sizeof(float));
  const GemmRight right{raw.data() + t.misalign, t.transposed_b ? 1 : ldb, t.transposed_b ? ldb : 1};

  std::vector<float> first;
  for (int threads : {1, 2, 5}) {
    auto c = before;
    GemmEpilogue e;
    e.alpha = t.alpha;
    e.beta = t.beta;
    e.bias = t.bias ? bias.data() : nullptr;
    e.addend = !t.addend ? nullptr : t.in_place ? c.data() : other.data();
    e.addend_stride = ld_addend;
    e.addend_last = t.addend_last;
    e.activation = t.activation;
    const GemmOutput out{c.data(), ldc};
    if (t.dynamic) {
      Buffer scratch(gemm_dynamic_scratch_bytes(t.shape, left.row_stride, left.col_stride, threads));
      gemm(t.shape, left, right, out, e, scratch.get(), threads);
    } else {
      Buffer packed(packed_b_bytes(k, n));
      pack_b(k, n, right, packed.get(), threads);
      Buffer scratch(gemm_scratch_bytes(t.shape, left.row_stride, left.col_stride, threads));
      gemm_packed(t.shape, left, packed.get(), out, e, scratch.get(), threads);
    }
    if (first.empty()) first = c;
    ASSERT_TRUE(c.empty() || std::memcmp(c.data(), first.data(), c.size() * sizeof(float)) == 0)
        << "differs with " << threads << " threads";
  }

  for (int64_t row = 0; row < m; ++row) {
    for (int64_t col = 0; col < ldc; ++col) {
      const float found = first[static_cast<size_t>(row * ldc + col)];
      if (col >= n) {
        ASSERT_EQ(found, before[static_cast<size_t>(row * ldc + col)]) << "wrote behind row " << row;
        continue;
      }
      double sum = 0;
      for (int64_t i = 0; i < k; ++i) {
        sum += double{left.data[row * left.row_stride + i * left.col_stride]} *
               double{b[static_cast<size_t>(i * right.row_stride + col * right.col_stride)]};
      }
      double x = t.alpha * sum + (t.bias ? bias[static_cast<size_t>(col)] : 0);
      const double addend = t.addend ? double{t.beta} * other[static_cast<size_t>(row * ld_addend + col)] : 0;
      x = t.addend_last ? activate(t.activation, x) + addend : activate(t.activation, x + addend);
      // Rounding of one chain of k additions, whose partial sums grow with the square root of k.
      const double tolerance = 1e-6 * (20 + 0.25 * static_cast<double>(k));
      ASSERT_NEAR(found, x, tolerance) << "row " << row << " col " << col;
    }
  }
}

// Every case runs on every instruction set that this machine has.
class GemmTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { choose(GetParam()); }
  void TearDown() override { choose(0); }

 private:
  static void choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

TEST_P(GemmTest, SmallShapesAndTails) {
  for (int64_t m : {0, 1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 29}) {
    for (int64_t k : {0, 1, 3, 4, 17, 64}) {
      for (int64_t n : {0, 1, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65, 131}) {
        check({.shape = {m, k, n}, .padding = (m + n) % 3, .bias = (k + n) % 2 == 0});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// One or two rows by what is not packed.
TEST_P(GemmTest, ThinDynamicShapes) {
  for (int64_t m : {1, 2, 3}) {
    for (int64_t k : {0, 1, 3, 17, 64, 75, 600}) {
      for (int64_t n : {1, 7, 16, 33, 64, 65, 130, 257, 1030}) {
        for (int bits = 0; bits < 4; ++bits) {
          check({.shape = {m, k, n},
                 .transposed_a = (bits & 1) != 0,
                 .transposed_b = (bits & 2) != 0,
                 .padding = (m + n) % 3,
                 .misalign = static_cast<size_t>(k % 2),
                 .bias = (k + n) % 2 == 0,
                 .addend = k % 3 == 0,
                 .in_place = n % 2 == 0,
                 .alpha = m == 2 ? 0.5f : 1.0f,
                 .activation = {n % 4 == 0 ? ActivationKind::kRelu : ActivationKind::kNone},
                 .dynamic = true});
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(GemmTest, BlockedShapes) {
  for (const GemmShape shape : {GemmShape{128, 768, 96},
                                {197, 401, 70},
                                {49, 1024, 64},
                                {64, 1023, 40},
                                {1, 3000, 1001},
                                {3, 800, 257},
                                {200, 2048, 33},
                                {1000, 24, 72},
                                {700, 385, 16}}) {
    check({.shape = shape, .bias = true});
    check({.shape = shape,
           .transposed_a = true,
           .transposed_b = true,
           .padding = 1,
           .addend = true,
           .in_place = true});
    if (HasFatalFailure()) return;
  }
}

TEST_P(GemmTest, StridesAndAlignment) {
  for (const GemmShape shape : {GemmShape{33, 70, 45}, {1, 513, 64}, {5, 6, 7}, {16, 33, 130}}) {
    for (int bits = 0; bits < 8; ++bits) {
      for (size_t misalign : {0, 1, 2, 7}) {
        check({.shape = shape,
               .transposed_a = (bits & 1) != 0,
               .transposed_b = (bits & 2) != 0,
               .padding = (bits & 4) != 0 ? 3 : 0,
               .misalign = misalign,
               .dynamic = misalign == 0});
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(GemmTest, Epilogues) {
  const std::vector<Activation> activations = {{},
                                               {ActivationKind::kRelu},
                                               {ActivationKind::kLeakyRelu, 0.1f},
                                               {ActivationKind::kClip, -0.5f, 0.75f},
                                               {ActivationKind::kSigmoid},
                                               {ActivationKind::kSilu},
                                               {ActivationKind::kTanh},
                                               {ActivationKind::kGelu},
                                               {ActivationKind::kHardSigmoid, 0.2f, 0.5f},
                                               {ActivationKind::kHardSwish}};
  for (const Activation& activation : activations) {
    for (int bits = 0; bits < 32; ++bits) {
      for (const GemmShape shape : {GemmShape{17, 40, 50}, {1, 30, 150}, {20, 800, 35}, {3, 0, 20}}) {
        check({.shape = shape,
               .padding = 2,
               .bias = (bits & 1) != 0,
               .addend = (bits & 2) != 0,
               .in_place = (bits & 4) != 0,
               .addend_last = (bits & 8) != 0,
               .alpha = (bits & 16) != 0 ? -0.125f : 1.0f,
               .beta = (bits & 16) != 0 ? 0.5f : 1.0f,
               .activation = activation});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// A product with one 1 in A applies the activation to the bias.
TEST_P(GemmTest, ActivationsFarFromZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0,  -0.0f, 1e-6f, -3,    5,    -8,    12,       -20,
                                60, -90,   100,   -1000, 1e6f, -1e6f, infinity, NAN};
  for (const Activation& activation : std::vector<Activation>{{ActivationKind::kRelu},
                                                              {ActivationKind::kClip, -1, 6},
                                                              {ActivationKind::kSigmoid},
                                                              {ActivationKind::kSilu},
                                                              {ActivationKind::kTanh},
                                                              {ActivationKind::kGelu},
                                                              {ActivationKind::kHardSwish}}) {
    std::vector<float> c(x.size());
    GemmEpilogue e;
    e.bias = x.data();
    e.activation = activation;
    gemm_packed({1, 0, static_cast<int64_t>(x.size())}, {nullptr, 0, 1}, nullptr, {c.data(), 16}, e, nullptr,
                1);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::isnan(x[i]) ? NAN : activate(activation, double{x[i]});
      SCOPED_TRACE("activation " + std::to_string(static_cast<int>(activation.kind)) + " of " +
                   std::to_string(x[i]));
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(c[i])) << c[i];
      } else if (std::isinf(expected)) {
        EXPECT_EQ(c[i], expected);
      } else {
        EXPECT_NEAR(c[i], expected, 1e-6 * std::max(1.0, std::fabs(expected)));
      }
    }
  }
}

std::vector<int64_t> available_targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, GemmTest, testing::ValuesIn(available_targets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

}  // namespace
}  // namespace plimsoll::kernels
