#include <algorithm>

#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 1;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.opset() < 4 ? c.integer("axis", 1) : c.integer("axis");
  return a;
}

void propagate_values(InferContext& c) {
  std::vector<Dim> all;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const auto values = c.values(i);
    if (!values || all.size() > InferContext::kMaxKnownValues) return;
    all.insert(all.end(), values->begin(), values->end());
  }
  c.set_values(0, all);
}

void infer(InferContext& c) {
  bool ranked = true;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    c.expect_type(i, kAllTypes);
    c.expect_same_type(0, i);
    ranked = ranked && c.ranked(i);
  }
  if (!ranked) return c.set_unranked_output(0, c.type(0));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<Attrs>().axis, c.rank(0)));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (c.rank(i) != dims.size())
      c.reject("inputs 0 and {}: ranks {} and {} differ", i, dims.size(), c.rank(i));
    for (size_t d = 0; d < dims.size(); ++d)
      dims[d] = d == axis ? dims[d] + c.dims(i)[d] : unify(c, dims[d], c.dims(i)[d]);
  }
  c.set_output(0, c.type(0), dims);
  if (dims.size() == 1) propagate_values(c);
}

size_t known_axis(const Attrs& a, size_t rank) {
  return static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(rank) : a.axis);
}

void alias(AliasContext& c) {
  if (!c.output(0).type.ranked) return;
  const auto dims = c.output(0).type.dims;
  if (product(dims.first(known_axis(c.attrs<Attrs>(), dims.size()))) != Dim(1)) return;
  if (c.input_count() == 1) return c.view(0);
  Dim offset = 0;
  for (size_t i = 0; i < c.input_count(); ++i) {
    c.piece(i, 0, offset);
    offset = offset + product(c.dims(i)) * width_dim(c.type(0));
  }
}

void run(const RunContext& c) {
  const TensorView& out = c.outputs[0];
  const size_t axis = known_axis(c.attrs<Attrs>(), out.rank());
  const int64_t outer = count_of(out.dims.first(axis));
  const int64_t inner = count_of(out.dims.subspan(axis + 1));
  const int64_t target_row = out.dims[axis] * inner;
  const size_t width = width_of(out.type);
  std::byte* target = out.data;
  for (const TensorView& in : c.inputs) {
    const int64_t row = in.dims[axis] * inner;
    kernels::CopyShape shape;
    shape.add(row, 1, 1);
    shape.add(outer, row, target_row);
    kernels::strided_copy(target, in.data, shape, width, c.threads);
    target += row * static_cast<int64_t>(width);
  }
}

void layout(LayoutContext& c) {
  const TypeInfo& output = c.output(0).type;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.ranked(i) || !output.ranked || c.rank(i) != output.rank()) return;
  }
  layout_axis_attribute(c, c.attrs<Attrs>().axis);
  for (size_t i = 0; i < c.input_count(); ++i) c.make_port(i);
}

void region(RegionContext& c) {
  const size_t axis = known_axis(c.attrs<Attrs>(), c.rank(0));
  int64_t begin = 0;
  for (size_t i = 0; i < c.input_count(); ++i) {
    const int64_t size = c.size(i, axis);
    c.needs[i].assign(c.wanted().begin(), c.wanted().end());
    c.needs[i][axis] = {std::clamp<int64_t>(c.wanted(axis).begin - begin, 0, size),
                        std::clamp<int64_t>(c.wanted(axis).end - begin, 0, size)};
    begin += size;
  }
  c.runs_on_parts = true;
}

void gradient(GradientContext& c) {
  const int64_t axis = c.attrs<Attrs>().axis;
  std::vector<Edge*> sizes, parts(c.input_count());
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.ranked(i)) c.reject("its gradient needs the ranks of its inputs");
    const size_t at = known_axis(c.attrs<Attrs>(), c.rank(i));
    const Dim size = c.dims(i)[at];
    sizes.push_back(size.is_constant() ? c.build.integers({size.value()})
                                       : c.op("Shape", {c.in(i)},
                                              c.attributes()
                                                  .set("start", static_cast<int64_t>(at))
                                                  .set("end", static_cast<int64_t>(at) + 1)));
    if (c.wants(i))
      parts[i] =
          c.build.graph().add_edge(fmt::format("{}/part_{}", c.node().name, c.build.graph().edge_count()));
  }
  Edge* const inputs[] = {
      c.gradient(),
      c.build.emit("", "Concat", sizes, c.attributes().set("axis", int64_t{0}).list())->outputs[0]};
  c.build.emit_into(parts, "", "Split", inputs, c.attributes().set("axis", axis).list());
  for (size_t i = 0; i < parts.size(); ++i) c.set(i, parts[i]);
}

}  // namespace

extern const OpDef op_concat = {
    .name = "Concat",
    .inputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .layout = layout,
    .region = region,
    .gradient = gradient,
};

}  // namespace plimsoll
