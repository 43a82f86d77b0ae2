#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t block = 1;
  bool columns_first = false;  // CRD instead of DCR
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->block = c.integer("blocksize");
  if (a->block < 1 || a->block > INT32_MAX) c.reject("blocksize {} is no size", a->block);
  if (c.opset() < 11) return a;
  const std::string_view mode = c.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.reject("mode '{}' is unknown", mode);
  a->columns_first = mode == "CRD";
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_rank(0, 4, 4);
  if (!c.ranked(0)) return c.set_output(0, c.type(0), unknown_dims(c, 4));
  const auto d = c.dims(0);
  const Dim block = c.attrs<Attrs>().block;
  if (d[1].is_constant() && d[1].value() % (block * block).value() != 0)
    c.reject("{} channels cannot be cut into blocks of {} x {}", d[1].value(), block.value(), block.value());
  c.set_output(0, c.type(0), {d[0], floor_div(d[1], block * block), d[2] * block, d[3] * block});
}

void run(const RunContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const auto in = c.inputs[0].dims;
  const int64_t b = a.block, h = in[2], w = in[3], depth = c.outputs[0].dims[1], plane = h * w;
  // How far the input moves for one step of each: within a block down, within a block across, depth.
  const int64_t down = (a.columns_first ? b : b * depth) * plane;
  const int64_t across = (a.columns_first ? 1 : depth) * plane;
  const int64_t deeper = (a.columns_first ? b * b : 1) * plane;
  kernels::CopyShape shape;
  shape.add(b, across, 1);
  shape.add(w, 1, b);
  shape.add(b, down, w * b);
  shape.add(h, w, w * b * b);
  shape.add(depth, deeper, plane * b * b);
  shape.add(in[0], in[1] * plane, depth * plane * b * b);
  kernels::strided_copy(c.outputs[0].data, c.inputs[0].data, shape, width_of(c.inputs[0].type), c.threads);
}

void gradient(GradientContext& c) {
  const int64_t block = c.attrs<Attrs>().block;
  if (!c.attrs<Attrs>().columns_first)
    return c.set(0, c.op("SpaceToDepth", {c.gradient()}, c.attributes().set("blocksize", block)));
  // [n, c, h, b, w, b] becomes [n, c, b, b, h, w].
  if (!c.ranked(0) || !c.dims(0)[2].is_constant() || !c.dims(0)[3].is_constant())
    c.reject("its gradient with mode CRD needs the height and width of its input");
  const int64_t h = c.dims(0)[2].value(), w = c.dims(0)[3].value();
  Edge* cut = c.op("Reshape", {c.gradient(), c.build.integers({0, 0, h, block, w, block})});
  const int64_t perm[] = {0, 1, 3, 5, 2, 4};
  Edge* moved = c.op("Transpose", {cut}, c.attributes().set("perm", std::span<const int64_t>(perm)));
  c.set(0, c.op("Reshape", {moved, c.build.integers({0, -1, h, w})}));
}

}  // namespace

extern const OpDef op_depth_to_space = {
    .name = "DepthToSpace",
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
