#include <algorithm>

#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"

namespace plimsoll {
namespace {

struct Attrs {
  int64_t axis = 0;
  bool given = false;  // the sizes are named, as attribute or input
  std::span<const int64_t> sizes;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->axis = c.integer("axis", 0);
  a->given = c.node().input(1) != nullptr;
  if (c.opset() < 13 && c.has("split")) {
    a->sizes = c.integers("split");
    a->given = true;
  }
  if (c.opset() >= 18 && c.has("num_outputs")) {
    const int64_t count = c.integer("num_outputs");
    if (a->given) c.reject("both num_outputs and the input 'split' are given");
    if (count != static_cast<int64_t>(c.node().outputs.size()))
      c.reject("num_outputs is {}, but there are {} outputs", count, c.node().outputs.size());
  }
  return a;
}

std::vector<Dim> equal_parts(const InferContext& c, Dim total) {
  const Dim count = static_cast<int64_t>(c.output_count());
  if (c.opset() < 18 && total.is_constant() && total.value() % count.value() != 0)
    c.reject("dimension {} cannot be split into {} equal parts", total.value(), count.value());
  std::vector<Dim> parts(c.output_count(), ceil_div(total, count));
  parts.back() = total - parts[0] * (count - Dim(1));
  return parts;
}

std::vector<Dim> named_parts(InferContext& c, Dim total) {
  const Attrs& a = c.attrs<Attrs>();
  std::vector<Dim> parts(a.sizes.begin(), a.sizes.end());
  if (c.has_input(1) && c.opset() < 2) {  // sizes as numbers of the data's own type
    c.expect_type(1, types(ElementType::kFloat));
    const auto sizes = c.reals(1);
    if (!sizes) return unknown_dims(c, c.output_count());
    parts.clear();
    for (float size : *sizes) {
      if (!(size >= 0 && size < 0x1p31f)) c.reject("size {} is no size", size);
      parts.push_back(static_cast<int64_t>(size));
    }
  } else if (c.has_input(1)) {
    c.expect_type(1, types(ElementType::kInt64));
    known_length(c, 1);
    const auto values = c.values(1);
    if (!values) return unknown_dims(c, c.output_count());
    parts.assign(values->begin(), values->end());
  }
  if (parts.size() != c.output_count())
    c.reject("{} sizes are given, but there are {} outputs", parts.size(), c.output_count());
  Dim sum = 0;
  for (Dim d : parts) {
    if (d.is_constant() && d.value() < 0) c.reject("size {} is negative", d.value());
    sum = sum + d;
  }
  if (sum.is_constant() && total.is_constant() && sum.value() != total.value())
    c.reject("the sizes {} do not add up to {}", to_string(parts), total.value());
  return parts;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  if (!c.ranked(0)) {
    for (size_t i = 0; i < c.output_count(); ++i) c.set_unranked_output(i, c.type(0));
    return;
  }
  const Attrs& a = c.attrs<Attrs>();
  const auto axis = static_cast<size_t>(c.axis(a.axis, c.rank(0)));
  const Dim total = c.dims(0)[axis];
  const std::vector<Dim> parts = a.given ? named_parts(c, total) : equal_parts(c, total);
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  auto values = c.rank(0) == 1 ? c.values(0) : std::nullopt;
  size_t next = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    dims[axis] = parts[i];
    c.set_output(i, c.type(0), dims);
    if (!parts[i].is_constant()) values.reset();
    if (!values) continue;
    const auto count = static_cast<size_t>(parts[i].value());
    c.set_values(i, values->subspan(next, count));
    next += count;
  }
}

size_t known_axis(const Attrs& a, size_t rank) {
  return static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(rank) : a.axis);
}

void alias(AliasContext& c) {
  if (!c.ranked(0)) return;
  const size_t axis = known_axis(c.attrs<Attrs>(), c.rank(0));
  if (product(c.dims(0).first(axis)) != Dim(1)) return;
  Dim offset = 0;
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.has_output(i)) return;  // where the next one begins is not told
    c.view(0, i, offset);
    offset = offset + product(c.output(i).type.dims) * width_dim(c.type(0));
  }
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const size_t axis = known_axis(c.attrs<Attrs>(), in.rank());
  const int64_t outer = count_of(in.dims.first(axis));
  const int64_t inner = count_of(in.dims.subspan(axis + 1));
  const size_t width = width_of(in.type);
  const std::byte* source = in.data;
  const auto count = static_cast<int64_t>(c.node->outputs.size());
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    int64_t part = ceil_div(in.dims[axis], count);
    if (c.has_output(at)) {
      part = c.outputs[at].dims[axis];
    } else if (c.attrs<Attrs>().given) {
      part = !c.has_input(1)     ? c.attrs<Attrs>().sizes[at]
             : c.node->opset < 2 ? static_cast<int64_t>(c.inputs[1].as<float>()[i])
                                 : index_at(c.inputs[1], i);
    }
    const int64_t row = part * inner;
    if (c.has_output(at)) {
      kernels::CopyShape shape;
      shape.add(row, 1, 1);
      shape.add(outer, in.dims[axis] * inner, row);
      kernels::strided_copy(c.outputs[at].data, source, shape, width, c.threads);
    }
    source += row * static_cast<int64_t>(width);
  }
}

void layout(LayoutContext& c) {
  layout_axis_attribute(c, c.attrs<Attrs>().axis);
  if (c.layout.choice != LayoutChoice::kPlain) c.layout.outputs.assign(c.output_count(), true);
}

void region(RegionContext& c) {
  const size_t axis = known_axis(c.attrs<Attrs>(), c.rank(0));
  int64_t offset = 0;
  for (size_t i = 0; i < c.output_index(); ++i) {
    if (!c.has_output(i)) return c.whole();  // where the next one begins is not told
    offset += c.output(i).type.dims[axis].value();
  }
  need_broadcast(c, 0);
  c.needs[0][axis] = {c.wanted(axis).begin + offset, c.wanted(axis).end + offset};
}

void gradient(GradientContext& c) {
  std::vector<Edge*> parts;
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.has_output(i)) c.reject("its gradient needs all of its outputs");
    parts.push_back(c.gradient(i) != nullptr
                        ? c.gradient(i)
                        : c.op("Expand", {c.scalar(c.type(0), 0), c.shape_of(c.out(i))}));
  }
  c.set(0, c.build.emit("", "Concat", parts, c.attributes().set("axis", c.attrs<Attrs>().axis).list())
               ->outputs[0]);
}

}  // namespace

extern const OpDef op_split = {
    .name = "Split",
    .inputs = {1, 2},
    .outputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .layout = layout,
    .region = region,
    .gradient = gradient,
};

}  // namespace plimsoll
