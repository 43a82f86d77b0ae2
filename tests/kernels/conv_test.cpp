#include "kernels/conv.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/depthwise.h"

namespace plimsoll::kernels {
namespace {

struct Problem {
  ConvShape s;
  std::vector<float> x, w, bias, scale, addend;
  Activation activation;
};

double activate(Activation f, double x) {
  switch (f.kind) {
    case ActivationKind::kNone:
      return x;
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kClip:
      return std::min<double>(std::max<double>(x, f.a), f.b);
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    case ActivationKind::kHardSwish:
      return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0);
    default:
      ADD_FAILURE();
      return x;
  }
}

// Straight from the definition, in double.
std::vector<double> reference(const Problem& p) {
  const ConvShape& s = p.s;
  const int64_t in_c = s.in_c / s.groups, out_c = s.out_c / s.groups;
  std::vector<double> y;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t oh = 0; oh < s.out_h; ++oh)
      for (int64_t ow = 0; ow < s.out_w; ++ow)
        for (int64_t o = 0; o < s.out_c; ++o) {
          double sum = 0;
          for (int64_t c = 0; c < in_c; ++c)
            for (int64_t kh = 0; kh < s.kernel_h; ++kh)
              for (int64_t kw = 0; kw < s.kernel_w; ++kw) {
                const int64_t ih = oh * s.stride_h - s.pad_top + kh * s.dilation_h;
                const int64_t iw = ow * s.stride_w - s.pad_left + kw * s.dilation_w;
                if (ih < 0 || ih >= s.in_h || iw < 0 || iw >= s.in_w) continue;
                const int64_t channel = o / out_c * in_c + c;
                sum +=
                    double{p.x[static_cast<size_t>(((n * s.in_h + ih) * s.in_w + iw) * s.in_c + channel)]} *
                    p.w[static_cast<size_t>(((o * in_c + c) * s.kernel_h + kh) * s.kernel_w + kw)];
              }
          if (!p.scale.empty()) sum *= p.scale[static_cast<size_t>(o)];
          if (!p.bias.empty()) sum += p.bias[static_cast<size_t>(o)];
          if (!p.addend.empty()) sum += p.addend[y.size()];
          y.push_back(activate(p.activation, sum));
        }
  return y;
}

// Aligned storage with a frame of sentinels around it, so that a write outside is seen.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes), storage_(bytes + 256, std::byte{0xA5}) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data()) + 64;
    data_ = reinterpret_cast<std::byte*>((address + 63) / 64 * 64);
  }
  ~Guarded() {
    for (size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(data_[bytes_ + i], std::byte{0xA5}) << "written " << i << " bytes behind the end";
      EXPECT_EQ(*(data_ - 1 - i), std::byte{0xA5}) << "written " << i + 1 << " bytes before the start";
    }
  }
  std::byte* data() { return data_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }

 private:
  size_t bytes_;
  std::vector<std::byte> storage_;
  std::byte* data_;
};

// The values as T keeps them.
template <typename T>
std::vector<T> kept(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = T(values[i]);
  return result;
}
template <typename T>
std::vector<float> rounded(const std::vector<float>& values) {
  std::vector<float> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = static_cast<float>(T(values[i]));
  return result;
}
template <typename T>
Problem rounded(const Problem& p) {
  return {p.s,
          rounded<T>(p.x),
          rounded<T>(p.w),
          rounded<T>(p.bias),
          rounded<T>(p.scale),
          rounded<T>(p.addend),
          p.activation};
}

// Relative: of the sums of 16 bits only the result is rounded; weights times their scale are, once before.
template <typename T>
double tolerance(const Problem& p) {
  if (std::is_same_v<T, double>) return 1e-13;
  if (std::is_same_v<T, float>) return 2e-5;
  const double rounding = std::is_same_v<T, Float16> ? 0x1p-11 : 0x1p-8;
  const double taps = static_cast<double>(p.s.kernel_h * p.s.kernel_w * p.s.in_c / p.s.groups);
  return 2e-5 + rounding * (p.scale.empty() ? 1 : 1 + 2 * std::sqrt(taps));
}

template <typename T>
void check_as(const Problem& problem, int threads, bool in_place) {
  const Problem p = rounded<T>(problem);
  const ConvShape& s = p.s;
  const bool own = s.groups > 1 && s.groups == s.in_c && s.groups == s.out_c;
  SCOPED_TRACE(testing::Message() << "element of " << sizeof(T) << " bytes, batch " << s.batch << " in "
                                  << s.in_h << "x" << s.in_w << "x" << s.in_c << " out " << s.out_h << "x"
                                  << s.out_w << "x" << s.out_c << " groups " << s.groups << " kernel "
                                  << s.kernel_h << "x" << s.kernel_w << " stride " << s.stride_h << "x"
                                  << s.stride_w << " dilation " << s.dilation_h << "x" << s.dilation_w
                                  << " pad " << s.pad_top << "," << s.pad_left << " threads " << threads);
  const std::vector<double> expected = reference(p);
  const std::vector<T> w = kept<T>(p.w), bias = kept<T>(p.bias), scale = kept<T>(p.scale);
  const std::vector<T> addend = kept<T>(p.addend), image = kept<T>(p.x);
  std::vector<char> raw(w.size() * sizeof(T) + 1);  // at an odd address, as in a file
  if (!w.empty()) std::memcpy(raw.data() + 1, w.data(), w.size() * sizeof(T));
  Guarded packed(own ? depthwise_packed_bytes<T>(s) : conv_packed_bytes<T>(s));
  Guarded scratch(own ? 0 : conv_scratch_bytes<T>(s, threads));
  Guarded x(image.size() * sizeof(T)), y(expected.size() * sizeof(T));
  if (!image.empty()) std::memcpy(x.data(), image.data(), image.size() * sizeof(T));
  const ConvWeights<T> weights = oihw_weights<T>(s, raw.data() + 1, scale.empty() ? nullptr : scale.data());
  if (own) {
    depthwise_pack<T>(s, weights, packed.data());
  } else {
    conv_pack<T>(s, weights, packed.data(), threads);
  }
  ConvEpilogue<T> epilogue;
  epilogue.bias = bias.empty() ? nullptr : bias.data();
  epilogue.addend = addend.empty() ? nullptr : addend.data();
  epilogue.activation = p.activation;
  if (in_place && epilogue.addend != nullptr) {
    std::memcpy(y.data(), addend.data(), addend.size() * sizeof(T));
    epilogue.addend = y.as<T>();
  }
  if (own)
    depthwise_as<T>(s, x.as<T>(), packed.data(), y.as<T>(), epilogue, threads);
  else
    conv_as<T>(s, x.as<T>(), packed.data(), y.as<T>(), epilogue, scratch.data(), threads);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto found = static_cast<double>(static_cast<LaneOf<T>>(y.as<T>()[i]));
    ASSERT_NEAR(found, expected[i], tolerance<T>(p) * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

// As float, and as one of the other types in turn.
void check(const Problem& p, int threads, bool in_place) {
  check_as<float>(p, threads, in_place);
  switch ((p.s.in_w + p.s.in_h + p.s.out_c + threads) % 3) {
    case 0:
      return check_as<double>(p, threads, in_place);
    case 1:
      return check_as<Float16>(p, threads, in_place);
    default:
      return check_as<BFloat16>(p, threads, in_place);
  }
}

class ConvTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  std::vector<float> values(int64_t count) {
    std::vector<float> result(static_cast<size_t>(count));
    for (float& v : result) v = std::uniform_real_distribution<float>(-1, 1)(random_);
    return result;
  }

  void complete(Problem& p) {
    ConvShape& s = p.s;
    const int64_t bottom = pick(0, 2), right = pick(0, 2);
    s.out_h = std::max<int64_t>(
        0, (s.in_h + s.pad_top + bottom - (s.kernel_h - 1) * s.dilation_h - 1 + s.stride_h) / s.stride_h);
    s.out_w = std::max<int64_t>(
        0, (s.in_w + s.pad_left + right - (s.kernel_w - 1) * s.dilation_w - 1 + s.stride_w) / s.stride_w);
    p.x = values(s.batch * s.in_h * s.in_w * s.in_c);
    p.w = values(s.out_c * s.in_c / s.groups * s.kernel_h * s.kernel_w);
    if (pick(0, 3) > 0) p.bias = values(s.out_c);
    if (pick(0, 2) == 0) p.scale = values(s.out_c);
    if (pick(0, 1) == 0) p.addend = values(s.batch * s.out_h * s.out_w * s.out_c);
    const Activation kinds[] = {{},
                                {ActivationKind::kRelu},
                                {ActivationKind::kClip, -0.25f, 0.5f},
                                {ActivationKind::kSilu},
                                {ActivationKind::kHardSwish}};
    p.activation = kinds[pick(0, 4)];
  }

  // Kernel, strides and padding at random.
  Problem random_window() {
    Problem p;
    ConvShape& s = p.s;
    s.batch = pick(0, 9) == 0 ? pick(0, 3) : 1;
    s.kernel_h = pick(1, 5), s.kernel_w = pick(1, 5);
    s.stride_h = pick(1, 3), s.stride_w = pick(1, 3);
    s.dilation_h = pick(1, 4) == 1 ? pick(1, 5) : 1, s.dilation_w = pick(1, 4) == 1 ? pick(1, 5) : 1;
    s.pad_top = pick(0, 3), s.pad_left = pick(0, pick(0, 3) == 0 ? 17 : 3);
    s.in_h = pick(1, 12), s.in_w = pick(1, 40);
    return p;
  }

  std::mt19937 random_{7};
};

TEST_P(ConvTest, DenseAndGroupedAgainstTheDefinition) {
  for (int i = 0; i < 150; ++i) {
    Problem p = random_window();
    p.s.groups = pick(0, 4) == 0 ? pick(2, 3) : 1;
    p.s.in_c = pick(1, 19) * p.s.groups, p.s.out_c = pick(1, 50) * p.s.groups;
    complete(p);
    check(p, i % 2 + 1, i % 4 < 2);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvTest, OneByOneAgainstTheDefinition) {
  for (int i = 0; i < 60; ++i) {
    Problem p;
    p.s.batch = pick(0, 3), p.s.in_h = pick(1, 9), p.s.in_w = pick(1, 9);
    p.s.in_c = pick(1, 70), p.s.out_c = pick(1, 100);
    complete(p);
    check(p, i % 2 + 1, i % 4 < 2);
    if (HasFatalFailure()) return;
  }
}

// Pixels a multiple of 4096 bytes apart run as a product whose rows are copied.
TEST_P(ConvTest, CollidingPixelsAgainstTheDefinition) {
  for (int i = 0; i < 4; ++i) {
    Problem p;
    p.s.in_h = pick(3, 6), p.s.in_w = pick(5, 9), p.s.in_c = i < 2 ? 1024 : 2048, p.s.out_c = 130 + i;
    complete(p);
    p.s.out_h = p.s.in_h, p.s.out_w = p.s.in_w;
    if (!p.addend.empty()) p.addend = values(p.s.out_h * p.s.out_w * p.s.out_c);
    check(p, i % 2 + 1, i < 2);
    if (HasFatalFailure()) return;
  }
}

// The same by their strides, whose pixels are copied together.
TEST_P(ConvTest, CollidingStridesAgainstTheDefinition) {
  for (int i = 0; i < 6; ++i) {
    Problem p;
    p.s.batch = pick(1, 2), p.s.in_h = pick(3, 9), p.s.in_w = pick(5, 12);
    p.s.in_c = i < 3 ? 512 : 1024, p.s.out_c = i % 3 == 0 ? 40 : 65 + i, p.s.stride_w = 2,
    p.s.stride_h = pick(1, 3);
    complete(p);
    for (float& w : p.w) w /= 8;  // so that sums of a thousand stay near 1
    check(p, i % 2 + 1, i < 2);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvTest, FewOutputChannelsAgainstTheDefinition) {
  for (int i = 0; i < 60; ++i) {
    Problem p = random_window();
    p.s.in_c = pick(16, 70), p.s.out_c = pick(1, 8);
    complete(p);
    check(p, i % 2 + 1, i % 4 < 2);
    if (HasFatalFailure()) return;
  }
}

// As many output as input channels to a group, of widths that divide a vector or are several.
TEST_P(ConvTest, NarrowGroupsAgainstTheDefinition) {
  for (int i = 0; i < 150; ++i) {
    Problem p = random_window();
    const int64_t widths[] = {2, 4, 8, 16, 32};
    if (pick(0, 3) > 0) p.s.kernel_w = 3, p.s.dilation_w = 1, p.s.stride_w = pick(1, 2);
    p.s.groups = pick(2, 9);
    p.s.in_c = p.s.out_c = widths[i % 5] * p.s.groups;
    complete(p);
    check(p, i % 3 + 1, i % 4 < 2);
    if (HasFatalFailure()) return;
  }
}

TEST_P(ConvTest, DepthwiseAgainstTheDefinition) {
  for (int i = 0; i < 150; ++i) {
    Problem p = random_window();
    const int64_t widths[] = {3, 5, 7};
    if (pick(0, 3) > 0) p.s.kernel_w = widths[pick(0, 2)], p.s.dilation_w = 1, p.s.stride_w = pick(1, 2);
    p.s.in_c = p.s.out_c = p.s.groups = pick(2, 70);
    complete(p);
    check(p, i % 2 + 1, i % 4 < 2);
    if (HasFatalFailure()) return;
  }
}

// Dilated so far that many taps meet nothing but padding.
TEST_P(ConvTest, WideDilationsAgainstTheDefinition) {
  for (int i = 0; i < 40; ++i) {
    Problem p;
    p.s.in_h = pick(3, 20), p.s.in_w = pick(3, 30), p.s.in_c = pick(9, 20), p.s.out_c = pick(9, 40);
    p.s.kernel_h = p.s.kernel_w = 3;
    p.s.pad_top = p.s.dilation_h = pick(2, 24), p.s.pad_left = p.s.dilation_w = pick(2, 24);
    p.s.stride_w = pick(1, 2);
    complete(p);
    p.s.out_h = p.s.in_h, p.s.out_w = (p.s.in_w - 1) / p.s.stride_w + 1;
    if (!p.addend.empty()) p.addend = values(p.s.out_h * p.s.out_w * p.s.out_c);
    check(p, i % 2 + 1, i % 4 < 2);
    if (HasFatalFailure()) return;
  }
}

// Large enough that the image is cut into several bands.
TEST_P(ConvTest, ManyBandsAgainstTheDefinition) {
  Problem p;
  p.s.in_h = 60, p.s.in_w = 70, p.s.in_c = 64, p.s.out_c = 33, p.s.kernel_h = p.s.kernel_w = 3;
  p.s.pad_top = p.s.pad_left = 1;
  complete(p);
  check(p, 1, false);
  check(p, 2, true);
}

std::vector<int64_t> available_targets() {
  std::vector<int64_t> targets;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1)
    targets.push_back(rest & -rest);
  return targets;
}

INSTANTIATE_TEST_SUITE_P(Targets, ConvTest, testing::ValuesIn(available_targets()),
                         [](const auto& target) { return std::string(hwy::TargetName(target.param)); });

}  // namespace
}  // namespace plimsoll::kernels
