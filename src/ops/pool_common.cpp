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

bool is_plane_pool(const TensorView& x, const Window& w) {
  return is_float(x.type) && (w.channels_last || w.channels == 1) && w.rank <= 2;
}

kernels::PoolShape plane_shape(const Window& w) {
  kernels::PoolShape s;
  const size_t last = w.rank - 1;
  s.batch = w.batch, s.channels = w.channels;
  s.in_w = w.in[last], s.out_w = w.out[last], s.kernel_w = w.kernel[last], s.stride_w = w.stride[last];
  s.dilation_w = w.dilation[last], s.pad_left = w.begin[last], s.pad_right = w.end[last];
  if (w.rank == 2) {
    s.in_h = w.in[0], s.out_h = w.out[0], s.kernel_h = w.kernel[0], s.stride_h = w.stride[0];
    s.dilation_h = w.dilation[0], s.pad_top = w.begin[0], s.pad_bottom = w.end[0];
  }
  return s;
}

}  // namespace plimsoll
