#include "kernels/int_gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

// Memory of exactly the size asked for, so that the address sanitizer sees any access behind it.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : data_(std::aligned_alloc(64, (bytes + 63) / 64 * 64)) {}
  void* get() { return data_.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::unique_ptr<void, Free> data_;
};

struct Case {
  int64_t m, k, n;
  bool a_signed = false, b_signed = true, transposed_a = false, transposed_b = false, row_zeros = false,
       column_zeros = false;
  int threads = 1;
  bool extreme = false;  // every element as large as it can be
  bool small = false;    // signed weights of 7 bits
  // Where A lies about: most elements at most `spread` from it, one in 60 anywhere.
  int32_t about = 0, spread = 0;
  bool symmetric = false;  // B has no zero points
  bool read = false;       // A is read row by row, and what lies between rows is spoilt
};

int32_t number(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

class Problem {
 public:
  explicit Problem(const Case& c) : c_(c), a_(random(c.m * c.k, 1)), b_(random(c.k * c.n, 2)) {
    for (int64_t i = 0; i < c.m; ++i)
      a_zeros_.push_back(c.row_zeros ? zero(i, c.a_signed) : zero(0, c.a_signed));
    for (int64_t i = 0; i < c.n; ++i)
      b_zeros_.push_back(c.column_zeros ? zero(i, c.b_signed)
                         : c.symmetric  ? (c.b_signed ? 0 : 128)
                                        : zero(3, c.b_signed));
  }

  // In 64 bits, then wrapped.
  std::vector<int32_t> expected() const {
    std::vector<int32_t> y;
    for (int64_t i = 0; i < c_.m; ++i) {
      for (int64_t j = 0; j < c_.n; ++j) {
        int64_t sum = 0;
        for (int64_t k = 0; k < c_.k; ++k)
          sum += int64_t{number(a_[index_a(i, k)], c_.a_signed) - a_zeros_[static_cast<size_t>(i)]} *
                 (number(b_[index_b(k, j)], c_.b_signed) - b_zeros_[static_cast<size_t>(j)]);
        y.push_back(static_cast<int32_t>(sum));
      }
    }
    return y;
  }

  IntGemmFinish finish() const {
    IntGemmFinish f;
    f.b_signed = c_.b_signed;
    if (c_.column_zeros) f.b_zero_points = b_zeros_.data();
    if (!c_.column_zeros && !b_zeros_.empty()) f.b_zero_point = b_zeros_[0];
    return f;
  }

  void multiply(const IntGemmFinish& finish, IntGemmResult type, void* y) const {
    Buffer packed(int_gemm_packed_bytes(c_.k, c_.n));
    Buffer scratch(static_cast<size_t>(int_gemm_scratch_bytes(c_.k, c_.threads)));
    int_gemm_pack(c_.k, c_.n,
                  {b_.data(), c_.transposed_b ? 1 : c_.n, c_.transposed_b ? c_.k : 1, c_.b_signed},
                  packed.get());
    IntGemmLeft left;
    left.data = a_.data();
    left.row_stride = c_.transposed_a ? 1 : c_.k, left.col_stride = c_.transposed_a ? c_.m : 1;
    left.is_signed = c_.a_signed;
    if (c_.read) left.read_rows = read_rows, left.context = this;
    if (c_.row_zeros) left.zero_points = a_zeros_.data();
    if (!c_.row_zeros && !a_zeros_.empty()) left.zero_point = a_zeros_[0];
    int_gemm({c_.m, c_.k, c_.n}, left, packed.get(), {y, c_.n, type}, finish, scratch.get(), c_.threads);
  }

 private:
  static void read_rows(const void* context, int64_t row, int64_t count, uint8_t* to, int64_t stride) {
    const Problem& self = *static_cast<const Problem*>(context);
    for (int64_t i = 0; i < count; ++i, to += stride) {
      std::fill_n(to, stride, uint8_t{0xA5});
      std::copy_n(self.a_.begin() + (row + i) * self.c_.k, self.c_.k, to);
    }
  }

  std::vector<uint8_t> random(int64_t count, uint32_t seed) const {
    std::mt19937 generator(seed);
    std::uniform_int_distribution<int> uniform(0, 255);
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (uint8_t& byte : bytes)
      byte = static_cast<uint8_t>(c_.extreme ? (seed == 1 ? 255 : 128) : uniform(generator));
    if (c_.spread > 0 && seed == 1) {
      for (uint8_t& byte : bytes) {
        const int near = c_.about + uniform(generator) % (2 * c_.spread + 1) - c_.spread;
        byte = static_cast<uint8_t>(uniform(generator) < 4 ? byte : std::clamp(near, 0, 255));
      }
    }
    if (c_.small && seed == 2) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(byte % 129 - 64);
    }
    return bytes;
  }
  static int32_t zero(int64_t i, bool is_signed) {
    return static_cast<int32_t>((i * 37 + 5) % 256) - (is_signed ? 128 : 0);
  }
  size_t index_a(int64_t i, int64_t k) const {
    return static_cast<size_t>(c_.transposed_a ? k * c_.m + i : i * c_.k + k);
  }
  size_t index_b(int64_t k, int64_t j) const {
    return static_cast<size_t>(c_.transposed_b ? j * c_.k + k : k * c_.n + j);
  }

  Case c_;
  std::vector<uint8_t> a_, b_;
  std::vector<int32_t> a_zeros_, b_zeros_;
};

void check(const Case& c) {
  SCOPED_TRACE(testing::Message() << c.m << " x " << c.k << " x " << c.n << ", threads " << c.threads);
  const Problem problem(c);
  std::vector<int32_t> y(static_cast<size_t>(c.m * c.n), -1);
  problem.multiply(problem.finish(), IntGemmResult::kInt32, y.data());
  EXPECT_EQ(y, problem.expected());
}

TEST(IntGemm, IsExactForRowsAndColumnsThatTilesLeaveOver) {
  for_each_form([] {
    for (int64_t m : {1, 2, 5, 7, 13, 49, 97}) {
      for (int64_t n : {1, 3, 31, 33, 70}) check({m, 19, n});
    }
    for (int64_t k : {0, 1, 2, 3, 4, 5, 63, 64, 300}) check({9, k, 40});
  });
}

// As many rows and as long ones as whole tiles and steps of AMX have, and some more and less.
TEST(IntGemm, IsExactAroundTilesOfRows) {
  for_each_form([] {
    for (int64_t m : {12, 15, 16, 17, 31, 32, 33, 48, 65, 96, 97, 130, 200}) {
      for (int64_t k : {8, 13, 64, 68, 71, 130}) {
        for (bool a_signed : {false, true}) check({m, k, 49, a_signed});
      }
    }
    for (int64_t n : {1, 16, 17, 32, 64}) check({70, 150, n});
  });
}

TEST(IntGemm, IsExactForEveryTypeStrideAndZeroPointOfManyRows) {
  for_each_form([] {
    for (int bits = 0; bits < 64; ++bits) {
      Case c{43, 77, 37};
      c.a_signed = (bits & 1) != 0, c.b_signed = (bits & 2) != 0;
      c.transposed_a = (bits & 4) != 0, c.transposed_b = (bits & 8) != 0;
      c.row_zeros = (bits & 16) != 0, c.column_zeros = (bits & 32) != 0;
      check(c);
    }
  });
}

TEST(IntGemm, IsExactForEveryTypeStrideAndZeroPoint) {
  for_each_form([] {
    for (int bits = 0; bits < 64; ++bits) {
      Case c{11, 21, 37};
      c.a_signed = (bits & 1) != 0, c.b_signed = (bits & 2) != 0;
      c.transposed_a = (bits & 4) != 0, c.transposed_b = (bits & 8) != 0;
      c.row_zeros = (bits & 16) != 0, c.column_zeros = (bits & 32) != 0;
      check(c);
    }
  });
}

TEST(IntGemm, NeverSaturates) {
  for_each_form([] {
    for (bool b_signed : {false, true}) {
      for (int64_t m : {7, 33}) {
        Case c{m, 4099, 35};
        c.b_signed = b_signed, c.extreme = true;
        check(c);
      }
    }
  });
}

// Two products of neighbours in k just fit 16 bits, or just do not: a form that adds them up there must tell.
TEST(IntGemm, NeverSaturatesInSixteenBits) {
  const std::pair<int, int> pairs[] = {{64, 64}, {127, 1}, {1, 127},   {-128, 0},  {-64, -64}, {127, -128},
                                       {127, 2}, {65, 64}, {-128, -1}, {-127, -2}, {127, 127}, {-128, -128}};
  for_each_form([&] {
    for (const auto& [even, odd] : pairs) {
      for (int64_t m : {1, 5, 40, 150}) {
        for (int64_t k : {2, 7, 130}) {
          for (bool is_last : {false, true}) {
            constexpr int64_t kColumns = 37;
            SCOPED_TRACE(testing::Message()
                         << even << ", " << odd << ", " << m << " x " << k << ", " << is_last);
            // Everywhere; or in the last pair of the last column only.
            std::vector<int8_t> b(static_cast<size_t>(k * kColumns));
            for (int64_t i = 0; i < k; ++i) {
              for (int64_t col = 0; col < kColumns; ++col) {
                const bool at = !is_last || (col == kColumns - 1 && i / 2 == (k - 1) / 2);
                const int value = i % 2 == 0 ? even : odd;
                b[static_cast<size_t>(i * kColumns + col)] =
                    static_cast<int8_t>(at ? value : (i + col) % 3 - 1);
              }
            }
            const std::vector<uint8_t> a(static_cast<size_t>(m * k), 255);
            Buffer packed(int_gemm_packed_bytes(k, kColumns));
            Buffer scratch(static_cast<size_t>(int_gemm_scratch_bytes(k, 1)));
            int_gemm_pack(k, kColumns, {b.data(), kColumns, 1, true}, packed.get());
            IntGemmLeft left;
            left.data = a.data(), left.row_stride = k;
            IntGemmFinish finish;
            finish.b_signed = true;
            std::vector<int32_t> y(static_cast<size_t>(m * kColumns), -1), expected;
            int_gemm({m, k, kColumns}, left, packed.get(), {y.data(), kColumns, IntGemmResult::kInt32},
                     finish, scratch.get(), 1);
            for (int64_t col = 0; col < kColumns; ++col) {
              int32_t sum = 0;
              for (int64_t i = 0; i < k; ++i) sum += 255 * b[static_cast<size_t>(i * kColumns + col)];
              expected.push_back(sum);
            }
            for (int64_t row = 0; row < m; ++row)
              EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.begin() + row * kColumns)) << row;
          }
        }
      }
    }
  });
}

// Weights of 7 bits, every type of A, strides and zero points: the forms that only these allow.
TEST(IntGemm, IsExactForSmallWeights) {
  for_each_form([] {
    for (int64_t m : {3, 6, 11, 43, 97, 170}) {
      for (int bits = 0; bits < 32; ++bits) {
        Case c{m, 77, 37};
        c.small = true, c.k += bits % 4;
        c.a_signed = (bits & 1) != 0, c.transposed_a = (bits & 2) != 0, c.transposed_b = (bits & 4) != 0;
        c.row_zeros = (bits & 8) != 0, c.column_zeros = (bits & 16) != 0;
        check(c);
      }
    }
  });
}

// Elements of A near their zero point: the form that needs these, and what of them it takes out.
TEST(IntGemm, IsExactWhereAIsNearItsZeroPoint) {
  for_each_form([] {
    for (int64_t m : {1, 3, 7, 13, 43, 97, 170}) {
      for (int bits = 0; bits < 64; ++bits) {
        Case c{m, 70 + bits % 9, 70};
        c.about = 5 + (bits & 32) * 4, c.spread = m == 43 ? 26 : 14;
        c.a_signed = (bits & 1) != 0, c.transposed_a = (bits & 2) != 0, c.b_signed = (bits & 4) != 0;
        c.row_zeros = (bits & 8) != 0, c.column_zeros = (bits & 16) != 0;
        check(c);
      }
    }
    Case tall{400, 300, 67};
    tall.about = 128, tall.spread = 20, tall.threads = 3;
    check(tall);
  });
}

// Four neighbours of A just fit 16 bits with the largest elements of B, or just do not, on either side of the
// zero point; in one octet of many, or in all of them.
TEST(IntGemm, IsExactWhereFourProductsJustFitSixteenBits) {
  const int offsets[][8] = {
      {31, 32, 0, 0, 32, 32, 0, 0},   {32, 32, 0, 0, 32, 32, 0, 0},      {127, 0, 0, 0, 0, 0, 0, 0},
      {128, 0, 0, 0, 0, 0, 0, 0},     {0, 0, 64, 64, 0, 0, 0, 0},        {0, 0, 0, 0, 0, 0, 127, 1},
      {-1, 0, 0, 0, -127, 0, 0, 0},   {-1, 0, 0, 0, -126, 0, 0, 0},      {0, -128, 0, 0, 0, 0, 0, 0},
      {90, 1, 90, 1, 90, 1, 90, 1},   {255, 0, 1, 0, 0, 0, 0, 0},        {128, 128, 0, 0, 0, 0, 0, 0},
      {255, 255, 0, 0, 3, 0, 0, 0},   {255, 249, 0, 0, 0, 0, 0, 0},      {255, 249, 0, 0, 1, 0, 0, 0},
      {100, 100, 0, 0, 100, 0, 0, 0}, {127, -128, 3, 0, 127, -128, 0, 1}};
  for_each_form([&] {
    for (const auto& octet : offsets) {
      for (const auto& [every, m] : {std::pair<int64_t, int64_t>{1, 5}, {1, 40}, {9, 40}, {9, 3}}) {
        for (const auto& [zero, weight] : {std::pair<int, int>{128, 127},
                                           {128, -128},
                                           {0, 127},
                                           {0, -128},
                                           {0, 65},
                                           {0, -64},
                                           {255, -128}}) {
          constexpr int64_t kDepth = 200, kColumns = 69;
          SCOPED_TRACE(testing::Message() << octet[0] << ", " << octet[1] << ", ..., every " << every << ", "
                                          << m << " rows, zero point " << zero << ", weights " << weight);
          std::vector<uint8_t> a(static_cast<size_t>(m * kDepth));
          for (int64_t i = 0; i < m * kDepth; ++i) {
            const int off = i / 8 % every == 0 ? octet[i % 8] : 0;
            a[static_cast<size_t>(i)] = static_cast<uint8_t>(std::clamp(zero + off, 0, 255));
          }
          const std::vector<int8_t> b(static_cast<size_t>(kDepth * kColumns), static_cast<int8_t>(weight));
          Buffer packed(int_gemm_packed_bytes(kDepth, kColumns));
          Buffer scratch(static_cast<size_t>(int_gemm_scratch_bytes(kDepth, 1)));
          int_gemm_pack(kDepth, kColumns, {b.data(), kColumns, 1, true}, packed.get());
          IntGemmLeft left;
          left.data = a.data(), left.row_stride = kDepth, left.zero_point = zero;
          IntGemmFinish finish;
          finish.b_signed = true;
          std::vector<int32_t> y(static_cast<size_t>(m * kColumns), -1);
          int_gemm({m, kDepth, kColumns}, left, packed.get(), {y.data(), kColumns, IntGemmResult::kInt32},
                   finish, scratch.get(), 1);
          for (int64_t row = 0; row < m; ++row) {
            int32_t sum = 0;
            for (int64_t i = 0; i < kDepth; ++i)
              sum += (a[static_cast<size_t>(row * kDepth + i)] - zero) * weight;
            for (int64_t col = 0; col < kColumns; ++col)
              ASSERT_EQ(y[static_cast<size_t>(row * kColumns + col)], sum) << row << ", " << col;
          }
        }
      }
    }
  });
}

TEST(IntGemm, IsPackedWithinTheBound) {
  for_each_form([] {
    for (int64_t n : {1, 2, 15, 17, 33, 1000}) {
      for (int64_t k = 0; k < 1200; ++k)
        EXPECT_LE(static_cast<int64_t>(int_gemm_packed_bytes(k, n)),
                  int_gemm_packed_bound<int64_t>(k, n, (k + 15) / 16))
            << k << " x " << n;
    }
  });
}

TEST(IntGemm, ThreadsShareRowsOrColumns) {
  for_each_form([] {
    for (int threads : {2, 3}) {
      Case tall{130, 40, 65};
      tall.threads = threads;
      check(tall);
      Case flat{2, 500, 300};
      flat.threads = threads;
      check(flat);
    }
  });
}

TEST(IntGemm, FinishesAsFloatsAndBytes) {
  for_each_form([] {
    const Case c{13, 24, 41};
    const Problem problem(c);
    const std::vector<int32_t> sums = problem.expected();
    std::vector<int32_t> bias;
    std::vector<float> scales, float_bias;
    for (int i = 0; i < 41; ++i) {
      bias.push_back(i * 100 - 900);
      scales.push_back(0.001f * static_cast<float>(i + 1));
      float_bias.push_back(0.5f * static_cast<float>(i));
    }
    IntGemmFinish finish = problem.finish();
    finish.bias = bias.data(), finish.scales = scales.data(), finish.float_bias = float_bias.data();
    finish.zero_point = 7;
    std::vector<float> real(sums.size());
    problem.multiply(finish, IntGemmResult::kFloat, real.data());
    std::vector<uint8_t> natural(sums.size());
    problem.multiply(finish, IntGemmResult::kUint8, natural.data());
    std::vector<int8_t> whole(sums.size());
    problem.multiply(finish, IntGemmResult::kInt8, whole.data());
    for (size_t i = 0; i < sums.size(); ++i) {
      const float scaled = static_cast<float>(sums[i] + bias[i % 41]) * scales[i % 41];
      const float rounded = std::nearbyint(scaled) + 7;
      EXPECT_NEAR(real[i], scaled + float_bias[i % 41], 1e-3) << i;
      EXPECT_EQ(natural[i], static_cast<uint8_t>(std::min(std::max(rounded, 0.0f), 255.0f))) << i;
      EXPECT_EQ(whole[i], static_cast<int8_t>(std::min(std::max(rounded, -128.0f), 127.0f))) << i;
    }
  });
}

// Half to even, in double: the products are exact there.
double rounded(float value) {
  return std::nearbyint(static_cast<double>(value));
}

// Where nothing is done with sums but to round them, they never leave the registers.
TEST(IntGemm, MakesBytesOfAnyNumberOfRowsAndColumns) {
  for_each_form([] {
    for (int64_t m = 1; m < 32; ++m) {
      for (int64_t n : {8, 16, 24, 32, 71}) {
        const bool is_signed = (m + n) % 2 != 0;
        for (const bool read : {false, true}) {
          Case c{m % 8 == 5 ? 40 * m : m, m % 3 == 0 ? 27 : 24, n};
          c.symmetric = true, c.read = read, c.a_signed = m % 4 == 0, c.b_signed = m % 5 != 0;
          SCOPED_TRACE(testing::Message() << c.m << " x " << c.k << " x " << n);
          const Problem problem(c);
          const std::vector<int32_t> sums = problem.expected();
          IntGemmFinish f = problem.finish();
          f.scale = 0.0011f, f.zero_point = is_signed ? -9 : 90;
          std::vector<uint8_t> y(sums.size());
          problem.multiply(f, is_signed ? IntGemmResult::kInt8 : IntGemmResult::kUint8, y.data());
          const int32_t low = is_signed ? -128 : 0;
          for (size_t i = 0; i < sums.size(); ++i) {
            const double whole = rounded(static_cast<float>(sums[i]) * f.scale) + f.zero_point;
            ASSERT_EQ(number(y[i], is_signed), std::clamp<double>(whole, low, low + 255)) << i;
          }
        }
      }
    }
  });
}

// An 8-bit result within bounds, and another matrix added to it, by the definition.
TEST(IntGemm, BoundsAndAddsInEightBits) {
  for_each_form([] {
    for (int bits = 0; bits < 64; ++bits) {
      const bool is_signed = (bits & 1) != 0, z_signed = (bits & 2) != 0, adds = (bits & 4) != 0;
      SCOPED_TRACE(bits);
      // Whole panels, and results of less than one: a few, a vector, and more.
      constexpr int64_t kWidths[] = {45, 16, 24, 71};
      const Case c{bits % 3 + 27, 40, kWidths[bits / 16], (bits & 8) != 0};
      const Problem problem(c);
      const std::vector<int32_t> sums = problem.expected();
      const int32_t low = is_signed ? -128 : 0, high = low + 255;
      std::vector<uint8_t> z(sums.size());
      for (size_t i = 0; i < z.size(); ++i) z[i] = static_cast<uint8_t>(i * 89 + i / 7);
      IntGemmFinish f = problem.finish();
      f.scale = 0.0005f, f.zero_point = low + 121, f.least = low + 33, f.most = low + 200;
      if (adds) f.addend = {z.data(), c.n, z_signed, 3, 0.31f, 0.83f, low + 100};
      std::vector<uint8_t> y(sums.size());
      problem.multiply(f, is_signed ? IntGemmResult::kInt8 : IntGemmResult::kUint8, y.data());
      for (size_t i = 0; i < sums.size(); ++i) {
        const double whole = rounded(static_cast<float>(sums[i]) * f.scale) + f.zero_point;
        const auto result = [&](double value) { return std::clamp<double>(value, f.least, f.most); };
        if (!adds) {
          EXPECT_EQ(number(y[i], is_signed), result(whole)) << i;
          continue;
        }
        const auto own = static_cast<float>(std::clamp<double>(whole, low, high) - f.zero_point);
        const auto other = static_cast<float>(number(z[i], z_signed));
        // One rounding or two, as the instruction set has it.
        const float z_fused = std::fma(other, 0.31f, -3.0f * 0.31f), z_apart = other * 0.31f + -3.0f * 0.31f;
        const double fused = result(rounded(std::fma(own, 0.83f, z_fused)) + f.addend.sum_zero_point);
        const double apart = result(rounded(own * 0.83f + z_apart) + f.addend.sum_zero_point);
        EXPECT_TRUE(number(y[i], is_signed) == fused || number(y[i], is_signed) == apart)
            << i << ": " << number(y[i], is_signed) << ", expected " << fused << " or " << apart;
      }
    }
  });
}

// Every sum that lies half way between two results.
TEST(IntGemm, RoundsHalfToEven) {
  for_each_form([] {
    std::vector<uint8_t> a(300);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i);
    const int8_t one = 1;
    for (bool is_signed : {false, true}) {
      Buffer packed(int_gemm_packed_bytes(1, 1)), scratch(static_cast<size_t>(int_gemm_scratch_bytes(1, 1)));
      int_gemm_pack(1, 1, {&one, 1, 1, true}, packed.get());
      IntGemmLeft left;
      left.data = a.data(), left.row_stride = 1, left.zero_point = 128;
      IntGemmFinish f;
      f.b_signed = true, f.scale = 0.5f, f.zero_point = is_signed ? -3 : 60;
      std::vector<uint8_t> y(a.size());
      int_gemm({300, 1, 1}, left, packed.get(),
               {y.data(), 1, is_signed ? IntGemmResult::kInt8 : IntGemmResult::kUint8}, f, scratch.get(), 1);
      for (size_t i = 0; i < y.size(); ++i) {
        const double expected = rounded(static_cast<float>(a[i] - 128) / 2) + f.zero_point;
        EXPECT_EQ(number(y[i], is_signed),
                  std::clamp<double>(expected, is_signed ? -128 : 0, is_signed ? 127 : 255))
            << i;
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
