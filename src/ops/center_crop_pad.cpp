#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct CropAttrs {
  bool has_axes = false;
  std::span<const int64_t> axes;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CropAttrs>();
  a->has_axes = c.has("axes");
  a->axes = c.integers("axes");
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<CropAttrs>();
  c.expect_type(0, kAllTypes);
  c.expect_type(1, kIndexTypes);
  const auto length = known_length(c, 1);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  std::vector<int64_t> axes;
  if (a.has_axes) {
    axes = resolve_axes(c, a.axes, c.rank(0));
  } else {
    for (size_t i = 0; i < c.rank(0); ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (length && *length != axes.size())
    c.reject("shape: expected {} elements, one per axis, found {}", axes.size(), *length);
  const auto shape = c.values(1);
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  for (size_t i = 0; i < axes.size(); ++i)
    dims[static_cast<size_t>(axes[i])] = shape ? (*shape)[i] : c.unknown("");
  c.set_output(0, c.type(0), dims);
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  if (y.elements() == 0) return;
  const auto width = static_cast<int64_t>(width_of(x.type));
  kernels::CopyShape shape;
  int64_t from = 0, to = 0, from_stride = 1, to_stride = 1;
  bool pads = false;
  for (size_t i = x.rank(); i-- > 0;) {
    const int64_t in = x.dims[i], out = y.dims[i];
    shape.add(std::min(in, out), from_stride, to_stride);
    if (out < in) {
      from += (in - out) / 2 * from_stride;
    } else {
      to += (out - in) / 2 * to_stride;
    }
    pads = pads || out > in;
    from_stride *= in, to_stride *= out;
  }
  if (pads) std::memset(y.data, 0, static_cast<size_t>(y.bytes()));
  if (x.elements() == 0) return;
  kernels::strided_copy(y.data + to * width, x.data + from * width, shape, static_cast<size_t>(width),
                        c.threads);
}

// What was cropped is padded and what was padded is cropped, at the same places.
void gradient(GradientContext& c) {
  c.set(0, c.op("CenterCropPad", {c.gradient(), c.shape_of(c.in(0))}));
}

}  // namespace

extern const OpDef op_center_crop_pad = {
    .name = "CenterCropPad",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
