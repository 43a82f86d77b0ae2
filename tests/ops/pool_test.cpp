#include <cmath>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

using Dims = std::vector<int64_t>;

std::vector<float> ramp(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) x[static_cast<size_t>(i)] = static_cast<float>((i * 37) % 101) - 50;
  return x;
}

// A window of 3x2 over (1, channels, h, w), by the definition; both layouts.
void check_plane(const char* op, bool count_padding, int64_t channels) {
  const int64_t h = 7, w = 9, kh = 3, kw = 2, sh = 2, sw = 1, top = 1, left = 1, bottom = 1, right = 0,
                dw = 2;
  const int64_t oh = (h + top + bottom - kh) / sh + 1, ow = (w + left + right - (kw - 1) * dw - 1) / sw + 1;
  const std::vector<float> x = ramp(channels * h * w);
  std::vector<float> y, x_last(x.size()), y_last(static_cast<size_t>(channels * oh * ow));
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t i = 0; i < oh; ++i)
      for (int64_t j = 0; j < ow; ++j) {
        float best = -1e30f, sum = 0;
        int inside = 0;
        for (int64_t a = 0; a < kh; ++a)
          for (int64_t b = 0; b < kw; ++b) {
            const int64_t r = i * sh - top + a, s = j * sw - left + b * dw;
            if (r < 0 || r >= h || s < 0 || s >= w) continue;
            const float v = x[static_cast<size_t>((c * h + r) * w + s)];
            best = std::max(best, v), sum += v, ++inside;
          }
        const float mean = sum / static_cast<float>(count_padding ? kh * kw : inside);
        y.push_back(std::string(op) == "MaxPool" ? best : mean);
        y_last[static_cast<size_t>((i * ow + j) * channels + c)] = y.back();
      }
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t p = 0; p < h * w; ++p)
      x_last[static_cast<size_t>(p * channels + c)] = x[static_cast<size_t>(c * h * w + p)];
  for (const bool last : {false, true}) {
    for (const int threads : {1, 2}) {
      OpCase pool(op, 19, last ? std::string(kPlimsollDomain) : "");
      pool.input<float>(last ? Dims{1, h, w, channels} : Dims{1, channels, h, w}, last ? x_last : x)
          .attr("kernel_shape", Dims{kh, kw})
          .attr("strides", Dims{sh, sw})
          .attr("dilations", Dims{1, dw})
          .attr("pads", Dims{top, left, bottom, right})
          .threads(threads);
      if (last) pool.attr("channels_last", int64_t{1});
      if (count_padding) pool.attr("count_include_pad", int64_t{1});
      pool.run().expect<float>(0, last ? Dims{1, oh, ow, channels} : Dims{1, channels, oh, ow},
                               last ? y_last : y);
    }
  }
}

TEST(MaxPool, AgreesWithTheDefinition) {
  for (const int64_t channels : {1, 3, 16, 70}) check_plane("MaxPool", false, channels);
}

TEST(AveragePool, AgreesWithTheDefinition) {
  for (const int64_t channels : {1, 3, 16, 70}) {
    check_plane("AveragePool", false, channels);
    check_plane("AveragePool", true, channels);
  }
}

// Three dimensions in both layouts, padded, dilated and strided, and such as nothing is pooled along, by the
// definition.
TEST(Pools, ThreeDimensionsAgreeWithTheDefinition) {
  struct Axis {
    int64_t in, kernel, stride, dilation, begin, end;
    int64_t out() const { return (in + begin + end - (kernel - 1) * dilation - 1) / stride + 1; }
  };
  constexpr Axis kWhole{5, 1, 1, 1, 0, 0};
  const Axis kinds[][3] = {{{6, 3, 2, 1, 1, 1}, {7, 2, 1, 2, 1, 0}, {9, 3, 3, 1, 0, 2}},
                           {{6, 5, 1, 1, 2, 2}, kWhole, kWhole},
                           {kWhole, {8, 3, 1, 1, 1, 1}, {11, 2, 2, 1, 0, 0}},
                           {kWhole, {6, 2, 2, 1, 0, 0}, kWhole}};
  for (const auto& axes : kinds) {
    for (const int64_t channels : {1, 3, 17}) {
      const int64_t in = axes[0].in * axes[1].in * axes[2].in;
      const Dims out = {axes[0].out(), axes[1].out(), axes[2].out()};
      const std::vector<float> x = ramp(2 * channels * in);
      for (const bool last : {false, true}) {
        for (const int way : {0, 1, 2}) {  // maximum, average, average that counts padding
          const int64_t total = 2 * channels * out[0] * out[1] * out[2];
          std::vector<float> y;
          for (int64_t n = 0; n < total; ++n) {
            const int64_t channel = last ? n % channels : n / (out[0] * out[1] * out[2]) % channels;
            const int64_t place = last ? n / channels : n % (out[0] * out[1] * out[2]);
            const int64_t image = n / (channels * out[0] * out[1] * out[2]);
            const int64_t at[3] = {place / out[2] / out[1] % out[0], place / out[2] % out[1], place % out[2]};
            float best = -1e30f, sum = 0;
            int inside = 0, padded = 0;
            Dims tap(3);
            for (tap[0] = 0; tap[0] < axes[0].kernel; ++tap[0])
              for (tap[1] = 0; tap[1] < axes[1].kernel; ++tap[1])
                for (tap[2] = 0; tap[2] < axes[2].kernel; ++tap[2]) {
                  int64_t from = last ? image : image * channels + channel;
                  bool is_inside = true, is_padded = true;
                  for (size_t i = 0; i < 3; ++i) {
                    const int64_t p = at[i] * axes[i].stride - axes[i].begin + tap[i] * axes[i].dilation;
                    is_inside = is_inside && p >= 0 && p < axes[i].in;
                    is_padded = is_padded && p < axes[i].in + axes[i].end;
                    from = from * axes[i].in + p;
                  }
                  padded += is_padded;
                  if (!is_inside) continue;
                  const float v = x[static_cast<size_t>(last ? from * channels + channel : from)];
                  best = std::max(best, v), sum += v, ++inside;
                }
            y.push_back(way == 0 ? best : sum / static_cast<float>(way == 2 ? padded : inside));
          }
          Dims in_dims = {2, channels, axes[0].in, axes[1].in, axes[2].in},
               out_dims = {2, channels, out[0], out[1], out[2]};
          if (last) {
            in_dims = {2, axes[0].in, axes[1].in, axes[2].in, channels};
            out_dims = {2, out[0], out[1], out[2], channels};
          }
          Dims kernel, strides, dilations, begins, ends;
          for (const Axis& a : axes) {
            kernel.push_back(a.kernel), strides.push_back(a.stride), dilations.push_back(a.dilation);
            begins.push_back(a.begin), ends.push_back(a.end);
          }
          begins.insert(begins.end(), ends.begin(), ends.end());
          OpCase pool(way == 0 ? "MaxPool" : "AveragePool", 19, last ? std::string(kPlimsollDomain) : "");
          pool.input<float>(in_dims, x)
              .attr("kernel_shape", kernel)
              .attr("strides", strides)
              .attr("dilations", dilations)
              .attr("pads", begins);
          if (last) pool.attr("channels_last", int64_t{1});
          if (way == 2) pool.attr("count_include_pad", int64_t{1});
          pool.run().expect<float>(0, out_dims, y, 1e-4);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(MaxPool, IndicesCountTheWholeTensorInEitherOrder) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6};
  for (const int64_t order : {0, 1}) {
    OpCase("MaxPool", 12)
        .input<float>({1, 2, 2, 3}, x)
        .attr("kernel_shape", Dims{2, 2})
        .attr("storage_order", order)
        .outputs(2)
        .run()
        .expect<float>(0, {1, 2, 1, 2}, {5, 6, 8, 9})
        .expect<int64_t>(1, {1, 2, 1, 2}, order == 0 ? Dims{4, 5, 7, 8} : Dims{3, 5, 8, 10});
  }
}

TEST(MaxPool, CeilModeLeavesOutWindowsThatStartInThePadding) {
  OpCase("MaxPool", 12)
      .input<float>({1, 1, 4}, {1, 2, 3, 4})
      .attr("kernel_shape", Dims{2})
      .attr("strides", Dims{3})
      .attr("ceil_mode", int64_t{1})
      .run()
      .expect<float>(0, {1, 1, 2}, {2, 4});
  OpCase("MaxPool", 12)
      .input<float>({1, 1, 2}, {1, 2})
      .attr("kernel_shape", Dims{1})
      .attr("strides", Dims{2})
      .attr("pads", Dims{0, 1})
      .attr("ceil_mode", int64_t{1})
      .run()
      .expect<float>(0, {1, 1, 1}, {1});
}

TEST(MaxPool, IntegersAndThreeDimensions) {
  OpCase("MaxPool", 12)
      .input<int8_t>({1, 1, 3}, {-5, -3, -4})
      .attr("kernel_shape", Dims{2})
      .run()
      .expect<int8_t>(0, {1, 1, 2}, {-3, -3});
  OpCase("MaxPool", 12)
      .input<uint8_t>({1, 1, 3}, {200, 3, 4})
      .attr("kernel_shape", Dims{2})
      .run()
      .expect<uint8_t>(0, {1, 1, 2}, {200, 4});
  OpCase("MaxPool", 12)
      .input<float>({1, 1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .attr("kernel_shape", Dims{2, 1, 2})
      .run()
      .expect<float>(0, {1, 1, 1, 2, 1}, {6, 8});
}

// ONNX has no such attribute, so a file cannot mean it.
TEST(ChannelsLast, IsOurOwn) {
  const auto pool = [](const std::string& domain) {
    OpCase one("MaxPool", 12, domain);
    one.graph().strict = true;
    one.input<float>({1, 2, 2, 1}, {1, 2, 3, 4})
        .attr("kernel_shape", Dims{2, 2})
        .attr("channels_last", int64_t{1})
        .run()
        .expect<float>(0, {1, 1, 1, 1}, {4});
  };
  EXPECT_THROW(pool(""), Error);
  pool(std::string(kPlimsollDomain));
  EXPECT_EQ(find_op(kPlimsollDomain, "Relu"), nullptr);
}

TEST(GlobalPools, ReducePerChannelInBothLayouts) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 9};
  OpCase("GlobalAveragePool", 1).input<float>({1, 2, 3}, x).run().expect<float>(0, {1, 2, 1}, {2, 6});
  OpCase("GlobalMaxPool", 1).input<float>({1, 2, 3}, x).run().expect<float>(0, {1, 2, 1}, {3, 9});
  OpCase("GlobalAveragePool", 1, std::string(kPlimsollDomain))
      .input<float>({1, 3, 2}, x)
      .attr("channels_last", int64_t{1})
      .run()
      .expect<float>(0, {1, 1, 2}, {3, 5});
  OpCase("GlobalMaxPool", 1, std::string(kPlimsollDomain))
      .input<float>({1, 3, 2}, x)
      .attr("channels_last", int64_t{1})
      .run()
      .expect<float>(0, {1, 1, 2}, {5, 9});
  OpCase("GlobalAveragePool", 1)
      .input<double>({2, 1, 1, 2}, {1, 2, 3, 5})
      .run()
      .expect<double>(0, {2, 1, 1, 1}, {1.5, 4});
}

TEST(Pools, RejectWhatDoesNotFit) {
  EXPECT_THROW(OpCase("MaxPool", 12).input<float>({1, 1, 4}, ramp(4)).run(), Error);
  EXPECT_THROW(OpCase("MaxPool", 12).input<float>({1, 1, 4}, ramp(4)).attr("kernel_shape", Dims{2, 2}).run(),
               Error);
  EXPECT_THROW(OpCase("AveragePool", 12).input<float>({1, 1, 4}, ramp(4)).attr("kernel_shape", Dims{0}).run(),
               Error);
}

}  // namespace
}  // namespace plimsoll
