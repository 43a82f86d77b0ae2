#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t block = 1;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->block = c.integer("blocksize");
  if (a->block < 1 || a->block > INT32_MAX) c.reject("blocksize {} is no size", a->block);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_rank(0, 4, 4);
  if (!c.ranked(0)) return c.set_output(0, c.type(0), unknown_dims(c, 4));
  const auto d = c.dims(0);
  const Dim block = c.attrs<Attrs>().block;
  for (Dim side : {d[2], d[3]}) {
    if (side.is_constant() && side.value() % block.value() != 0)
      c.reject("shape {} cannot be cut into blocks of {}", to_string(d), block.value());
  }
  c.set_output(0, c.type(0), {d[0], d[1] * block * block, floor_div(d[2], block), floor_div(d[3], block)});
}

void run(const RunContext& c) {
  const auto in = c.inputs[0].dims, out = c.outputs[0].dims;
  const int64_t b = c.attrs<Attrs>().block, depth = in[1], h = out[2], w = out[3], plane = h * w;
  kernels::CopyShape shape;
  shape.add(w, b, 1);
  shape.add(h, in[3] * b, w);
  shape.add(depth, in[2] * in[3], plane);
  shape.add(b, 1, depth * plane);
  shape.add(b, in[3], b * depth * plane);
  shape.add(in[0], depth * in[2] * in[3], b * b * depth * plane);
  kernels::strided_copy(c.outputs[0].data, c.inputs[0].data, shape, width_of(c.inputs[0].type), c.threads);
}

void gradient(GradientContext& c) {
  const AttributeList attributes = c.attributes().set("blocksize", c.attrs<Attrs>().block);
  c.set(0, c.op("DepthToSpace", {c.gradient()}, attributes));
}

}  // namespace

extern const OpDef op_space_to_depth = {
    .name = "SpaceToDepth",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
