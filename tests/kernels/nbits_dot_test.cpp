#include "kernels/nbits_dot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

enum class Zeros { kNone, kPacked, kReal };

struct Case {
  int64_t rows, k, n;
  int bits;
  int64_t block;
  Zeros zeros = Zeros::kPacked;
  bool bias = false;
};

// Memory of exactly the size asked for, so that the address sanitizer sees any access behind it.
class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : data_(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64))) {}
  void* get() { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
};

class Problem {
 public:
  explicit Problem(const Case& c) : c_(c) {
    std::mt19937 random(static_cast<uint32_t>(c.rows * 131 + c.k * 17 + c.n + c.bits));
    std::normal_distribution<float> normal;
    std::uniform_int_distribution<int> byte(0, 255);
    matrix_.k = c.k, matrix_.n = c.n, matrix_.bits = c.bits, matrix_.block = c.block;
    const int64_t blocks = matrix_.blocks();
    for (int64_t i = 0; i < c.n * blocks * c.block * c.bits / 8; ++i)
      data_.push_back(static_cast<uint8_t>(byte(random)));
    for (int64_t i = 0; i < c.n * blocks; ++i) {
      scales_.push_back(0.1f * normal(random));
      real_zeros_.push_back(4 * normal(random));
    }
    for (int64_t i = 0; i < c.n * ((blocks * c.bits + 7) / 8); ++i)
      zeros_.push_back(static_cast<uint8_t>(byte(random)));
    for (int64_t i = 0; i < c.rows * c.k; ++i) a_.push_back(normal(random));
    for (int64_t i = 0; i < c.n; ++i) bias_.push_back(normal(random));
    matrix_.data = data_.data(), matrix_.scales = scales_.data();
    if (c.zeros == Zeros::kPacked) matrix_.zeros = zeros_.data();
    if (c.zeros == Zeros::kReal) matrix_.real_zeros = real_zeros_.data();
  }

  // In double, from the definition; of each element also how much it sums up. `bytes`: A rounded as kBytes
  // has it.
  struct Expected {
    std::vector<double> y, size;
  };
  Expected expected(bool bytes) const {
    Expected result;
    for (int64_t r = 0; r < c_.rows; ++r) {
      const std::vector<double> a = row(r, bytes);
      for (int64_t n = 0; n < c_.n; ++n) {
        double sum = c_.bias ? bias_[at(n)] : 0, size = std::fabs(sum);
        for (int64_t k = 0; k < c_.k; ++k) {
          const double product = a[at(k)] * weight(k, n);
          sum += product;
          size += std::fabs(product) + std::fabs(a[at(k)] * zero(k, n) * scale(k, n));
        }
        result.y.push_back(sum);
        result.size.push_back(size);
      }
    }
    return result;
  }

  std::vector<float> multiply(NBitsForm form, int64_t first, int64_t last) {
    Buffer arranged(nbits_row_bytes(matrix_, form) * c_.rows);
    nbits_arrange(matrix_, form, a_.data(), c_.k, c_.rows, arranged.get());
    std::vector<float> y(at(c_.rows * c_.n), -7.0f);
    const NBitsRows rows = {arranged.get(), c_.rows, c_.bias ? bias_.data() : nullptr, y.data(), c_.n};
    nbits_dot(matrix_, form, rows, first, last);
    return y;
  }

 private:
  static size_t at(int64_t i) { return static_cast<size_t>(i); }
  unsigned packed(const std::vector<uint8_t>& bytes, int64_t from, int64_t i) const {
    const int64_t bit = i * c_.bits;
    return (bytes[at(from + bit / 8)] >> (bit % 8)) & ((1u << c_.bits) - 1);
  }
  double scale(int64_t k, int64_t n) const { return scales_[at(n * matrix_.blocks() + k / c_.block)]; }
  double zero(int64_t k, int64_t n) const {
    const int64_t block = k / c_.block;
    if (c_.zeros == Zeros::kNone) return 1 << (c_.bits - 1);
    if (c_.zeros == Zeros::kReal) return real_zeros_[at(n * matrix_.blocks() + block)];
    return packed(zeros_, n * ((matrix_.blocks() * c_.bits + 7) / 8), block);
  }
  double weight(int64_t k, int64_t n) const {
    const unsigned q = packed(data_, n * matrix_.blocks() * c_.block * c_.bits / 8, k);
    return (q - zero(k, n)) * scale(k, n);
  }
  std::vector<double> row(int64_t r, bool bytes) const {
    std::vector<double> values(a_.begin() + r * c_.k, a_.begin() + (r + 1) * c_.k);
    for (int64_t k0 = 0; bytes && k0 < c_.k; k0 += c_.block) {
      float most = 0;
      const int64_t end = std::min(k0 + c_.block, c_.k);
      for (int64_t k = k0; k < end; ++k) most = std::max(most, std::fabs(a_[at(r * c_.k + k)]));
      for (int64_t k = k0; k < end; ++k)
        values[at(k)] = std::nearbyint(a_[at(r * c_.k + k)] * (127 / most)) * double{most / 127};
    }
    return values;
  }

  Case c_;
  NBitsMatrix matrix_;
  std::vector<uint8_t> data_, zeros_;
  std::vector<float> scales_, real_zeros_, a_, bias_;
};

void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.rows << " x " << c.k << " x " << c.n << ", " << c.bits
                                  << " bits, blocks of " << c.block << ", zeros "
                                  << static_cast<int>(c.zeros));
  Problem problem(c);
  for (const NBitsForm form : {NBitsForm::kFloat, NBitsForm::kBytes}) {
    if (form == NBitsForm::kBytes && !nbits_has_bytes(c.bits)) continue;
    const Problem::Expected expected = problem.expected(form == NBitsForm::kBytes);
    const std::vector<float> y = problem.multiply(form, 0, c.n);
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], expected.y[i], 4e-7 * expected.size[i] + 1e-6)
          << static_cast<int>(form) << " at " << i;
  }
}

TEST(NBitsDot, AgreesWithTheDefinitionForEveryLayout) {
  for_each_form([] {
    for (int bits : {2, 4, 8}) {
      for (int64_t block : {16, 32, 64, 128, 256}) {
        for (const Zeros zeros : {Zeros::kNone, Zeros::kPacked, Zeros::kReal}) {
          for (int64_t k : {16, 100, 384, 777}) check({1, k, 9, bits, block, zeros});
        }
      }
    }
  });
}

TEST(NBitsDot, AgreesForRowsAndColumnsThatTilesLeaveOver) {
  for_each_form([] {
    for (int64_t rows : {1, 2, 3, 4, 5, 7, 9}) {
      for (int64_t n : {1, 2, 3, 4, 7, 21}) check({rows, 130, n, 4, 32, Zeros::kPacked, true});
    }
    for (int64_t k : {1, 2, 15, 17, 127, 129}) check({2, k, 5, 4, 16});
  });
}

TEST(NBitsDot, WritesTheColumnsItIsGivenAlone) {
  Problem problem({2, 64, 11, 4, 32});
  const std::vector<float> all = problem.multiply(NBitsForm::kFloat, 0, 11),
                           part = problem.multiply(NBitsForm::kFloat, 3, 9);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(part[i], i % 11 >= 3 && i % 11 < 9 ? all[i] : -7.0f) << i;
}

}  // namespace
}  // namespace plimsoll::kernels
