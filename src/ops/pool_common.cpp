#include "ops/pool_common.h"

#include "graph/gradient.h"

namespace plimsoll {

void read_pool(AttrContext& c, PoolAttrs& attrs) {
  read_window(c, attrs.window);
  if (attrs.window.kernel.empty()) c.reject("attribute 'kernel_shape' is missing");
  attrs.ceil_mode = c.integer("ceil_mode", 0) != 0;
}

void infer_pool(InferContext& c, TypeSet types) {
  const WindowAttrs& w = c.attrs<PoolAttrs>().window;
  c.expect_type(0, types);
  if (!c.ranked(0)) {
    c.set_unranked_output(0, c.type(0));
    return c.set_unranked_output(1, ElementType::kInt64);
  }
  check_window(c, w, c.rank(0));
  const std::span<const Dim> x = c.dims(0);
  std::vector<Dim> y(x.begin(), x.end());
  for (size_t i = 0; i + 2 < x.size(); ++i) {
    const size_t axis = spatial_axis(w, i);
    y[axis] = window_output(w, i, x[axis], w.kernel[i], c.attrs<PoolAttrs>().ceil_mode);
  }
  c.set_output(0, c.type(0), y);
  c.set_output(1, ElementType::kInt64, y);
}

void region_pool(RegionContext& c) {
  const PoolAttrs& a = c.attrs<PoolAttrs>();
  region_window(c, a.window, a.window.kernel, a.count_padding);
  const size_t channel = channel_axis(a.window, c.rank(0));
  c.needs[0][channel] = c.wanted(channel);
  if (c.output_index() > 0) c.runs_on_parts = false;  // indices count in the whole input
}

void region_global_pool(RegionContext& c) {
  const size_t channel = channel_axis(c.attrs<PoolAttrs>().window, c.rank(0));
  c.needs[0][0] = c.wanted(0);
  c.needs[0][channel] = c.wanted(channel);
  c.runs_on_parts = true;
}

const void* read_global_pool(AttrContext& c) {
  auto* attrs = c.make<PoolAttrs>();
  attrs->window.channels_last = c.integer("channels_last", 0) != 0;
  return attrs;
}

void infer_global_pool(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  c.expect_rank(0, 2, 2 + kMaxSpatial);
  const std::span<const Dim> x = c.dims(0);
  std::vector<Dim> y(x.size(), Dim(1));
  const size_t channels = channel_axis(c.attrs<PoolAttrs>().window, x.size());
  y[0] = x[0];
  y[channels] = x[channels];
  c.set_output(0, c.type(0), y);
}

void gradient_pool(GradientContext& c, std::string_view kind, double p) {
  Edge* dy = c.gradient();
  if (dy == nullptr) return;
  AttributeList attributes(c.build.graph().arena(), c.node());
  attributes.erase("storage_order").set("kind", kind).set("p", static_cast<float>(p));
  Edge* shape = c.shape_of(c.in(0));
  if (kind == "average") return c.set(0, c.own_op("PoolGradient", {dy, shape}, attributes));
  if (kind == "max") return c.set(0, c.own_op("PoolGradient", {dy, shape, c.in(0)}, attributes));
  c.set(0, c.own_op("PoolGradient", {dy, shape, c.in(0), c.out(0)}, attributes));
}

Edge* pooled_elements(const GradientContext& c) {
  const std::span<const Dim> dims = c.dims(0);
  const Dim count = product(dims.subspan(2));
  if (count.is_constant()) return c.scalar(static_cast<double>(count.value()));
  Edge* sizes = c.op("Shape", {c.in(0)}, c.attributes().set("start", int64_t{2}));
  Edge* all = c.op("ReduceProd", {sizes}, c.attributes().set("keepdims", int64_t{0}));
  return c.op("CastLike", {all, c.gradient()});
}

Window pool_window(const RunContext& c) {
  const WindowAttrs& w = c.attrs<PoolAttrs>().window;
  return make_window(w, c.inputs[0].dims, c.outputs[0].dims, w.kernel);
}

namespace {

bool passes_through(const Window& w, size_t i) {
  return w.kernel[i] == 1 && w.stride[i] == 1 && w.begin[i] == 0 && w.end[i] == 0 && w.in[i] == w.out[i];
}

}  // namespace

std::optional<kernels::PoolShape> plane_pool(const TensorView& x, const Window& w) {
  constexpr int64_t kFewChannels = 8;
  if (!is_float(x.type)) return std::nullopt;
  kernels::PoolShape s;
  s.batch = w.batch, s.channels = w.channels;
  size_t first = 0, last = w.rank;
  if (!w.channels_last) s.batch *= w.channels, s.channels = 1;
  while (last > 0 && passes_through(w, last - 1)) s.channels *= w.in[--last];  // they lie before the channels
  while (first < last && passes_through(w, first)) s.batch *= w.in[first++];
  const size_t rank = last - first;
  const bool is_wide = w.channels_last || s.channels >= kFewChannels || (w.channels == 1 && rank <= 2);
  if (rank > 3 || !is_wide) return std::nullopt;
  if (rank >= 1) {
    const size_t i = last - 1;
    s.in_w = w.in[i], s.out_w = w.out[i], s.kernel_w = w.kernel[i], s.stride_w = w.stride[i];
    s.dilation_w = w.dilation[i], s.pad_left = w.begin[i], s.pad_right = w.end[i];
  }
  if (rank >= 2) {
    const size_t i = last - 2;
    s.in_h = w.in[i], s.out_h = w.out[i], s.kernel_h = w.kernel[i], s.stride_h = w.stride[i];
    s.dilation_h = w.dilation[i], s.pad_top = w.begin[i], s.pad_bottom = w.end[i];
  }
  if (rank == 3) {
    s.in_d = w.in[first], s.out_d = w.out[first], s.kernel_d = w.kernel[first], s.stride_d = w.stride[first];
    s.dilation_d = w.dilation[first], s.pad_front = w.begin[first], s.pad_back = w.end[first];
  }
  return s;
}

}  // namespace plimsoll
