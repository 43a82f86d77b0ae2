#include "kernels/strassen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
// Of exactly the size asked for, so that the address sanitizer sees any access behind it; full of NaN.
std::unique_ptr<void, Free> buffer(size_t bytes) {
  std::unique_ptr<void, Free> result(std::aligned_alloc(kGemmAlignment, (bytes + 63) / 64 * 64));
  std::fill_n(static_cast<float*>(result.get()), (bytes + 63) / 64 * 16,
              std::numeric_limits<float>::quiet_NaN());
  return result;
}

struct Problem {
  GemmShape shape;
  int64_t padding = 0;  // behind each row of A and C
  bool bias = false, addend = false, in_place = false, addend_last = false;
  float alpha = 1, beta = 1;
  Activation activation;
  std::vector<float> a, b, other, biases;
  int64_t a_stride() const { return shape.k + padding; }
  int64_t c_stride() const { return shape.n + padding; }
};

class Problems {
 public:
  int64_t pick(int64_t from, int64_t to) { return std::uniform_int_distribution<int64_t>(from, to)(random_); }

  Problem make(GemmShape shape, bool plain = false) {
    Problem p;
    p.shape = shape;
    if (!plain) {
      p.padding = pick(0, 3);
      p.bias = pick(0, 1) == 1;
      p.addend = pick(0, 1) == 1;
      p.in_place = pick(0, 1) == 1;
      p.addend_last = pick(0, 3) == 0;
      if (pick(0, 4) == 0) p.alpha = 0.5f;
      if (pick(0, 4) == 0) p.beta = -0.75f;
      const Activation kinds[] = {{}, {ActivationKind::kRelu}, {ActivationKind::kClip, -0.25f, 0.5f}};
      p.activation = kinds[pick(0, 2)];
    }
    p.a = values(p.a_stride() * shape.m);
    p.b = values(shape.k * shape.n);
    p.other = values(p.c_stride() * shape.m);
    p.biases = values(shape.n);
    return p;
  }

 private:
  std::vector<float> values(int64_t count) {
    std::vector<float> result(static_cast<size_t>(count));
    for (float& v : result) v = std::uniform_real_distribution<float>(-1, 1)(random_);
    return result;
  }
  std::mt19937 random_{17};
};

std::vector<float> run(const Problem& p, int threads) {
  const auto packed = buffer(packed_b_bytes(p.shape.k, p.shape.n));
  pack_b(p.shape.k, p.shape.n, {p.b.data(), p.shape.n, 1}, packed.get());
  const size_t bytes = strassen_scratch_bytes(p.shape, p.a_stride(), threads);
  EXPECT_LE(bytes, strassen_most_scratch_bytes(p.shape.k, threads));
  const auto scratch = buffer(bytes);
  std::vector<float> c =
      p.in_place ? p.other : std::vector<float>(p.other.size(), std::numeric_limits<float>::infinity());
  GemmEpilogue<> e;
  e.alpha = p.alpha, e.beta = p.beta, e.addend_last = p.addend_last, e.activation = p.activation;
  e.bias = p.bias ? p.biases.data() : nullptr;
  e.addend = !p.addend ? nullptr : p.in_place ? c.data() : p.other.data();
  e.addend_stride = p.c_stride();
  strassen(p.shape, {p.a.data(), p.a_stride(), 1}, packed.get(), {c.data(), p.c_stride()}, e, scratch.get(),
           threads);
  return c;
}

double activate(const Activation& f, double x) {
  if (f.kind == ActivationKind::kRelu) return std::max(x, 0.0);
  return f.kind == ActivationKind::kClip ? std::clamp(x, double{f.a}, double{f.b}) : x;
}

double expected(const Problem& p, int64_t row, int64_t col) {
  double sum = 0;
  for (int64_t k = 0; k < p.shape.k; ++k)
    sum += double{p.a[static_cast<size_t>(row * p.a_stride() + k)]} *
           double{p.b[static_cast<size_t>(k * p.shape.n + col)]};
  const double x = p.alpha * sum + (p.bias ? p.biases[static_cast<size_t>(col)] : 0);
  const double addend =
      p.addend ? double{p.beta} * p.other[static_cast<size_t>(row * p.c_stride() + col)] : 0;
  return p.addend_last ? activate(p.activation, x) + addend : activate(p.activation, x + addend);
}

void check(const Problem& p, int64_t row_step = 1) {
  SCOPED_TRACE(testing::Message() << p.shape.m << " x " << p.shape.k << " x " << p.shape.n << " padding "
                                  << p.padding << " addend " << p.addend << " in place " << p.in_place
                                  << " last " << p.addend_last << " alpha " << p.alpha << " beta " << p.beta);
  const std::vector<float> found = run(p, 1);
  for (int threads : {2, 3, 5}) ASSERT_EQ(run(p, threads), found) << threads << " threads";
  // Sums of so many random signs grow as the root; what rounds is sums of parts, up to four times as large.
  const double tolerance = 2e-6 * (1 + std::sqrt(static_cast<double>(p.shape.k)));
  for (int64_t row = 0; row < p.shape.m; row += row_step) {
    for (int64_t col = 0; col < p.c_stride(); ++col) {
      const auto at = static_cast<size_t>(row * p.c_stride() + col);
      if (col < p.shape.n)
        ASSERT_NEAR(found[at], expected(p, row, col), tolerance) << "row " << row << " column " << col;
      else
        ASSERT_EQ(found[at], p.in_place ? p.other[at] : std::numeric_limits<float>::infinity()) << row;
    }
  }
}

// Halves of few rows and steps, panels without a partner, columns that fill no panel.
TEST(Strassen, WhatIsNotFiniteStaysInItsRow) {
  for_each_target([] {
    Problems problems;
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      Problem p = problems.make({130, 768, 768}, true);
      ASSERT_TRUE(strassen_pays(p.shape));
      const int64_t row = 77;
      p.a[static_cast<size_t>(row * p.a_stride() + 700)] = bad;
      const std::vector<float> c = run(p, 2);
      for (int64_t i = 0; i < p.shape.m * p.shape.n; ++i)
        ASSERT_EQ(std::isfinite(c[static_cast<size_t>(i)]), i / p.shape.n != row) << i;
    }
  });
}

TEST(Strassen, RandomShapesAgainstTheDefinition) {
  for_each_target([] {
    Problems problems;
    for (int i = 0; i < 60; ++i) {
      check(problems.make({problems.pick(2, 70), 2 * problems.pick(1, 40), problems.pick(64, 200)}));
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

// Several blocks of rows and of k, unequal ones; rows of A that meet in one set of the cache.
TEST(Strassen, ManyBlocks) {
  for_each_target([] {
    Problems problems;
    for (const GemmShape shape :
         {GemmShape{451, 98, 130}, GemmShape{57, 1602, 96}, GemmShape{230, 1024, 256}}) {
      check(problems.make(shape), 13);
      check(problems.make(shape, true), 13);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(Strassen, PaysForLargeProductsAlone) {
  for_each_target([] {
    EXPECT_TRUE(strassen_pays({197, 768, 3072}));
    EXPECT_TRUE(strassen_pays({128, 3072, 768}));
    EXPECT_TRUE(strassen_pays({784, 192, 768}));
    EXPECT_FALSE(strassen_pays({1, 768, 3072}));
    EXPECT_FALSE(strassen_pays({40, 768, 3072}));
    EXPECT_FALSE(strassen_pays({3136, 48, 256}));
    EXPECT_FALSE(strassen_pays({3136, 256, 48}));
    EXPECT_FALSE(strassen_pays({197, 769, 3072}));  // k has no halves
    EXPECT_FALSE(strassen_pays({}));
  });
}

}  // namespace
}  // namespace plimsoll::kernels
