// Our convolutions against oneDNN's on the same NHWC tensors, call by call in turns. Counters: GFLOP/s of
// the fastest call of each, ours over theirs, and our share of the multiply-add peak. Winograd's forms, which
// multiply less than they count, stand beside the peak alone.

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "kernels/conv.h"
#include "kernels/conv_chain.h"
#include "kernels/depthwise.h"
#include "kernels/winograd.h"
#include "support.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;

using micro::Buffer;
using micro::floats;

struct Ours {
  explicit Ours(const ConvShape& shape)
      : s(shape),
        depthwise(s.groups == s.in_c && s.groups == s.out_c && s.groups > 1),
        x(floats(s.in_h * s.in_w * s.in_c)),
        y(floats(s.out_h * s.out_w * s.out_c)),
        bias(floats(s.out_c)),
        packed(depthwise ? kernels::depthwise_packed_bytes(s) : kernels::conv_packed_bytes(s)),
        scratch(depthwise ? 0 : kernels::conv_scratch_bytes(s, 1)) {
    const Buffer raw(floats(s.out_c * (s.in_c / s.groups) * s.kernel_h * s.kernel_w));
    const auto weights = kernels::oihw_weights(s, raw.get());
    depthwise ? kernels::depthwise_pack(s, weights, packed.get())
              : kernels::conv_pack(s, weights, packed.get());
  }
  void operator()() const {
    const kernels::ConvEpilogue<> epilogue{bias.get(), nullptr, {}};
    if (depthwise) return kernels::depthwise(s, x.get(), packed.get(), y.get(), epilogue, 1);
    kernels::conv(s, x.get(), packed.get(), y.get(), epilogue, scratch.get(), 1);
  }
  ConvShape s;
  bool depthwise;
  Buffer x, y, bias, packed, scratch;
};

struct Theirs {
  explicit Theirs(const ConvShape& s) : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using dnnl::memory;
    const auto f32 = memory::data_type::f32;
    const int64_t g = s.groups,
                  bottom =
                      (s.out_h - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1 - s.pad_top - s.in_h,
                  right =
                      (s.out_w - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w + 1 - s.pad_left - s.in_w;
    const memory::dims kernel = g > 1 ? memory::dims{g, s.out_c / g, s.in_c / g, s.kernel_h, s.kernel_w}
                                      : memory::dims{s.out_c, s.in_c, s.kernel_h, s.kernel_w};
    const memory::desc x({1, s.in_c, s.in_h, s.in_w}, f32, memory::format_tag::nhwc);
    const memory::desc y({1, s.out_c, s.out_h, s.out_w}, f32, memory::format_tag::nhwc);
    const memory::desc w(kernel, f32, memory::format_tag::any), b({s.out_c}, f32, memory::format_tag::x);
    const dnnl::convolution_forward::desc description(
        dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, x, w, b, y,
        {s.stride_h, s.stride_w}, {s.dilation_h - 1, s.dilation_w - 1}, {s.pad_top, s.pad_left},
        {bottom, right});
    const dnnl::convolution_forward::primitive_desc chosen(description, engine);
    primitive = dnnl::convolution_forward(chosen);
    for (const auto& [id, d] : {std::pair(DNNL_ARG_SRC, x),
                                {DNNL_ARG_DST, y},
                                {DNNL_ARG_BIAS, b},
                                {DNNL_ARG_WEIGHTS, chosen.weights_desc()}}) {
      buffers.emplace_back(d.get_size());
      arguments[id] = memory(d, engine, buffers.back().get());
    }
  }
  void operator()() {
    primitive.execute(stream, arguments);
    stream.wait();
  }
  dnnl::engine engine;
  dnnl::stream stream;
  dnnl::primitive primitive;
  std::vector<Buffer> buffers;
  std::unordered_map<int, dnnl::memory> arguments;
};

double flops_of(const ConvShape& s) {
  return 2.0 * static_cast<double>(s.out_h * s.out_w * s.out_c) *
         static_cast<double>(s.in_c / s.groups * s.kernel_h * s.kernel_w);
}

void by_winograd(benchmark::State& state, const ConvShape& s, kernels::WinogradForm form) {
  const Buffer x(floats(s.in_h * s.in_w * s.in_c)), y(floats(s.out_h * s.out_w * s.out_c));
  const Buffer packed(kernels::winograd_packed_bytes(s, form));
  const Buffer scratch(kernels::winograd_scratch_bytes(s, form, 1));
  const Buffer raw(floats(s.out_c * s.in_c * 9));
  kernels::winograd_pack(s, form, kernels::oihw_weights(s, raw.get()), packed.get());
  micro::measure_arithmetic(state, flops_of(s), [&] {
    kernels::winograd(s, form, x.get(), packed.get(), y.get(), {}, scratch.get(), 1);
  });
}

void compare(benchmark::State& state, const ConvShape& s) {
  const Ours ours(s);
  Theirs theirs(s);
  micro::compare_arithmetic(state, flops_of(s), ours, theirs);
}

// 1x1 to six times as many channels, depthwise 3x3, 1x1 back: by bands of rows.
void chained(benchmark::State& state, int64_t channels, int64_t side) {
  const auto shape = [&](int64_t in_c, int64_t out_c, int64_t groups, int64_t kernel) {
    ConvShape s;
    s.in_c = in_c, s.out_c = out_c, s.groups = groups, s.kernel_h = s.kernel_w = kernel;
    s.in_h = s.in_w = s.out_h = s.out_w = side, s.pad_top = s.pad_left = kernel / 2;
    return s;
  };
  const int64_t wide = 6 * channels;
  const Ours parts[] = {Ours(shape(channels, wide, 1, 1)), Ours(shape(wide, wide, wide, 3)),
                        Ours(shape(wide, channels, 1, 1))};
  std::vector<kernels::ChainedConv> chain;
  double flops = 0;
  for (const Ours& part : parts) {
    chain.push_back(
        {part.s, part.depthwise, part.packed.get(), part.bias.get(), {kernels::ActivationKind::kRelu}});
    flops += flops_of(part.s);
  }
  const Buffer scratch(static_cast<size_t>(kernels::conv_chain_scratch_bytes(chain, 1)));
  micro::measure_arithmetic(state, flops, [&] {
    kernels::conv_chain(chain, 1, parts[0].x.get(), nullptr, parts[2].y.get(),
                        reinterpret_cast<std::byte*>(scratch.get()), 1);
  });
}

struct Case {
  const char* name;
  int64_t groups, in_c, out_c, h, w, kernel_h, kernel_w, stride, dilation, pad;
};
constexpr Case kCases[] = {
    {"dense/7x7s2_3-64@224", 1, 3, 64, 224, 224, 7, 7, 2, 1, 3},
    {"dense/1x1_64-256@56", 1, 64, 256, 56, 56, 1, 1, 1, 1, 0},
    {"dense/3x3_64-64@56", 1, 64, 64, 56, 56, 3, 3, 1, 1, 1},
    {"dense/1x1_256-128@56", 1, 256, 128, 56, 56, 1, 1, 1, 1, 0},
    {"dense/1x1s2_256-512@56", 1, 256, 512, 56, 56, 1, 1, 2, 1, 0},
    {"dense/3x3s2_128-128@56", 1, 128, 128, 56, 56, 3, 3, 2, 1, 1},
    {"dense/3x3_256-256@14", 1, 256, 256, 14, 14, 3, 3, 1, 1, 1},
    {"dense/3x3_512-512@7", 1, 512, 512, 7, 7, 3, 3, 1, 1, 1},
    {"dense/1x1_2048-512@7", 1, 2048, 512, 7, 7, 1, 1, 1, 1, 0},
    {"dense/1x1_16-72@56", 1, 16, 72, 56, 56, 1, 1, 1, 1, 0},
    {"dense/1x1_24-72@56", 1, 24, 72, 56, 56, 1, 1, 1, 1, 0},
    {"dense/1x1_72-40@28", 1, 72, 40, 28, 28, 1, 1, 1, 1, 0},
    {"dense/1x1_40-120@28", 1, 40, 120, 28, 28, 1, 1, 1, 1, 0},
    {"dense/1x1_672-112@14", 1, 672, 112, 14, 14, 1, 1, 1, 1, 0},
    {"dense/3x3_64-16@320", 1, 64, 16, 320, 320, 3, 3, 1, 1, 1},
    {"dense/3x3_16-16@320", 1, 16, 16, 320, 320, 3, 3, 1, 1, 1},
    {"dense/3x3_32-16@320", 1, 32, 16, 320, 320, 3, 3, 1, 1, 1},
    {"dense/3x3d2_16-16@20", 1, 16, 16, 20, 20, 3, 3, 1, 2, 2},
    {"dense/3x3d4_16-16@20", 1, 16, 16, 20, 20, 3, 3, 1, 4, 4},
    {"dense/3x3d8_16-16@20", 1, 16, 16, 20, 20, 3, 3, 1, 8, 8},
    {"dense/3x3s2_3-16@640", 1, 3, 16, 640, 640, 3, 3, 2, 1, 1},
    {"dense/3x3s2_16-32@320", 1, 16, 32, 320, 320, 3, 3, 2, 1, 1},
    {"dense/3x3_8-16@160", 1, 8, 16, 160, 160, 3, 3, 1, 1, 1},
    {"dense/3x3_16-8@160", 1, 16, 8, 160, 160, 3, 3, 1, 1, 1},
    {"dense/3x3_32-32@40", 1, 32, 32, 40, 40, 3, 3, 1, 1, 1},
    {"dense/1x1_80-80@80", 1, 80, 80, 80, 80, 1, 1, 1, 1, 0},
    {"dense/4x4s4_3-96@224", 1, 3, 96, 224, 224, 4, 4, 4, 1, 0},
    {"dense/2x2s2_96-192@56", 1, 96, 192, 56, 56, 2, 2, 2, 1, 0},
    {"dense/3x3_128-32@28", 1, 128, 32, 28, 28, 3, 3, 1, 1, 1},
    {"dense/3x3_96-24@160", 1, 96, 24, 160, 160, 3, 3, 1, 1, 1},
    {"dense/16x16s16_3-768@224", 1, 3, 768, 224, 224, 16, 16, 16, 1, 0},
    {"dense/1x3_64-64@1500", 1, 64, 64, 1, 1500, 1, 3, 1, 1, 1},
    {"dense/1x3_80-384@3000", 1, 80, 384, 1, 3000, 1, 3, 1, 1, 1},
    {"few/3x3_64-1@320", 1, 64, 1, 320, 320, 3, 3, 1, 1, 1},
    {"few/1x1_6-1@320", 1, 6, 1, 320, 320, 1, 1, 1, 1, 0},
    {"grouped/3x3_128by2@56", 64, 128, 128, 56, 56, 3, 3, 1, 1, 1},
    {"grouped/3x3_128by4@56", 32, 128, 128, 56, 56, 3, 3, 1, 1, 1},
    {"grouped/3x3s2_256by8@56", 32, 256, 256, 56, 56, 3, 3, 2, 1, 1},
    {"grouped/3x3_256by8@28", 32, 256, 256, 28, 28, 3, 3, 1, 1, 1},
    {"grouped/3x3_512by16@14", 32, 512, 512, 14, 14, 3, 3, 1, 1, 1},
    {"grouped/3x3_1024by32@7", 32, 1024, 1024, 7, 7, 3, 3, 1, 1, 1},
    {"dense/3x3d12_960-256@20", 1, 960, 256, 20, 20, 3, 3, 1, 12, 12},
    {"depthwise/3x3_72@56", 72, 72, 72, 56, 56, 3, 3, 1, 1, 1},
    {"depthwise/3x3_120@28", 120, 120, 120, 28, 28, 3, 3, 1, 1, 1},
    {"depthwise/5x5_672@14", 672, 672, 672, 14, 14, 5, 5, 1, 1, 2},
    {"depthwise/3x3_960@7", 960, 960, 960, 7, 7, 3, 3, 1, 1, 1},
    {"depthwise/3x3s2_64@112", 64, 64, 64, 112, 112, 3, 3, 2, 1, 1},
    {"depthwise/3x3_80@80", 80, 80, 80, 80, 80, 3, 3, 1, 1, 1},
    {"depthwise/7x7_96@56", 96, 96, 96, 56, 56, 7, 7, 1, 1, 3},
    {"depthwise/7x7_768@7", 768, 768, 768, 7, 7, 7, 7, 1, 1, 3},
    {"depthwise/5x5_256@20", 256, 256, 256, 20, 20, 5, 5, 1, 1, 2},
};

ConvShape shape_of(const Case& c) {
  ConvShape s;
  s.groups = c.groups, s.in_c = c.in_c, s.out_c = c.out_c, s.in_h = c.h, s.in_w = c.w;
  s.kernel_h = c.kernel_h, s.kernel_w = c.kernel_w, s.stride_h = s.stride_w = c.stride;
  s.dilation_h = s.dilation_w = c.dilation;
  s.pad_top = c.kernel_h == 1 ? 0 : c.pad, s.pad_left = c.pad;
  s.out_h = (s.in_h + 2 * s.pad_top - (s.kernel_h - 1) * s.dilation_h - 1) / s.stride_h + 1;
  s.out_w = (s.in_w + 2 * s.pad_left - (s.kernel_w - 1) * s.dilation_w - 1) / s.stride_w + 1;
  return s;
}

const bool kRegistered = [] {
  for (const auto& [channels, side] : {std::pair<int64_t, int64_t>{16, 112}, {24, 56}, {40, 28}, {80, 14}}) {
    const std::string name = "conv_chain/" + std::to_string(channels) + "@" + std::to_string(side);
    benchmark::RegisterBenchmark(name.c_str(), [channels = channels, side = side](benchmark::State& state) {
      chained(state, channels, side);
    })->MinTime(0.2);
  }
  for (const Case& c : kCases) {
    benchmark::RegisterBenchmark((std::string("conv/") + c.name).c_str(), [s = shape_of(c)](
                                                                              benchmark::State& state) {
      compare(state, s);
    })->MinTime(0.3);
    const ConvShape s = shape_of(c);
    if (!kernels::winograd_applies(s)) continue;
    for (const auto form : {kernels::WinogradForm::kTwo, kernels::WinogradForm::kFour}) {
      const std::string name = "winograd/f" + std::to_string(static_cast<int>(form)) + "/" + c.name;
      benchmark::RegisterBenchmark(name.c_str(), [s, form](benchmark::State& state) {
        by_winograd(state, s, form);
      })->MinTime(0.2);
    }
  }
  return true;
}();

}  // namespace
}  // namespace plimsoll
