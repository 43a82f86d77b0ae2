#include "ops/conv_common.h"

#include <algorithm>
#include <cstring>

#include "kernels/conv.h"
#include "kernels/depthwise.h"
#include "ops/channels_last.h"
#include "ops/conv_reference.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;

// A convolution of rank 3 is a sum of plane convolutions over its depth; one of rank 1 is a plane of
// height 1. Kernels of more dimensions, and of other types, go by the definition.
bool is_fast(ElementType type, size_t spatial) {
  return type == ElementType::kFloat && spatial <= 3;
}

bool is_depthwise(const ConvShape& s) {
  return s.groups > 1 && s.groups == s.in_c && s.groups == s.out_c;
}

// What weights and attributes alone tell of the plane convolution, padding behind included; for "same"
// padding, its bound.
struct PlanePlan {
  ConvShape shape;
  int64_t depth = 1;  // kernel planes
  int64_t pad_bottom = 0, pad_right = 0;
};

PlanePlan plane_plan(const ConvAttrs& a, std::span<const int64_t> w) {
  PlanePlan plan;
  const size_t rank = w.size() - 2;
  ConvShape& s = plan.shape;
  s.groups = a.groups;
  s.in_c = checked_mul(w[1], a.groups);
  s.out_c = w[0];
  const auto begin = [&](size_t i) {
    return a.window.is_same() ? (w[2 + i] - 1) * a.window.dilation(i) : a.window.pad_begin(i);
  };
  const auto end = [&](size_t i) {
    return a.window.is_same() ? (w[2 + i] - 1) * a.window.dilation(i) : a.window.pad_end(i);
  };
  const size_t last = rank - 1;
  s.kernel_w = w[2 + last], s.stride_w = a.window.stride(last), s.dilation_w = a.window.dilation(last);
  s.pad_left = begin(last), plan.pad_right = end(last);
  if (rank >= 2) {
    const size_t row = rank - 2;
    s.kernel_h = w[2 + row], s.stride_h = a.window.stride(row), s.dilation_h = a.window.dilation(row);
    s.pad_top = begin(row), plan.pad_bottom = end(row);
  }
  if (rank == 3) {
    plan.depth = w[2];
    // A plane that no kernel plane meets counts as padding from top to bottom.
    plan.pad_bottom = std::max<int64_t>(plan.pad_bottom, 1);
  }
  return plan;
}

int64_t plane_packed_bytes(const ConvShape& s) {
  return static_cast<int64_t>(is_depthwise(s) ? kernels::depthwise_packed_bytes(s)
                                              : kernels::conv_packed_bytes(s));
}

int64_t packed_bytes(const PlanePlan& plan) {
  return checked_mul(plan.depth, plane_packed_bytes(plan.shape));
}

void pack_planes(const PlanePlan& plan, const void* raw, const float* scale, std::byte* destination) {
  const ConvShape& s = plan.shape;
  kernels::ConvWeights weights = kernels::oihw_weights(s, raw, scale);
  weights.in_stride *= plan.depth;
  weights.out_stride *= plan.depth;
  for (int64_t plane = 0; plane < plan.depth; ++plane) {
    weights.data = static_cast<const char*>(raw) + plane * s.kernel_h * s.kernel_w * 4;
    (is_depthwise(s) ? kernels::depthwise_pack : kernels::conv_pack)(s, weights, destination);
    destination += plane_packed_bytes(s);
  }
}

std::optional<std::vector<int64_t>> constant_dims(const Facts& facts) {
  if (!facts.is_concrete()) return std::nullopt;
  std::vector<int64_t> dims;
  for (Dim d : facts.type.dims) dims.push_back(d.value());
  return dims;
}

Dim scratch_of_kernel(const ConvAttrs& a, const PlanePlan& plan, std::span<const Dim> x,
                      std::span<const Dim> y, int threads) {
  const ConvShape& s = plan.shape;
  if (is_depthwise(s)) return 0;
  const kernels::ConvScratch need = kernels::conv_scratch(s, plan.pad_bottom, plan.pad_right);
  const bool plain = s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
                     s.pad_top == 0 && s.pad_left == 0 && plan.pad_bottom == 0 && plan.pad_right == 0;
  Dim rows = 1;
  if (x.size() >= 4 && !plain) {
    const size_t axis = spatial_axis(a.window, x.size() - 4);
    rows = min(x[axis], (y[axis] - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1);
  }
  return min(Dim(need.limit_bytes), rows * need.bytes_per_row + need.base_bytes) * threads;
}

constexpr int64_t kAlignment = 64;

// Pieces of scratch, one behind the other.
class ScratchPieces {
 public:
  explicit ScratchPieces(std::byte* start) : next_(start) {}
  std::byte* take(int64_t bytes) {
    std::byte* piece = next_;
    next_ += round_up(bytes, kAlignment);
    return piece;
  }

 private:
  std::byte* next_;
};

struct ConvJob {
  PlanePlan plan;  // with the sizes at hand
  Window window;
  const float* x;
  const std::byte* packed;
  float* y;
  kernels::ConvEpilogue epilogue;
  std::byte* scratch;
  int threads;
};

void run_plane(const ConvJob& job, const ConvShape& s, const float* x, const std::byte* packed, float* y,
               const kernels::ConvEpilogue& epilogue) {
  if (is_depthwise(s)) return kernels::depthwise(s, x, packed, y, epilogue, job.threads);
  kernels::conv(s, x, packed, y, epilogue, job.scratch, job.threads);
}

// One plane of output: the kernel's planes add up in it.
void run_depth(const ConvJob& job, int64_t image, int64_t depth) {
  const ConvShape& s = job.plan.shape;
  const Window& w = job.window;
  const int64_t in_plane = s.in_h * s.in_w * s.in_c, out_plane = s.out_h * s.out_w * s.out_c;
  float* y = job.y + (image * w.out[0] + depth) * out_plane;
  kernels::ConvEpilogue epilogue = job.epilogue;
  if (epilogue.addend != nullptr) epilogue.addend += y - job.y;
  const TapRange taps = tap_range(w, 0, depth);
  if (taps.first == taps.last) {
    ConvShape nothing = s;
    nothing.in_h = 0;
    return run_plane(job, nothing, job.x, job.packed, y, epilogue);
  }
  for (int64_t k = taps.first; k < taps.last; ++k) {
    const int64_t in = image * w.in[0] + depth * w.stride[0] - w.begin[0] + k * w.dilation[0];
    epilogue.activation = k + 1 == taps.last ? job.epilogue.activation : kernels::Activation();
    run_plane(job, s, job.x + in * in_plane, job.packed + k * plane_packed_bytes(s), y, epilogue);
    epilogue.bias = nullptr;
    epilogue.addend = y;
  }
}

void run_planes(ConvJob& job) {
  ConvShape& s = job.plan.shape;
  const Window& w = job.window;
  const size_t last = w.rank - 1;
  s.batch = w.batch;
  s.in_w = w.in[last], s.out_w = w.out[last], s.pad_left = w.begin[last];
  if (w.rank >= 2) s.in_h = w.in[last - 1], s.out_h = w.out[last - 1], s.pad_top = w.begin[last - 1];
  if (w.rank < 3) return run_plane(job, s, job.x, job.packed, job.y, job.epilogue);
  s.batch = 1;
  for (int64_t image = 0; image < w.batch; ++image) {
    for (int64_t depth = 0; depth < w.out[0]; ++depth) run_depth(job, image, depth);
  }
}

const float* data_of(const RunContext& c, size_t input) {
  return c.has_input(input) ? c.inputs[input].as<float>() : nullptr;
}

void run_fast(const RunContext& c, const Window& window) {
  const auto& a = c.attrs<ConvAttrs>();
  const TensorView &x = c.inputs[kConvX], &w = c.inputs[kConvW], &y = c.outputs[0];
  ConvJob job{plane_plan(a, w.dims), window, x.as<float>(), w.data, y.as<float>(), {}, nullptr, c.threads};
  job.epilogue = {data_of(c, kConvBias), data_of(c, kConvAddend), a.activation};
  ScratchPieces scratch(c.scratch);
  if (!w.packed) {
    std::byte* packed = scratch.take(packed_bytes(job.plan));
    pack_planes(job.plan, w.data, data_of(c, kConvScale), packed);
    job.packed = packed;
  }
  const int64_t in_pixels = volume(window.rank, window.in), out_pixels = volume(window.rank, window.out);
  const int64_t out_channels = w.dims[0];
  if (!window.channels_last) {
    auto* x_copy = reinterpret_cast<float*>(scratch.take(x.bytes()));
    auto* y_copy = reinterpret_cast<float*>(scratch.take(y.bytes()));
    to_channels_last(window.batch, window.channels, in_pixels, job.x, x_copy, c.threads);
    if (job.epilogue.addend != nullptr) {
      to_channels_last(window.batch, out_channels, out_pixels, job.epilogue.addend, y_copy, c.threads);
      job.epilogue.addend = y_copy;
    }
    job.x = x_copy;
    job.y = y_copy;
  }
  job.scratch = scratch.take(0);
  run_planes(job);
  if (!window.channels_last)
    to_channels_first(window.batch, out_channels, out_pixels, job.y, y.as<float>(), c.threads);
}

template <typename T>
void run_reference(const RunContext& c, const Window& window) {
  const auto& a = c.attrs<ConvAttrs>();
  const auto data = [&](size_t i) { return c.has_input(i) ? c.inputs[i].as<const T>() : nullptr; };
  ConvOperands<T> o;
  o.x = data(kConvX), o.w = data(kConvW), o.bias = data(kConvBias), o.addend = data(kConvAddend);
  o.scale = data(kConvScale);
  o.y = c.outputs[0].as<T>();
  o.groups = a.groups, o.out_channels = c.inputs[kConvW].dims[0], o.activation = a.activation;
  conv_reference(window, o, c.threads);
}

void expect_channels(const InferContext& c, const char* what, Dim found, Dim expected) {
  if (found.is_constant() && expected.is_constant() && !(found == expected))
    c.reject("{}: expected {} channels, found {}", what, expected.value(), found.value());
}

// One value per output channel.
void check_vector(InferContext& c, size_t input, const char* what, Dim channels) {
  if (!c.has_input(input)) return;
  c.expect_same_type(kConvX, input);
  c.expect_rank(input, 1, 1);
  if (c.ranked(input)) expect_channels(c, what, c.dims(input)[0], channels);
}

void check_kernel(InferContext& c, const ConvAttrs& a) {
  const std::span<const Dim> w = c.dims(kConvW);
  for (size_t i = 0; i < a.window.kernel.size(); ++i) {
    const Dim taps = w[2 + i];
    if (taps.is_constant() && taps.value() != a.window.kernel[i])
      c.reject("attribute 'kernel_shape' says {} along dimension {}, the weights have shape {}",
               a.window.kernel[i], i, to_string(w));
  }
  for (size_t i = 2; i < w.size(); ++i) {
    if (w[i].is_constant() && (w[i].value() < 1 || w[i].value() > INT32_MAX))
      c.reject("weights of shape {}: expected at least one tap", to_string(w));
  }
  if (w[0].is_constant() && w[0].value() % a.groups != 0)
    c.reject("{} output channels do not divide into {} groups", w[0].value(), a.groups);
}

// All that packing reads: it comes before anything is known of X.
void check_weights(InferContext& c, const ConvAttrs& a) {
  c.expect_rank(kConvW, 3, 2 + kMaxSpatial);
  check_window(c, a.window, c.rank(kConvW));
  check_kernel(c, a);
  const Dim channels = c.dims(kConvW)[0];
  check_vector(c, kConvBias, "bias", channels);
  check_vector(c, kConvScale, "scale", channels);
}

}  // namespace

void read_conv(AttrContext& c, ConvAttrs& attrs) {
  read_window(c, attrs.window);
  attrs.groups = c.integer("group", 1);
  if (attrs.groups < 1 || attrs.groups > INT32_MAX) c.reject("attribute 'group': found {}", attrs.groups);
}

void infer_conv(InferContext& c) {
  const auto& a = c.attrs<ConvAttrs>();
  c.expect_type(kConvX, kFloatTypes);
  c.expect_same_type(kConvX, kConvW);
  if (c.ranked(kConvX)) check_window(c, a.window, c.rank(kConvX));
  if (c.ranked(kConvW)) check_weights(c, a);
  if (!c.ranked(kConvX) || !c.ranked(kConvW)) return c.set_unranked_output(0, c.type(kConvX));
  const size_t rank = c.rank(kConvX);
  c.expect_rank(kConvW, rank, rank);
  const std::span<const Dim> x = c.dims(kConvX), w = c.dims(kConvW);
  expect_channels(c, "input 0", x[channel_axis(a.window, rank)], w[1] * a.groups);
  std::vector<Dim> y(rank);
  y[0] = x[0];
  y[channel_axis(a.window, rank)] = w[0];
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    const Dim kernel = a.window.kernel.empty() ? w[2 + i] : Dim(a.window.kernel[i]);
    y[axis] = window_output(a.window, i, x[axis], kernel, false);
  }
  if (c.has_input(kConvAddend)) {
    c.expect_same_type(kConvX, kConvAddend);
    c.expect_rank(kConvAddend, rank, rank);
    for (size_t i = 0; c.ranked(kConvAddend) && i < rank; ++i) {
      const Dim z = c.dims(kConvAddend)[i];
      if (z.is_constant() && y[i].is_constant() && !(z == y[i]))
        c.reject("the addend has shape {}, the product {}", to_string(c.dims(kConvAddend)), to_string(y));
    }
  }
  c.set_output(0, c.type(kConvX), y);
}

void alias_conv(AliasContext& c) {
  if (!c.has_input(kConvAddend) || !c.ranked(kConvAddend) || !c.output(0).type.ranked) return;
  const std::span<const Dim> z = c.dims(kConvAddend), y = c.output(0).type.dims;
  if (std::equal(z.begin(), z.end(), y.begin(), y.end())) c.overwrite(kConvAddend);
}

void packs_conv(PackContext& c) {
  const bool scaled = c.has_input(kConvScale);
  if (c.constant(kConvW) == nullptr || (scaled && c.constant(kConvScale) == nullptr)) return;
  if (!is_fast(c.type(kConvW), c.rank(kConvW) - 2)) return;
  const auto dims = constant_dims(c.input(kConvW));
  if (dims) c.request(kConvW, packed_bytes(plane_plan(c.attrs<ConvAttrs>(), *dims)));
}

void pack_conv(const NodeContext& c, size_t, const TensorView& raw, std::byte* destination) {
  const PlanePlan plan = plane_plan(c.attrs<ConvAttrs>(), raw.dims);
  std::vector<float> scale;
  if (const TensorView* s = c.constant(kConvScale)) {
    scale.resize(static_cast<size_t>(s->elements()));
    if (!scale.empty()) std::memcpy(scale.data(), s->data, scale.size() * sizeof(float));
  }
  pack_planes(plan, raw.data, scale.empty() ? nullptr : scale.data(), destination);
}

void select_conv(SelectContext& c) {
  const auto& a = c.attrs<ConvAttrs>();
  if (!c.ranked(kConvX) || !c.output(0).type.ranked) return;
  const auto w = constant_dims(c.input(kConvW));
  if (!w || !is_fast(c.type(kConvX), c.rank(kConvX) - 2)) return;
  const PlanePlan plan = plane_plan(a, *w);
  const std::span<const Dim> y = c.output(0).type.dims;
  Dim bytes = scratch_of_kernel(a, plan, c.dims(kConvX), y, c.threads);
  if (!c.packed(kConvW)) bytes = bytes + round_up(packed_bytes(plan), kAlignment);
  if (!a.window.channels_last)
    bytes = bytes + (product(c.dims(kConvX)) + product(y)) * int64_t{sizeof(float)} + 2 * kAlignment;
  c.scratch_bytes = bytes;
}

void run_conv(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  const TensorView &x = c.inputs[kConvX], &w = c.inputs[kConvW];
  const Window window = make_window(c.attrs<ConvAttrs>().window, x, c.outputs[0], w.dims.subspan(2));
  if (is_fast(x.type, window.rank)) return run_fast(c, window);
  visit_float(x.type, [&](auto tag) { run_reference<typename decltype(tag)::type>(c, window); });
}

void region_conv(RegionContext& c) {
  const ConvAttrs& a = c.attrs<ConvAttrs>();
  std::vector<int64_t> kernel;
  for (Dim d : c.dims(kConvW).subspan(2)) kernel.push_back(d.value());
  region_window(c, a.window, kernel, false);
  const size_t channel = channel_axis(a.window, c.rank(0));
  c.made[channel] = {0, c.output(0).type.dims[channel].value()};
  if (c.has_input(kConvAddend)) c.needs[kConvAddend] = c.made;
}

Cost cost_conv(const NodeContext& c) {
  const auto w = constant_dims(c.input(kConvW));
  const auto y = constant_dims(c.output(0));
  if (!w || !y) return {};
  int64_t operations = 2;
  for (int64_t d : *y) operations = checked_mul(operations, d);
  for (size_t i = 1; i < w->size(); ++i) operations = checked_mul(operations, (*w)[i]);
  return {operations, tensor_bytes(c)};
}

}  // namespace plimsoll
