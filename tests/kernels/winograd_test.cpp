#include "kernels/winograd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

struct Problem {
  ConvShape s;
  std::vector<float> x, w, bias, scale, addend;
  Activation activation;
};

// Straight from the definition, in double.
std::vector<double> reference(const Problem& p) {
  const ConvShape& s = p.s;
  std::vector<double> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oh = 0; oh < s.out_h; ++oh)
      for (int64_t ow = 0; ow < s.out_w; ++ow)
        for (int64_t o = 0; o < s.out_c; ++o) {
          double sum = 0;
          for (int64_t tap = 0; tap < 9; ++tap) {
            const int64_t ih = oh - s.pad_top + tap / 3 * s.dilation_h;
            const int64_t iw = ow - s.pad_left + tap % 3 * s.dilation_w;
            if (ih < 0 || ih >= s.in_h || iw < 0 || iw >= s.in_w) continue;
            for (int64_t c = 0; c < s.in_c; ++c) {
              sum += double{p.x[static_cast<size_t>(((n * s.in_h + ih) * s.in_w + iw) * s.in_c + c)]} *
                     p.w[static_cast<size_t>((o * s.in_c + c) * 9 + tap)];
            }
          }
          if (!p.scale.empty()) sum *= p.scale[static_cast<size_t>(o)];
          if (!p.bias.empty()) sum += p.bias[static_cast<size_t>(o)];
          if (!p.addend.empty()) sum += p.addend[y.size()];
          if (p.activation.kind == ActivationKind::kRelu) sum = std::max(sum, 0.0);
          if (p.activation.kind == ActivationKind::kClip)
            sum = std::min<double>(std::max<double>(sum, p.activation.a), p.activation.b);
          if (p.activation.kind == ActivationKind::kSilu) sum = sum / (1 + std::exp(-sum));
          y.push_back(sum);
        }
  return y;
}

// Aligned memory, filled with NaN before use, with a frame that must stay.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes), storage_(bytes + 256, std::byte{0xFF}) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + 64;
    data_ = reinterpret_cast<std::byte*>((address + 63) / 64 * 64);
  }
  ~Guarded() {
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(data_[bytes_ + i], std::byte{0xFF}) << "written " << i << " bytes behind the end";
      EXPECT_EQ(*(data_ - 1 - i), std::byte{0xFF}) << "written " << i + 1 << " bytes before the start";
    }
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  void fill(const std::vector<float>& values) {
    if (!values.empty()) std::memcpy(data_, values.data(), values.size() * sizeof(float));
  }
  std::byte* data() { return data_; }
  float* floats() { return reinterpret_cast<float*>(data_); }

 private:
  size_t bytes_;
  std::vector<std::byte> storage_;
  std::byte* data_;
};

std::vector<float> run(const Problem& p, WinogradForm form, int threads, bool in_place) {
  const ConvShape& s = p.s;
  std::vector<char> raw(p.w.size() * sizeof(float) + 1);  // at an odd address, as in a file
  if (!p.w.empty()) std::memcpy(raw.data() + 1, p.w.data(), p.w.size() * sizeof(float));
  const size_t elements = static_cast<size_t>(s.batch * s.out_h * s.out_w * s.out_c);
  const size_t scratch_bytes = winograd_scratch_bytes(s, form, threads);
  EXPECT_LE(scratch_bytes, winograd_most_scratch_bytes(s, form, threads));
  Guarded packed(winograd_packed_bytes(s, form)), scratch(scratch_bytes);
  Guarded x(p.x.size() * sizeof(float)), y(elements * sizeof(float));
  x.fill(p.x);
  winograd_pack(s, form, oihw_weights(s, raw.data() + 1, p.scale.empty() ? nullptr : p.scale.data()),
                packed.data(), threads);
  ConvEpilogue<> epilogue{p.bias.empty() ? nullptr : p.bias.data(),
                          p.addend.empty() ? nullptr : p.addend.data(), p.activation};
  if (in_place && epilogue.addend != nullptr) {
    y.fill(p.addend);
    epilogue.addend = y.floats();
  }
  winograd(s, form, x.floats(), packed.data(), y.floats(), epilogue, scratch.data(), threads);
  return {y.floats(), y.floats() + elements};
}

class Problems {
 public:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Problem make(int64_t in_h, int64_t in_w, int64_t in_c, int64_t out_c) {
    Problem p;
    ConvShape& s = p.s;
    s.batch = pick(0, 5) == 0 ? pick(0, 3) : 1;
    s.kernel_h = s.kernel_w = 3;
    s.in_h = in_h, s.in_w = in_w, s.in_c = in_c, s.out_c = out_c;
    s.pad_top = pick(0, 3), s.pad_left = pick(0, 3);
    if (pick(0, 7) == 0) s.pad_left = -1;
    if (pick(0, 2) == 0) {
      s.dilation_h = pick(1, 7), s.dilation_w = pick(1, 7);
      s.pad_top += s.dilation_h - 1, s.pad_left += s.dilation_w - 1;
    }
    s.out_h = std::max<int64_t>(0, s.in_h + s.pad_top + pick(0, 2) - 2 * s.dilation_h);
    s.out_w = std::max<int64_t>(0, s.in_w + s.pad_left + pick(0, 2) - 2 * s.dilation_w);
    p.x = values(s.batch * s.in_h * s.in_w * s.in_c);
    p.w = values(s.out_c * s.in_c * 9);
    if (pick(0, 3) > 0) p.bias = values(s.out_c);
    if (pick(0, 2) == 0) p.scale = values(s.out_c);
    if (pick(0, 1) == 0) p.addend = values(s.batch * s.out_h * s.out_w * s.out_c);
    const Activation kinds[] = {
        {}, {ActivationKind::kRelu}, {ActivationKind::kClip, -0.25f, 0.5f}, {ActivationKind::kSilu}};
    p.activation = kinds[pick(0, 3)];
    return p;
  }

 private:
  std::vector<float> values(int64_t count) {
    std::vector<float> result(static_cast<size_t>(count));
    for (float& v : result) v = std::uniform_real_distribution<float>(-1, 1)(random_);
    return result;
  }
  std::mt19937 random_{11};
};

void check(const Problem& p, WinogradForm form, int threads, bool in_place) {
  const ConvShape& s = p.s;
  SCOPED_TRACE(testing::Message() << "F" << static_cast<int>(form) << " batch " << s.batch << " in " << s.in_h
                                  << "x" << s.in_w << "x" << s.in_c << " out " << s.out_h << "x" << s.out_w
                                  << "x" << s.out_c << " pad " << s.pad_top << "," << s.pad_left
                                  << " dilation " << s.dilation_h << "," << s.dilation_w << " threads "
                                  << threads);
  const std::vector<double> expected = reference(p);
  const std::vector<float> found = run(p, form, threads, in_place);
  // An element has 9 in_c terms below 1; sums of so many random signs grow as the root.
  const double terms = std::sqrt(9.0 * static_cast<double>(s.in_c));
  const double tolerance = (form == WinogradForm::kFour ? 4e-6 : 1e-6) * (1 + terms);
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << "element " << i;
}

TEST(Winograd, RandomShapesAgainstTheDefinition) {
  for_each_target([] {
    Problems problems;
    for (int i = 0; i < 120; ++i) {
      const Problem p = problems.make(problems.pick(1, 20), problems.pick(1, 30), problems.pick(1, 40),
                                      problems.pick(1, 70));
      for (const WinogradForm form : {WinogradForm::kTwo, WinogradForm::kFour}) {
        check(p, form, i % 3 + 1, i % 4 < 2);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  });
}

template <typename T>
std::vector<T> narrowed(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}
template <typename T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T& value : values) result.push_back(static_cast<float>(value));
  return result;
}

// What floats of the same values give, rounded once.
template <typename T>
void check_halves(Problem p, WinogradForm form, int threads) {
  const std::vector<T> x = narrowed<T>(p.x), w = narrowed<T>(p.w), bias = narrowed<T>(p.bias),
                       scale = narrowed<T>(p.scale), addend = narrowed<T>(p.addend);
  p.x = widened(x), p.w = widened(w), p.bias = widened(bias), p.scale = widened(scale);
  p.addend = widened(addend);
  const std::vector<float> expected = widened(narrowed<T>(run(p, form, threads, false)));
  const auto given = [](const std::vector<T>& values) { return values.empty() ? nullptr : values.data(); };
  Guarded packed(winograd_packed_bytes(p.s, form)), scratch(winograd_scratch_bytes(p.s, form, threads));
  winograd_pack<T>(p.s, form, oihw_weights<T>(p.s, w.data(), given(scale)), packed.data(), threads);
  std::vector<T> y(expected.size());
  winograd<T>(p.s, form, x.data(), packed.data(), y.data(), {given(bias), given(addend), p.activation},
              scratch.data(), threads);
  EXPECT_EQ(widened(y), expected);
}

TEST(Winograd, HalvesAreComputedInFloats) {
  for_each_target([] {
    Problems problems;
    for (int i = 0; i < 40; ++i) {
      const Problem p = problems.make(problems.pick(1, 14), problems.pick(1, 20), problems.pick(1, 40),
                                      problems.pick(1, 70));
      const WinogradForm form = i % 2 == 0 ? WinogradForm::kTwo : WinogradForm::kFour;
      check_halves<Float16>(p, form, i % 3 + 1);
      check_halves<BFloat16>(p, form, i % 3 + 1);
    }
  });
}

// Several blocks; panels that threads share.
TEST(Winograd, ManyBlocksAndThreads) {
  for_each_target([] {
    Problems problems;
    for (const auto& [size, in_c, out_c] : {std::array{34, 70, 20}, std::array{13, 130, 260}}) {
      const Problem p = problems.make(size, size + 3, in_c, out_c);
      for (const WinogradForm form : {WinogradForm::kTwo, WinogradForm::kFour}) {
        check(p, form, 1, false);
        EXPECT_EQ(run(p, form, 1, false), run(p, form, 2, true));
        EXPECT_EQ(run(p, form, 1, false), run(p, form, 3, true));
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
