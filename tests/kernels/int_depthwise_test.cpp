#include "kernels/int_depthwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "kernels/each_target.h"

namespace plimsoll::kernels {
namespace {

int32_t number(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

struct Problem {
  IntDepthwiseShape shape;
  bool x_signed = false, w_signed = true, w_zeros = false;
  int threads = 1;
  std::vector<uint8_t> x, w;
  std::vector<int32_t> zeros, bias;
  std::vector<float> scales;
  int32_t x_zero = 0;

  void fill(uint32_t seed) {
    std::mt19937 generator(seed);
    const auto byte = [&] { return static_cast<uint8_t>(generator()); };
    const IntDepthwiseShape& s = shape;
    x.resize(static_cast<size_t>(s.in_h * s.in_w * s.channels));
    w.resize(static_cast<size_t>(s.channels * s.kernel_h * s.kernel_w));
    std::generate(x.begin(), x.end(), byte);
    std::generate(w.begin(), w.end(), byte);
    x_zero = number(byte(), x_signed);
    for (int64_t i = 0; i < s.channels; ++i) {
      zeros.push_back(w_zeros ? number(byte(), w_signed) : (w_signed ? 0 : 128));
      bias.push_back(static_cast<int32_t>(generator() % 10000) - 5000);
      scales.push_back(0.0001f * static_cast<float>(generator() % 50 + 1));
    }
  }

  std::vector<int32_t> expected() const {
    const IntDepthwiseShape& s = shape;
    std::vector<int32_t> y;
    for (int64_t row = 0; row < s.out_h; ++row) {
      for (int64_t col = 0; col < s.out_w; ++col) {
        for (int64_t c = 0; c < s.channels; ++c) {
          int32_t sum = bias[static_cast<size_t>(c)];
          for (int64_t i = 0; i < s.kernel_h; ++i) {
            for (int64_t j = 0; j < s.kernel_w; ++j) {
              const int64_t at_y = row * s.stride_h - s.pad_top + i * s.dilation_h;
              const int64_t at_x = col * s.stride_w - s.pad_left + j * s.dilation_w;
              if (at_y < 0 || at_y >= s.in_h || at_x < 0 || at_x >= s.in_w) continue;
              const auto xi = static_cast<size_t>((at_y * s.in_w + at_x) * s.channels + c);
              const auto wi = static_cast<size_t>((c * s.kernel_h + i) * s.kernel_w + j);
              sum += (number(x[xi], x_signed) - x_zero) *
                     (number(w[wi], w_signed) - zeros[static_cast<size_t>(c)]);
            }
          }
          y.push_back(sum);
        }
      }
    }
    return y;
  }

  template <typename T>
  std::vector<T> run(IntGemmResult type, IntGemmFinish finish) const {
    const IntDepthwiseShape& s = shape;
    const auto aligned = [](size_t bytes) {
      return std::unique_ptr<void, void (*)(void*)>(std::aligned_alloc(64, (bytes + 63) / 64 * 64),
                                                    std::free);
    };
    const auto packed = aligned(int_depthwise_packed_bytes(s.channels, s.kernel_h, s.kernel_w));
    const auto scratch = aligned(static_cast<size_t>(int_depthwise_scratch_bytes(s, threads)));
    int_depthwise_pack(s.channels, s.kernel_h, s.kernel_w, w.data(), w_signed, packed.get());
    finish.b_signed = w_signed, finish.b_zero_points = zeros.data(), finish.bias = bias.data();
    std::vector<T> y(static_cast<size_t>(s.out_h * s.out_w * s.channels));
    int_depthwise(s, {x.data(), x_signed, x_zero}, packed.get(), type, finish, y.data(), scratch.get(),
                  threads);
    return y;
  }
};

int64_t output(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads) {
  return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

TEST(IntDepthwise, IsExactForRandomShapesTypesAndZeroPoints) {
  for_each_form([] {
    std::mt19937 generator(7);
    const auto pick = [&](int64_t least, int64_t most) {
      return least + static_cast<int64_t>(generator() % static_cast<uint32_t>(most - least + 1));
    };
    for (uint32_t i = 0; i < 250; ++i) {
      Problem p;
      IntDepthwiseShape& s = p.shape;
      s.channels = i % 3 == 0 ? pick(1, 200) : i % 3 == 1 ? int64_t{1} << pick(0, 6) : pick(1, 5) * 16;
      s.kernel_h = pick(1, 6), s.kernel_w = pick(1, 5);
      s.stride_h = pick(1, 3), s.stride_w = pick(1, 3);
      s.dilation_h = pick(1, 2), s.dilation_w = pick(1, 2);
      s.in_h = (s.kernel_h - 1) * s.dilation_h + pick(1, 6);
      s.in_w = (s.kernel_w - 1) * s.dilation_w + (i % 10 == 0 ? pick(40, 80) : pick(1, 9));
      s.pad_top = pick(0, 2), s.pad_left = pick(0, 2);
      s.out_h = output(s.in_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top + pick(0, 2));
      s.out_w = output(s.in_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left + pick(0, 2));
      p.x_signed = i % 2 == 0, p.w_signed = i % 4 < 2, p.w_zeros = i % 5 == 0, p.threads = i % 7 == 0 ? 2 : 1;
      p.fill(i);
      EXPECT_EQ(p.run<int32_t>(IntGemmResult::kInt32, {}), p.expected()) << "problem " << i;
    }
  });
}

TEST(IntDepthwise, FinishesInEightBitsWithinBounds) {
  for_each_form([] {
    for (int64_t channels : {4, 5, 8, 16, 32, 64, 72, 130}) {
      for (int bits = 0; bits < 8; ++bits) {
        const bool is_bounded = (bits & 1) != 0, is_signed = (bits & 2) != 0;
        Problem p;
        p.shape = {channels, 7, 9, 7, 9, 3, 3, 1, 1, 1, 1, 1, 1};
        if ((bits & 4) != 0) p.shape = {channels, 11, 12, 11, 6, 5, 5, 1, 2, 1, 1, 2, 2};
        p.fill(static_cast<uint32_t>(channels));
        const auto low = is_signed ? -128.0f : 0.0f, least = is_bounded ? low + 31 : low,
                   most = is_bounded ? low + 240 : low + 255;
        IntGemmFinish f;
        f.scales = p.scales.data(), f.zero_point = static_cast<int32_t>(low) + 31;
        if (is_bounded) f.least = static_cast<int32_t>(least), f.most = static_cast<int32_t>(most);
        const std::vector<uint8_t> y =
            p.run<uint8_t>(is_signed ? IntGemmResult::kInt8 : IntGemmResult::kUint8, f);
        const std::vector<int32_t> sums = p.expected();
        for (size_t i = 0; i < y.size(); ++i) {
          const float scaled = static_cast<float>(sums[i]) * p.scales[i % static_cast<size_t>(channels)];
          EXPECT_EQ(number(y[i], is_signed), std::clamp(std::nearbyint(scaled) + low + 31, least, most)) << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace plimsoll::kernels
