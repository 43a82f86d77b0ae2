// Transposed convolution. Output positions with the same remainder modulo the stride see the same taps of the
// kernel, and together they are an ordinary convolution of stride 1: the fast path runs one for each
// remainder
// ("phase"), storing with the stride.
#include <algorithm>
#include <numeric>

#include "kernels/conv.h"
#include "ops/channels_last.h"
#include "ops/conv_reference.h"

namespace plimsoll {
namespace {

using kernels::ConvShape;

struct TransposeAttrs {
  WindowAttrs window;
  int64_t groups = 1;
  std::span<const int64_t> output_padding, output_shape;
  int64_t extra(size_t i) const { return output_padding.empty() ? 0 : output_padding[i]; }
};

constexpr int64_t kMaxPhases = 4096;
constexpr int64_t kAlignment = 64;

const void* attrs(AttrContext& c) {
  auto* a = c.make<TransposeAttrs>();
  read_window(c, a->window);
  a->groups = c.integer("group", 1);
  if (a->groups < 1 || a->groups > INT32_MAX) c.reject("attribute 'group': found {}", a->groups);
  a->output_padding = c.integers("output_padding");
  a->output_shape = c.integers("output_shape");
  for (std::span<const int64_t> list : {a->output_padding, a->output_shape}) {
    for (int64_t value : list) {
      if (value < 0 || value > INT32_MAX) c.reject("output_padding or output_shape: found {}", value);
    }
  }
  return a;
}

// ---- sizes --------------------------------------------------------------------------------------

// Size of the output if nothing is cut off.
Dim full_output(const TransposeAttrs& a, size_t i, Dim in, Dim kernel) {
  return (in - 1) * a.window.stride(i) + (kernel - 1) * a.window.dilation(i) + 1 + a.extra(i);
}

Dim output_size(const TransposeAttrs& a, size_t i, size_t spatial, Dim in, Dim kernel) {
  // Some writers give the whole shape, batch and channels included.
  if (!a.output_shape.empty()) return a.output_shape[a.output_shape.size() - spatial + i];
  if (a.window.is_same()) return in * a.window.stride(i);
  return full_output(a, i, in, kernel) - a.window.pad_begin(i) - a.window.pad_end(i);
}

// How much is cut off before the first output.
int64_t cut_before(const TransposeAttrs& a, size_t i, int64_t in, int64_t kernel, int64_t out) {
  if (a.output_shape.empty() && !a.window.is_same()) return a.window.pad_begin(i);
  const int64_t total = std::max<int64_t>(0, full_output(a, i, in, kernel).value() - out);
  return a.window.auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
}

Window transpose_window(const TransposeAttrs& a, const TensorView& x, const TensorView& y,
                        std::span<const int64_t> kernel) {
  Window w = make_window(a.window, x, y, kernel);
  for (size_t i = 0; i < w.rank; ++i) w.begin[i] = cut_before(a, i, w.in[i], w.kernel[i], w.out[i]);
  return w;
}

void check_list(const NodeContext& c, const char* name, size_t length, size_t spatial, bool whole_shape) {
  if (length != 0 && length != spatial && !(whole_shape && length == spatial + 2))
    c.reject("attribute '{}': expected {} values, found {}", name, spatial, length);
}

// All that packing reads: it comes before anything is known of X.
void check_weights(InferContext& c, const TransposeAttrs& a) {
  c.expect_rank(1, 3, 2 + kMaxSpatial);
  check_window(c, a.window, c.rank(1));
  const std::span<const Dim> w = c.dims(1);
  if (w[0].is_constant() && w[0].value() % a.groups != 0)
    c.reject("{} input channels do not divide into {} groups", w[0].value(), a.groups);
  for (size_t i = 0; i + 2 < w.size(); ++i) {
    if (w[2 + i].is_constant() && (w[2 + i].value() < 1 || w[2 + i].value() > INT32_MAX))
      c.reject("weights of shape {}: expected at least one tap", to_string(w));
    if (!a.window.kernel.empty() && w[2 + i].is_constant() && w[2 + i].value() != a.window.kernel[i])
      c.reject("attribute 'kernel_shape' says {} along dimension {}, the weights have shape {}",
               a.window.kernel[i], i, to_string(w));
  }
}

void infer(InferContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_same_type(0, 1);
  if (c.has_input(2)) c.expect_same_type(0, 2);
  if (c.ranked(0)) check_window(c, a.window, c.rank(0));
  if (c.ranked(1)) check_weights(c, a);
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  const size_t rank = c.rank(0);
  check_list(c, "output_padding", a.output_padding.size(), rank - 2, false);
  check_list(c, "output_shape", a.output_shape.size(), rank - 2, true);
  c.expect_rank(1, rank, rank);
  const std::span<const Dim> x = c.dims(0), w = c.dims(1);
  const Dim in_channels = x[channel_axis(a.window, rank)];
  if (in_channels.is_constant() && w[0].is_constant() && !(in_channels == w[0]))
    c.reject("expected {} input channels, found {}", w[0].value(), in_channels.value());
  std::vector<Dim> y(rank);
  y[0] = x[0];
  y[channel_axis(a.window, rank)] = w[1] * a.groups;
  for (size_t i = 0; i + 2 < rank; ++i) {
    const size_t axis = spatial_axis(a.window, i);
    y[axis] = output_size(a, i, rank - 2, x[axis], w[2 + i]);
  }
  if (c.has_input(2)) {
    c.expect_rank(2, 1, 1);
    const Dim channels = y[channel_axis(a.window, rank)];
    if (c.ranked(2) && c.dims(2)[0].is_constant() && channels.is_constant() && !(c.dims(2)[0] == channels))
      c.reject("bias: expected {} channels, found {}", channels.value(), c.dims(2)[0].value());
  }
  c.set_output(0, c.type(0), y);
}

// ---- phases -------------------------------------------------------------------------------------

// Taps first, first + step, ... that meet output positions of one remainder, along one dimension.
struct PhaseTaps {
  int64_t first = 0, step = 1, count = 0;
  int64_t dilation = 1;  // input positions between neighbouring taps; they run backwards
};

PhaseTaps phase_taps(int64_t remainder, int64_t kernel, int64_t stride, int64_t dilation) {
  const int64_t divisor = std::gcd(stride, dilation);
  PhaseTaps taps;
  taps.step = stride / divisor;
  taps.dilation = dilation / divisor;
  for (int64_t t = 0; t < std::min(taps.step, kernel); ++t) {
    if (t * dilation % stride != remainder) continue;
    taps.first = t;
    taps.count = (kernel - t + taps.step - 1) / taps.step;
    break;
  }
  return taps;
}

// What weights and attributes alone tell. A kernel as wide as its stride makes one convolution of a whole row
// of phases, whose outputs lie side by side.
struct TransposePlan {
  int64_t groups = 1, in_c = 0, out_c = 0;
  int64_t kernel[2] = {1, 1}, stride[2] = {1, 1}, dilation[2] = {1, 1};
  bool side_by_side = false;

  int64_t phases_w() const { return side_by_side ? 1 : stride[1]; }
};

bool is_fast(const TransposeAttrs& a, ElementType type, size_t spatial) {
  if (type != ElementType::kFloat || spatial > 2) return false;
  int64_t phases = 1;
  for (size_t i = 0; i < spatial; ++i) phases = checked_mul(phases, a.window.stride(i));
  return phases <= kMaxPhases;
}

TransposePlan make_plan(const TransposeAttrs& a, std::span<const int64_t> w) {
  TransposePlan plan;
  plan.groups = a.groups, plan.in_c = w[0], plan.out_c = checked_mul(w[1], a.groups);
  const size_t spatial = w.size() - 2, last = spatial - 1;
  for (size_t i = 0; i < spatial; ++i) {
    const size_t to = 2 - spatial + i;
    plan.kernel[to] = w[2 + i], plan.stride[to] = a.window.stride(i),
    plan.dilation[to] = a.window.dilation(i);
  }
  plan.side_by_side = plan.kernel[1] == plan.stride[1] && plan.dilation[1] == 1 && a.groups == 1 &&
                      a.output_shape.empty() && !a.window.is_same() && a.window.pad_begin(last) == 0 &&
                      a.window.pad_end(last) == 0 && a.extra(last) == 0;
  return plan;
}

// The convolution of the phase with these remainders, but for sizes and padding.
ConvShape phase_shape(const TransposePlan& p, const PhaseTaps& h, const PhaseTaps& w) {
  ConvShape s;
  s.groups = p.groups, s.in_c = p.in_c, s.out_c = p.side_by_side ? p.out_c * p.stride[1] : p.out_c;
  s.kernel_h = std::max<int64_t>(1, h.count), s.dilation_h = h.dilation;
  s.kernel_w = std::max<int64_t>(1, w.count), s.dilation_w = w.dilation;
  return s;
}

// Calls f(remainder_h, remainder_w, taps_h, taps_w, offset of its packed weights); returns the bytes of them
// all.
template <typename F>
int64_t for_each_phase(const TransposePlan& p, F&& f) {
  int64_t offset = 0;
  for (int64_t h = 0; h < p.stride[0]; ++h) {
    for (int64_t w = 0; w < p.phases_w(); ++w) {
      const PhaseTaps taps_h = phase_taps(h, p.kernel[0], p.stride[0], p.dilation[0]);
      PhaseTaps taps_w = phase_taps(w, p.kernel[1], p.stride[1], p.dilation[1]);
      if (p.side_by_side) taps_w = {0, 1, 1, 1};
      f(h, w, taps_h, taps_w, offset);
      if (taps_h.count > 0 && taps_w.count > 0)
        offset = checked_add(
            offset, static_cast<int64_t>(kernels::conv_packed_bytes(phase_shape(p, taps_h, taps_w))));
    }
  }
  return offset;
}

int64_t packed_bytes(const TransposePlan& p) {
  return for_each_phase(p, [](auto&&...) {});
}

void pack_phases(const TransposePlan& p, const void* raw, std::byte* destination) {
  const int64_t plane = p.kernel[0] * p.kernel[1], out_c = p.out_c / p.groups;
  for_each_phase(p, [&](int64_t, int64_t, const PhaseTaps& h, const PhaseTaps& w, int64_t offset) {
    if (h.count == 0 || w.count == 0) return;
    const int64_t last = (h.first + (h.count - 1) * h.step) * p.kernel[1] + w.first + (w.count - 1) * w.step;
    kernels::ConvWeights weights;
    weights.data = static_cast<const char*>(raw) + last * 4;
    weights.in_stride = out_c * plane;
    weights.out_stride = plane;
    weights.row_stride = -h.step * p.kernel[1];
    weights.column_stride = -w.step;
    weights.block = out_c;
    weights.block_stride = p.side_by_side ? 1 : p.in_c / p.groups * weights.in_stride;
    kernels::conv_pack(phase_shape(p, h, w), weights, destination + offset);
  });
}

// A bound for every phase and every image: see run_phase for what it bounds.
kernels::ConvScratch scratch_bound(const TransposeAttrs& a, const TransposePlan& p) {
  ConvShape s;
  s.in_c = p.in_c, s.groups = p.groups, s.out_c = p.out_c;
  int64_t behind[2];
  const size_t spatial = 2;
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t divisor = std::gcd(p.stride[i], p.dilation[i]);
    const int64_t extent = (p.kernel[i] - 1) * p.dilation[i] + 1;
    (i == 0 ? s.kernel_h : s.kernel_w) = ceil_div(p.kernel[i], p.stride[i] / divisor);
    (i == 0 ? s.dilation_h : s.dilation_w) = p.dilation[i] / divisor;
    (i == 0 ? s.pad_top : s.pad_left) = extent / p.stride[i] + 1;
    int64_t extra = 0, shape = 0;
    for (int64_t value : a.output_padding) extra = std::max(extra, value);
    for (int64_t value : a.output_shape) shape = std::max(shape, value);
    behind[i] = (extra + extent + shape) / p.stride[i] + 1;
  }
  return kernels::conv_scratch(s, behind[0], behind[1]);
}

// ---- pack, select, run ----------------------------------------------------------------------------

std::optional<std::vector<int64_t>> constant_dims(const Facts& facts) {
  if (!facts.is_concrete()) return std::nullopt;
  std::vector<int64_t> dims;
  for (Dim d : facts.type.dims) dims.push_back(d.value());
  return dims;
}

void packs(PackContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  if (c.constant(1) == nullptr || !is_fast(a, c.type(1), c.rank(1) - 2)) return;
  const auto dims = constant_dims(c.input(1));
  if (dims) c.request(1, packed_bytes(make_plan(a, *dims)));
}

void pack(const NodeContext& c, size_t, const TensorView& raw, std::byte* destination) {
  pack_phases(make_plan(c.attrs<TransposeAttrs>(), raw.dims), raw.data, destination);
}

int64_t wide_bias_bytes(const TransposePlan& p) {
  return p.side_by_side ? round_up(p.out_c * p.stride[1] * int64_t{sizeof(float)}, kAlignment) : 0;
}

void select(SelectContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  if (!c.ranked(0) || !c.output(0).type.ranked) return;
  const auto dims = constant_dims(c.input(1));
  if (!dims || !is_fast(a, c.type(0), c.rank(0) - 2)) return;
  const TransposePlan plan = make_plan(a, *dims);
  const kernels::ConvScratch need = scratch_bound(a, plan);
  const Dim rows = c.rank(0) == 4 ? c.dims(0)[spatial_axis(a.window, 0)] : Dim(1);
  Dim bytes = min(Dim(need.limit_bytes), rows * need.bytes_per_row + need.base_bytes) * c.threads;
  bytes = bytes + wide_bias_bytes(plan);
  if (!c.packed(1)) bytes = bytes + round_up(packed_bytes(plan), kAlignment);
  if (!a.window.channels_last)
    bytes = bytes + (product(c.dims(0)) + product(c.output(0).type.dims)) * int64_t{sizeof(float)} +
            2 * kAlignment;
  c.scratch_bytes = bytes;
}

struct TransposeJob {
  TransposePlan plan;
  int64_t batch = 0;
  int64_t in[2] = {1, 1}, out[2] = {1, 1}, begin[2] = {0, 0};
  const float* x = nullptr;
  const std::byte* packed = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
  std::byte* scratch = nullptr;
  int threads = 1;
};

// Of the outputs whose position plus `begin` has this remainder: the first, how many, and the padding before
// the input of the first, in the phase's own convolution.
struct PhaseOutputs {
  int64_t first = 0, count = 0, pad = 0;
};

PhaseOutputs phase_outputs(const TransposeJob& job, int i, int64_t remainder, const PhaseTaps& taps) {
  const int64_t stride = job.plan.stride[i];
  PhaseOutputs o;
  o.first = ((remainder - job.begin[i]) % stride + stride) % stride;
  if (o.first >= job.out[i]) return o;
  o.count = (job.out[i] - 1 - o.first) / stride + 1;
  const int64_t input = (o.first + job.begin[i] - taps.first * job.plan.dilation[i]) / stride;
  o.pad = (taps.count - 1) * taps.dilation - input;
  return o;
}

void run_phase(const TransposeJob& job, int64_t remainder_h, int64_t remainder_w, const PhaseTaps& taps_h,
               const PhaseTaps& taps_w, int64_t offset) {
  const TransposePlan& p = job.plan;
  const bool any = taps_h.count > 0 && taps_w.count > 0;
  const PhaseOutputs h = phase_outputs(job, 0, remainder_h, taps_h);
  PhaseOutputs w = phase_outputs(job, 1, remainder_w, taps_w);
  if (p.side_by_side) w = {0, job.in[1], 0};
  ConvShape s = phase_shape(p, taps_h, taps_w);
  s.batch = job.batch;
  s.in_h = any ? job.in[0] : 0, s.in_w = job.in[1];
  s.out_h = h.count, s.out_w = w.count;
  s.pad_top = any ? h.pad : 0, s.pad_left = any ? w.pad : 0;
  s.out_pixel_stride = p.stride[1] * p.out_c;
  s.out_row_stride = p.stride[0] * job.out[1] * p.out_c;
  s.out_image_stride = job.out[0] * job.out[1] * p.out_c;
  float* y = job.y + (h.first * job.out[1] + w.first) * p.out_c;
  kernels::conv(s, job.x, job.packed + offset, y, {job.bias, nullptr, {}}, job.scratch, job.threads);
}

void run_fast(const RunContext& c, const Window& window) {
  const TensorView &x = c.inputs[0], &w = c.inputs[1], &y = c.outputs[0];
  TransposeJob job{make_plan(c.attrs<TransposeAttrs>(), w.dims)};
  const TransposePlan& p = job.plan;
  job.batch = window.batch, job.threads = c.threads;
  for (size_t i = 0; i < window.rank; ++i) {
    const size_t to = 2 - window.rank + i;
    job.in[to] = window.in[i], job.out[to] = window.out[i], job.begin[to] = window.begin[i];
  }
  job.x = x.as<float>(), job.y = y.as<float>(), job.packed = w.data;
  job.bias = c.has_input(2) ? c.inputs[2].as<float>() : nullptr;
  job.scratch = c.scratch;
  const auto take = [&](int64_t bytes) {
    std::byte* piece = job.scratch;
    job.scratch += round_up(bytes, kAlignment);
    return piece;
  };
  if (p.side_by_side) {
    auto* wide = reinterpret_cast<float*>(take(wide_bias_bytes(p)));
    for (int64_t i = 0; job.bias != nullptr && i < p.stride[1]; ++i)
      std::copy_n(job.bias, p.out_c, wide + i * p.out_c);
    if (job.bias != nullptr) job.bias = wide;
  }
  if (!w.packed) {
    std::byte* packed = take(packed_bytes(p));
    pack_phases(p, w.data, packed);
    job.packed = packed;
  }
  const int64_t in_pixels = job.in[0] * job.in[1], out_pixels = job.out[0] * job.out[1];
  if (!window.channels_last) {
    auto* copy = reinterpret_cast<float*>(take(x.bytes()));
    to_channels_last(job.batch, p.in_c, in_pixels, x.as<float>(), copy, c.threads);
    job.x = copy;
    job.y = reinterpret_cast<float*>(take(y.bytes()));
  }
  for_each_phase(p, [&](int64_t h, int64_t v, const PhaseTaps& taps_h, const PhaseTaps& taps_w,
                        int64_t offset) { run_phase(job, h, v, taps_h, taps_w, offset); });
  if (!window.channels_last)
    to_channels_first(job.batch, p.out_c, out_pixels, job.y, y.as<float>(), c.threads);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<TransposeAttrs>();
  if (c.outputs[0].elements() == 0) return;
  const TensorView &x = c.inputs[0], &w = c.inputs[1], &y = c.outputs[0];
  const Window window = transpose_window(a, x, y, w.dims.subspan(2));
  if (is_fast(a, x.type, window.rank)) return run_fast(c, window);
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ConvOperands<T> o;
    o.x = x.as<T>(), o.w = w.as<T>(), o.y = y.as<T>();
    o.bias = c.has_input(2) ? c.inputs[2].as<T>() : nullptr;
    o.groups = a.groups, o.out_channels = w.dims[1] * a.groups;
    conv_transpose_reference(window, o, c.threads);
  });
}

int64_t cost(const NodeContext& c) {
  const auto x = constant_dims(c.input(0)), w = constant_dims(c.input(1));
  if (!x || !w) return 0;
  int64_t operations = 2;
  for (int64_t d : *x) operations = checked_mul(operations, d);
  for (size_t i = 1; i < w->size(); ++i) operations = checked_mul(operations, (*w)[i]);
  return operations;
}

}  // namespace

extern const OpDef op_conv_transpose = {
    .name = "ConvTranspose",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .packs = packs,
    .pack = pack,
    .select = select,
    .run = run,
    .cost = cost,
    .channels_last = true,
};

}  // namespace plimsoll
