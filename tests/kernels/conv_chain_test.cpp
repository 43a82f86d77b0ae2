#include "kernels/conv_chain.h"

#include <cmath>
#include <random>
#include <vector>

#include "kernels/depthwise.h"
#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

std::vector<float> values(std::mt19937& random, int64_t count) {
  std::vector<float> result(static_cast<size_t>(count));
  for (float& v : result) v = static_cast<float>(random() % 2001) / 1000 - 1;
  return result;
}

double activate(ActivationKind kind, double x) {
  switch (kind) {
    case ActivationKind::kRelu:
      return std::max(x, 0.0);
    case ActivationKind::kSilu:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

// One convolution with its raw weights; the memory that its packed ones need.
struct Part {
  ChainedConv conv;
  std::vector<float> weights, bias;
  std::vector<float> storage;

  void pack() {
    const ConvShape& s = conv.shape;
    const size_t bytes = conv.depthwise ? depthwise_packed_bytes<float>(s) : conv_packed_bytes<float>(s);
    storage.assign(bytes / sizeof(float) + 16, 0);
    const auto address = (reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64;
    auto* packed = reinterpret_cast<void*>(address);
    const ConvWeights<float> raw = oihw_weights<float>(s, weights.data());
    if (conv.depthwise) {
      depthwise_pack<float>(s, raw, packed);
    } else {
      conv_pack<float>(s, raw, packed);
    }
    conv.packed = packed;
    conv.bias = bias.empty() ? nullptr : bias.data();
  }
};

// By the definition, in double.
std::vector<double> reference(const Part& part, int64_t batch, const std::vector<double>& x,
                              const std::vector<float>& addend) {
  const ConvShape& s = part.conv.shape;
  const int64_t in_c = s.in_c / s.groups, out_c = s.out_c / s.groups;
  std::vector<double> y;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t row = 0; row < s.out_h; ++row)
      for (int64_t column = 0; column < s.out_w; ++column)
        for (int64_t o = 0; o < s.out_c; ++o) {
          double sum = part.bias.empty() ? 0 : part.bias[static_cast<size_t>(o)];
          for (int64_t kh = 0; kh < s.kernel_h; ++kh)
            for (int64_t kw = 0; kw < s.kernel_w; ++kw)
              for (int64_t c = 0; c < in_c; ++c) {
                const int64_t h = row * s.stride_h - s.pad_top + kh,
                              w = column * s.stride_w - s.pad_left + kw;
                if (h < 0 || h >= s.in_h || w < 0 || w >= s.in_w) continue;
                sum +=
                    x[static_cast<size_t>(((n * s.in_h + h) * s.in_w + w) * s.in_c + o / out_c * in_c + c)] *
                    part.weights[static_cast<size_t>(((o * in_c + c) * s.kernel_h + kh) * s.kernel_w + kw)];
              }
          if (!addend.empty()) sum += addend[y.size()];
          y.push_back(activate(part.conv.activation.kind, sum));
        }
  return y;
}

struct Case {
  int64_t batch = 1;
  std::vector<Part> parts;
  std::vector<float> x, addend;
};

Case random_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  Case c;
  c.batch = pick(1, 3);
  int64_t height = pick(1, 30), width = pick(1, 90), channels = pick(2, 70);
  c.x = values(random, c.batch * height * width * channels);
  bool depthwise = pick(0, 1) == 0;
  const int64_t count = pick(2, 3);
  for (int64_t i = 0; i < count; ++i, depthwise = !depthwise) {
    Part part;
    ConvShape& s = part.conv.shape;
    s.in_h = height, s.in_w = width, s.in_c = s.out_c = channels;
    int64_t bottom = 0, right = 0;
    if (depthwise) {
      s.groups = channels;
      s.kernel_h = pick(1, 5), s.kernel_w = pick(1, 5), s.stride_h = pick(1, 3), s.stride_w = pick(1, 2);
      s.pad_top = pick(0, 6), s.pad_left = pick(0, 3), bottom = s.kernel_h + pick(0, 3), right = s.kernel_w;
    } else {
      s.out_c = pick(2, 150);
    }
    s.out_h = (s.in_h + s.pad_top + bottom - s.kernel_h) / s.stride_h + 1;
    s.out_w = (s.in_w + s.pad_left + right - s.kernel_w) / s.stride_w + 1;
    part.conv.depthwise = depthwise;
    const ActivationKind kinds[] = {ActivationKind::kNone, ActivationKind::kRelu, ActivationKind::kSilu};
    part.conv.activation.kind = kinds[pick(0, 2)];
    part.weights = values(random, s.out_c * s.in_c / s.groups * s.kernel_h * s.kernel_w);
    for (float& w : part.weights) w /= depthwise ? 2 : 6;
    if (pick(0, 1) == 0) part.bias = values(random, s.out_c);
    height = s.out_h, width = s.out_w, channels = s.out_c;
    c.parts.push_back(std::move(part));
  }
  if (pick(0, 1) == 0) c.addend = values(random, c.batch * height * width * channels);
  return c;
}

std::vector<float> run(Case& c, int threads, bool in_place) {
  std::vector<ChainedConv> chain;
  for (Part& part : c.parts) part.pack(), chain.push_back(part.conv);
  const ConvShape& last = chain.back().shape;
  std::vector<float> y(static_cast<size_t>(c.batch * last.out_h * last.out_w * last.out_c), std::nanf(""));
  if (in_place && !c.addend.empty()) y = c.addend;
  const float* addend = c.addend.empty() ? nullptr : in_place ? y.data() : c.addend.data();
  const auto bytes = static_cast<size_t>(conv_chain_scratch_bytes(chain, threads));
  std::vector<float> scratch(bytes / sizeof(float) + 64, std::nanf(""));
  const auto address = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
  auto* at = reinterpret_cast<std::byte*>(address);
  conv_chain(chain, c.batch, c.x.data(), addend, y.data(), at, threads);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_TRUE(std::isnan(reinterpret_cast<float*>(at + bytes)[i])) << "written behind the scratch";
  return y;
}

// Chains whose rows in between do not fit one band, strides and padding that skip rows and make rows of
// nothing.
TEST(ConvChain, AgreesWithTheDefinition) {
  for_each_target([] {
    std::mt19937 random(5);
    for (int i = 0; i < 40; ++i) {
      Case c = random_case(random);
      std::vector<double> wanted(c.x.begin(), c.x.end());
      for (size_t k = 0; k < c.parts.size(); ++k)
        wanted =
            reference(c.parts[k], c.batch, wanted, k + 1 == c.parts.size() ? c.addend : std::vector<float>());
      const std::vector<float> found = run(c, 1, i % 2 == 0);
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t k = 0; k < found.size(); ++k)
        ASSERT_NEAR(found[k], wanted[k], 2e-5 * (1 + std::abs(wanted[k])))
            << "case " << i << ", element " << k;
      EXPECT_EQ(run(c, 2, false), found) << "case " << i << " on two threads";
      EXPECT_EQ(run(c, 3, true), found) << "case " << i << " on three threads";
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
