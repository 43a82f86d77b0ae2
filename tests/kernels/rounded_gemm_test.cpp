#include "kernels/rounded_gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

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

float rounded(float value) {
  return static_cast<float>(BFloat16(value));
}

const char* name_of(RoundedForm form) {
  return form == RoundedForm::kTiles ? "tiles" : form == RoundedForm::kPairs ? "pairs" : "wide";
}

// Every form of every instruction set that the machine has.
void for_each_rounded_form(const std::function<void(RoundedForm)>& f) {
  for_each_target([&] {
    for (RoundedForm form : {RoundedForm::kWide, RoundedForm::kPairs, RoundedForm::kTiles}) {
      if (!has_rounded_form(form)) continue;
      SCOPED_TRACE(name_of(form));
      f(form);
    }
  });
}

struct Case {
  GemmShape shape = {};
  bool transposed_a = false, transposed_b = false;
  size_t misalign = 0;  // bytes before B's data
  bool bias = false, addend = false, in_place = false, addend_last = false, scale = false;
  float alpha = 1, beta = 1;
  Activation activation = {};
  int threads = 1;
  bool integers = false;  // every sum is exact
  bool by_rows = false;   // A is read row by row
};

struct Data {
  std::vector<float> a, b, bias, addend, scale;
};

Data make_data(const Case& c, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> real(-1, 1);
  std::uniform_int_distribution<int> integer(-15, 15);
  const auto some = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& v : values) v = c.integers ? static_cast<float>(integer(generator)) : real(generator);
    return values;
  };
  const GemmShape& s = c.shape;
  return {some(s.m * s.k), some(s.k * s.n), some(s.n), some(s.m * s.n), some(s.n)};
}

struct Rows {
  const float* a;
  int64_t k;
  static void read(const void* context, int64_t row, BFloat16* to) {
    const auto& self = *static_cast<const Rows*>(context);
    for (int64_t i = 0; i < self.k; ++i) to[i] = BFloat16(self.a[row * self.k + i]);
  }
};

std::vector<float> compute(const Case& c, const Data& data, RoundedForm form) {
  const GemmShape& s = c.shape;
  std::vector<char> b(data.b.size() * sizeof(float) + c.misalign);
  if (!data.b.empty()) std::memcpy(b.data() + c.misalign, data.b.data(), data.b.size() * sizeof(float));
  RoundedRight right{b.data() + c.misalign, c.transposed_b ? 1 : s.n, c.transposed_b ? s.k : 1};
  if (c.scale) right.scale = data.scale.data();
  Buffer packed(rounded_b_bytes(s.k, s.n)), scratch(rounded_scratch_bytes(s, c.threads));
  EXPECT_LE(rounded_scratch_bytes(s, c.threads), rounded_most_scratch_bytes(s.k, c.threads));
  std::memset(scratch.get(), 0xff, rounded_scratch_bytes(s, c.threads));
  pack_rounded_b(s.k, s.n, right, packed.get(), c.threads);
  RoundedLeft left{data.a.data(), c.transposed_a ? 1 : s.k, c.transposed_a ? s.m : 1};
  const Rows rows{data.a.data(), s.k};
  if (c.by_rows) left = {nullptr, 0, 1, Rows::read, &rows};
  const int64_t stride = s.n + 3;
  const float guard = 1234.5f;
  std::vector<float> out(static_cast<size_t>(s.m * stride + 1), guard), addend = out;
  GemmEpilogue<> e;
  e.alpha = c.alpha, e.beta = c.beta, e.activation = c.activation, e.addend_last = c.addend_last;
  if (c.bias) e.bias = data.bias.data();
  if (c.addend) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j)
        (c.in_place ? out : addend)[static_cast<size_t>(i * stride + j)] =
            data.addend[static_cast<size_t>(i * s.n + j)];
    }
    e.addend = c.in_place ? out.data() : addend.data(), e.addend_stride = stride;
  }
  rounded_gemm(s, left, packed.get(), {out.data(), stride}, e, scratch.get(), c.threads, form);
  std::vector<float> result;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < stride; ++j) {
      const float value = out[static_cast<size_t>(i * stride + j)];
      if (j < s.n) {
        result.push_back(value);
      } else {
        EXPECT_EQ(value, guard) << "behind row " << i;
      }
    }
  }
  return result;
}

// By the definition, in double, from rounded operands; `bound` is what float's sums may be off.
void expect_reference(const Case& c, const Data& data, const std::vector<float>& found) {
  const GemmShape& s = c.shape;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const float a = data.a[static_cast<size_t>(c.transposed_a ? k * s.m + i : i * s.k + k)];
        float b = data.b[static_cast<size_t>(c.transposed_b ? j * s.k + k : k * s.n + j)];
        if (c.scale) b *= data.scale[static_cast<size_t>(j)];
        const double product = double{rounded(a)} * double{rounded(b)};
        sum += product, magnitude += std::abs(product);
      }
      double y = c.alpha * sum + (c.bias ? data.bias[static_cast<size_t>(j)] : 0);
      const double z = c.addend ? double{c.beta} * data.addend[static_cast<size_t>(i * s.n + j)] : 0;
      if (!c.addend_last) y += z;
      if (c.activation.kind == ActivationKind::kRelu) y = std::max(y, 0.0);
      if (c.addend_last) y += z;
      const auto eps = double{std::numeric_limits<float>::epsilon()};
      const double bound =
          c.integers ? 0 : eps * (std::abs(c.alpha) * magnitude * static_cast<double>(s.k + 2) / 2 + 4);
      ASSERT_NEAR(found[static_cast<size_t>(i * s.n + j)], y, bound) << "at " << i << ", " << j;
    }
  }
}

void check(const Case& c, uint32_t seed = 1) {
  SCOPED_TRACE(testing::Message() << c.shape.m << " x " << c.shape.k << " x " << c.shape.n);
  const Data data = make_data(c, seed);
  for_each_rounded_form([&](RoundedForm form) { expect_reference(c, data, compute(c, data, form)); });
}

// Rows, columns and products that tiles, panels and pairs leave over.
TEST(RoundedGemm, Leftovers) {
  for (int64_t m : {1, 2, 3, 5, 13, 14, 15, 16, 17, 29, 31, 32, 33, 47, 65}) {
    for (int64_t n : {1, 15, 16, 17, 31, 33, 47, 49, 63, 64, 65}) check({.shape = {m, 37, n}});
  }
  for (int64_t k : {0, 1, 2, 3, 31, 32, 33, 63, 64, 65, 147, 576})
    check({.shape = {18, k, 35}, .bias = true});
}

TEST(RoundedGemm, IntegersAreExact) {
  for (int64_t m : {1, 7, 16, 33, 100}) {
    for (int64_t k : {1, 32, 95, 1000})
      check({.shape = {m, k, 50}, .bias = true, .addend = true, .threads = 2, .integers = true});
  }
}

TEST(RoundedGemm, EmptyShapes) {
  check({.shape = {0, 5, 5}});
  check({.shape = {5, 5, 0}});
  check({.shape = {3, 0, 4}, .bias = true, .addend = true});
}

TEST(RoundedGemm, BlocksOfRows) {
  check({.shape = {300, 4000, 33}, .bias = true});  // more than one block
  check({.shape = {700, 70, 40}, .threads = 3});
  check({.shape = {20, 300, 200}, .threads = 3});  // shared out by columns
}

TEST(RoundedGemm, Operands) {
  const GemmShape shape{23, 75, 41};
  check({.shape = shape, .transposed_a = true});
  check({.shape = shape, .transposed_b = true});
  check({.shape = shape, .misalign = 1});
  check({.shape = shape, .transposed_b = true, .misalign = 2, .scale = true});
  check({.shape = shape, .scale = true});
  check({.shape = shape, .by_rows = true});
}

TEST(RoundedGemm, Epilogues) {
  const GemmShape shape{37, 50, 39};
  check({.shape = shape, .bias = true, .activation = {ActivationKind::kRelu}});
  check({.shape = shape, .bias = true, .addend = true, .alpha = 0.5f, .beta = 2});
  check({.shape = shape, .addend = true, .in_place = true, .activation = {ActivationKind::kRelu}});
  check({.shape = shape, .addend = true, .addend_last = true, .activation = {ActivationKind::kRelu}});
  check({.shape = shape, .addend = true, .beta = 0});
}

// A row of B at i / block * block_stride + i % block * row_stride, as weights of a convolution lie.
TEST(RoundedGemm, BlockedRight) {
  const int64_t channels = 5, taps = 9, n = 20, m = 17, k = channels * taps;
  const Case c{.shape = {m, k, n}};
  Data data = make_data(c, 3);
  const std::vector<float> oihw = data.b;  // [n][channels][taps]
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int64_t ch = 0; ch < channels; ++ch) {
      for (int64_t o = 0; o < n; ++o)
        data.b[static_cast<size_t>((tap * channels + ch) * n + o)] =
            oihw[static_cast<size_t>((o * channels + ch) * taps + tap)];
    }
  }
  for_each_rounded_form([&](RoundedForm form) {
    Buffer packed(rounded_b_bytes(k, n)), expected(rounded_b_bytes(k, n));
    pack_rounded_b(k, n, {oihw.data(), taps, channels * taps, channels, 1}, packed.get());
    pack_rounded_b(k, n, {data.b.data(), n, 1}, expected.get());
    EXPECT_EQ(std::memcmp(packed.get(), expected.get(), rounded_b_bytes(k, n)), 0);
    expect_reference(c, data, compute(c, data, form));
  });
}

// The same bits whatever else is computed beside an element, and by how many threads.
TEST(RoundedGemm, DependsOnNeitherThreadsNorRows) {
  const Case whole{.shape = {70, 333, 90}};
  const Data data = make_data(whole, 5);
  for_each_rounded_form([&](RoundedForm form) {
    const std::vector<float> expected = compute(whole, data, form);
    for (int threads : {2, 3, 5}) {
      Case c = whole;
      c.threads = threads;
      EXPECT_EQ(compute(c, data, form), expected) << threads;
    }
    for (int64_t m : {1, 16, 17}) {
      Case c = whole;
      c.shape.m = m;
      const std::vector<float> few = compute(c, data, form);
      EXPECT_TRUE(std::equal(few.begin(), few.end(), expected.begin())) << m;
    }
  });
}

// The format is one for all instruction sets: what one packs, another reads.
TEST(RoundedGemm, PackedBytesAreTheSameEverywhere) {
  const Case c{.shape = {1, 45, 39}};
  const Data data = make_data(c, 7);
  std::vector<std::vector<char>> all;
  for_each_target([&] {
    Buffer packed(rounded_b_bytes(45, 39));
    pack_rounded_b(45, 39, {data.b.data(), 39, 1}, packed.get());
    const char* bytes = static_cast<const char*>(packed.get());
    all.emplace_back(bytes, bytes + rounded_b_bytes(45, 39));
  });
  for (const auto& one : all) EXPECT_EQ(one, all[0]);
  EXPECT_EQ(all[0].size(), size_t{64 * 48 * 2});
}

TEST(RoundedGemm, SpecialNumbers) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const Case c{.shape = {4, 40, 20}};
  Data data = make_data(c, 9);
  for (float& b : data.b) b = 1;
  data.a[0 * 40 + 3] = kInf, data.a[1 * 40 + 39] = kNan;
  data.a[2 * 40 + 5] = kInf, data.a[2 * 40 + 6] = -kInf;
  for_each_rounded_form([&](RoundedForm form) {
    const std::vector<float> y = compute(c, data, form);
    for (size_t j = 0; j < 20; ++j) {
      EXPECT_EQ(y[j], kInf);
      EXPECT_TRUE(std::isnan(y[20 + j]));
      EXPECT_TRUE(std::isnan(y[40 + j]));
      EXPECT_TRUE(std::isfinite(y[60 + j]));
    }
  });
}

// Halves go to even.
TEST(RoundedGemm, RoundsOperandsToNearestEven) {
  const Case c{.shape = {1, 3, 1}};
  Data data = make_data(c, 1);
  data.b = {1, 0, 0};
  for (const auto& [value, expected] :
       std::vector<std::pair<float, float>>{{1 + 1.0f / 256, 1.0f},
                                            {1 + 3.0f / 256, 1 + 4.0f / 256},
                                            {1 + 1.0f / 256 + 1.0f / 65536, 1 + 2.0f / 256},
                                            {-(1 + 1.0f / 256), -1.0f}}) {
    data.a = {value, 0, 0};
    for_each_rounded_form([&](RoundedForm form) { EXPECT_EQ(compute(c, data, form)[0], expected); });
    std::swap(data.a, data.b);
    for_each_rounded_form([&](RoundedForm form) { EXPECT_EQ(compute(c, data, form)[0], expected); });
    std::swap(data.a, data.b);
  }
}

}  // namespace
}  // namespace plimsoll::kernels
