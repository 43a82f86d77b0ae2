#include "kernels/nbits_panels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "each_target.h"

namespace plimsoll::kernels {
namespace {

enum class Zeros { kMiddle, kBits, kReal };

struct PanelCase {
  int64_t rows, k, n;
  int bits;
  int64_t block;
  Zeros zeros;
};

std::shared_ptr<void> aligned_room(int64_t bytes) {
  return {std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64)), std::free};
}

unsigned field_at(const std::vector<uint8_t>& data, int64_t bit, int bits) {
  return (data[static_cast<size_t>(bit / 8)] >> (bit % 8)) & ((1u << bits) - 1);
}

class PanelProduct {
 public:
  explicit PanelProduct(const PanelCase& s) : s_(s) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    m_.k = s.k, m_.n = s.n, m_.bits = s.bits, m_.block = s.block;
    const int64_t blocks = m_.blocks();
    data_.resize(static_cast<size_t>(s.n * blocks * s.block * s.bits / 8));
    zeros_.resize(static_cast<size_t>(s.n * ((blocks * s.bits + 7) / 8)));
    for (auto* list : {&data_, &zeros_}) {
      for (uint8_t& byte : *list) byte = static_cast<uint8_t>(generator());
    }
    scales_.resize(static_cast<size_t>(s.n * blocks)), real_zeros_.resize(scales_.size());
    a_.resize(static_cast<size_t>(s.rows * s.k)), bias_.resize(static_cast<size_t>(s.n));
    for (auto* list : {&scales_, &real_zeros_, &a_, &bias_}) {
      for (float& x : *list) x = normal(generator);
    }
    m_.data = data_.data(), m_.scales = scales_.data();
    if (s.zeros == Zeros::kBits) m_.zeros = zeros_.data();
    if (s.zeros == Zeros::kReal) m_.real_zeros = real_zeros_.data();
  }

  // In two parts, as threads have them.
  std::vector<float> run() const {
    std::vector<float> y(static_cast<size_t>(s_.rows * s_.n), NAN);
    const auto rows = aligned_room(s_.rows * NBitsPanelsScratch::row_bytes(m_));
    const auto scratch = aligned_room(NBitsPanelsScratch::task_bytes(m_));
    nbits_quantize_rows(m_, a_.data(), 0, s_.rows / 2, rows.get());
    nbits_quantize_rows(m_, a_.data(), s_.rows / 2, s_.rows, rows.get());
    const int64_t middle = std::min(s_.n, NBitsPanelsScratch::kColumns);
    nbits_multiply_panels(m_, rows.get(), s_.rows, bias_.data(), y.data(), s_.n, 0, middle, scratch.get());
    nbits_multiply_panels(m_, rows.get(), s_.rows, bias_.data(), y.data(), s_.n, middle, s_.n, scratch.get());
    return y;
  }

  // What A is rounded to is known, so that sums of floats alone differ.
  void check(const std::vector<float>& y) const {
    for (int64_t row = 0; row < s_.rows; ++row) {
      for (int64_t col = 0; col < s_.n; ++col) {
        double sum = bias_[static_cast<size_t>(col)], size = std::fabs(sum);
        for (int64_t block = 0; block < m_.blocks(); ++block) add_block(row, col, block, sum, size);
        EXPECT_NEAR(y[static_cast<size_t>(row * s_.n + col)], sum, 1e-5 * size) << row << ", " << col;
      }
    }
  }

 private:
  void add_block(int64_t row, int64_t col, int64_t block, double& sum, double& size) const {
    const float* a = a_.data() + row * s_.k + block * s_.block;
    const int64_t count = std::min(s_.block, s_.k - block * s_.block);
    float most = 0;
    for (int64_t i = 0; i < count; ++i) most = std::max(most, std::fabs(a[i]));
    const auto at = static_cast<size_t>(col * m_.blocks() + block);
    double zero = 1 << (s_.bits - 1);
    if (s_.zeros == Zeros::kReal) zero = real_zeros_[at];
    if (s_.zeros == Zeros::kBits) {
      const int64_t row_bytes = (m_.blocks() * s_.bits + 7) / 8;
      zero = field_at(zeros_, col * row_bytes * 8 + block * s_.bits, s_.bits);
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t bit = (col * m_.blocks() * s_.block + block * s_.block + i) * s_.bits;
      const double q = std::nearbyint(a[i] * (127 / most)), w = field_at(data_, bit, s_.bits);
      const double by = static_cast<double>(most / 127) * static_cast<double>(scales_[at]);
      sum += q * (w - zero) * by;
      size += std::fabs(q * by) * (w + std::fabs(zero));
    }
  }

  PanelCase s_;
  NBitsMatrix m_;
  std::vector<uint8_t> data_, zeros_;
  std::vector<float> scales_, real_zeros_, a_, bias_;
};

TEST(NBitsPanels, AgreeWithSumsOfRoundedRows) {
  for_each_form([] {
    for (int bits : {2, 4, 8}) {
      if (!nbits_has_bytes(bits)) continue;
      for (Zeros zeros : {Zeros::kMiddle, Zeros::kBits, Zeros::kReal}) {
        for (const PanelCase& s :
             {PanelCase{6, 64, 32, bits, 16, zeros}, PanelCase{1, 96, 33, bits, 32, zeros},
              PanelCase{35, 45, 7, bits, 16, zeros}, PanelCase{13, 288, 65, bits, 64, zeros},
              PanelCase{7, 500, 41, bits, 256, zeros}}) {
          SCOPED_TRACE(testing::Message() << s.rows << " x " << s.k << " x " << s.n << ", bits " << bits);
          const PanelProduct product(s);
          product.check(product.run());
        }
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
