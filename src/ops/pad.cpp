#include <algorithm>
#include <cstring>

#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"
#include "tensor/small_types.h"

namespace plimsoll {
namespace {

enum class Mode : uint8_t { kConstant, kReflect, kEdge, kWrap };

constexpr int64_t kMostPadding = int64_t{1} << 48;

struct Attrs {
  Mode mode = Mode::kConstant;
  std::span<const int64_t> pads;  // before opset 11
  float value = 0;
};

Mode read_mode(AttrContext& c) {
  const std::string_view mode = c.text("mode", "constant");
  if (mode == "constant") return Mode::kConstant;
  if (mode == "reflect") return Mode::kReflect;
  if (mode == "edge") return Mode::kEdge;
  if (mode == "wrap" && c.opset() >= 19) return Mode::kWrap;
  c.reject("mode '{}' is unknown (opset {})", mode, c.opset());
}

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->mode = read_mode(c);
  if (c.opset() < 11) {
    a->pads = c.integers(c.opset() < 2 ? "paddings" : "pads");
    a->value = c.real("value", 0.0f);
  } else if (c.node().input(1) == nullptr) {
    c.reject("input 1 (pads) is missing");
  }
  return a;
}

// How much is added in front and behind, for every axis; nullopt if it is not known.
std::optional<std::vector<std::pair<Dim, Dim>>> known_pads(InferContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  std::vector<Dim> pads(a.pads.begin(), a.pads.end());
  if (c.opset() >= 11) {
    const auto values = c.values(1);
    if (!values) return std::nullopt;
    pads.assign(values->begin(), values->end());
  }
  std::vector<int64_t> axes(c.rank(0));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (c.has_input(3)) {
    const auto named = c.integers(3);
    if (!named) return std::nullopt;
    axes = resolve_axes(c, *named, c.rank(0));
  }
  for (Dim pad : pads) {
    if (pad.is_constant() && (pad.value() > kMostPadding || pad.value() < -kMostPadding))
      c.reject("a padding of {} is out of reason", pad.value());
  }
  if (pads.size() != axes.size() * 2)
    c.reject("expected {} pads for {} axes, found {}", axes.size() * 2, axes.size(), pads.size());
  std::vector<std::pair<Dim, Dim>> result(c.rank(0), {0, 0});
  for (size_t i = 0; i < axes.size(); ++i)
    result[static_cast<size_t>(axes[i])] = {pads[i], pads[i + axes.size()]};
  return result;
}

void expect_inputs(InferContext& c) {
  c.expect_type(0, kViewTypes);
  if (c.has_input(1)) {
    c.expect_type(1, types(ElementType::kInt64));
    known_length(c, 1);
  }
  if (c.has_input(2)) {
    c.expect_same_type(0, 2);
    const Dim count = c.ranked(2) ? product(c.dims(2)) : Dim(1);
    if (count.is_constant() && count.value() != 1)
      c.reject("input 2: expected one value, found shape {}", to_string(c.dims(2)));
  }
  if (c.has_input(3)) {
    c.expect_type(3, kIndexTypes);
    known_length(c, 3);
  }
  if (c.opset() < 11 && !kFloatTypes.contains(c.type(0)))
    c.reject("input 0: type {} is not allowed (opset {})", element_type_name(c.type(0)), c.opset());
}

void infer(InferContext& c) {
  expect_inputs(c);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const auto pads = known_pads(c);
  if (!pads) return c.set_output(0, c.type(0), unknown_dims(c, c.rank(0)));
  std::vector<Dim> dims;
  for (size_t i = 0; i < c.rank(0); ++i) {
    const auto [front, back] = (*pads)[i];
    const Dim dim = c.dims(0)[i];
    dims.push_back(dim + front + back);
    if (c.attrs<Attrs>().mode == Mode::kConstant || !dims[i].is_constant() || dims[i].value() <= 0) continue;
    const Dim left = dim + min(front, Dim(0)) + min(back, Dim(0));
    if (left.is_constant() && left.value() <= 0)
      c.reject("axis {} of shape {}: nothing is left to fill the padding from", i, to_string(c.dims(0)));
  }
  c.set_output(0, c.type(0), dims);
}

// ---- run ------------------------------------------------------------------------------------------

// One axis: output position i shows what the input has at i - front, if that is in [low, high).
struct Axis {
  int64_t dim, low, high, front;
};

int64_t pad_at_run(const RunContext& c, size_t axis, bool back) {
  const size_t rank = c.inputs[0].rank();
  if (c.node->opset < 11) return c.attrs<Attrs>().pads[axis + (back ? rank : 0)];
  if (!c.has_input(3)) return index_at(c.inputs[1], static_cast<int64_t>(axis + (back ? rank : 0)));
  const int64_t count = c.inputs[3].elements();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t named = index_at(c.inputs[3], i);
    const int64_t resolved = named < 0 ? named + static_cast<int64_t>(rank) : named;
    if (resolved == static_cast<int64_t>(axis)) return index_at(c.inputs[1], i + (back ? count : 0));
  }
  return 0;
}

Axis padded(int64_t dim, int64_t front, int64_t back) {
  return {dim, std::min(dim, std::max<int64_t>(0, -front)),
          std::max<int64_t>(0, dim + std::min<int64_t>(0, back)), front};
}

Axis axis_at_run(const RunContext& c, size_t axis) {
  return padded(c.inputs[0].dims[axis], pad_at_run(c, axis, false), pad_at_run(c, axis, true));
}

// Where the value for a position outside [low, high) comes from.
int64_t reflected(Mode mode, int64_t position, const Axis& axis) {
  const int64_t size = axis.high - axis.low;
  int64_t p = position - axis.low;
  if (p >= 0 && p < size) return position;
  if (mode == Mode::kEdge || size == 1) return axis.low + std::clamp<int64_t>(p, 0, size - 1);
  const int64_t period = mode == Mode::kWrap ? size : 2 * (size - 1);
  p %= period;
  if (p < 0) p += period;
  return axis.low + (p < size ? p : period - p);
}

void pad_constant(const RunContext& c, const std::byte* value) {
  const TensorView& in = c.inputs[0];
  const TensorView& out = c.outputs[0];
  const size_t width = width_of(in.type);
  kernels::CopyShape shape;
  int64_t source = 1, target = 1, source_offset = 0, target_offset = 0, copied = 1;
  for (size_t i = in.rank(); i-- > 0;) {
    const Axis axis = axis_at_run(c, i);
    const int64_t dim = std::max<int64_t>(0, axis.high - axis.low);
    source_offset += axis.low * source;
    target_offset += (axis.low + axis.front) * target;
    shape.add(dim, source, target);
    copied *= dim;
    source *= axis.dim;
    target *= out.dims[i];
  }
  if (const int bits = element_bits(in.type); bits < 8) {
    fill_packed(out.data, bits, out.elements(), packed_bits(value, bits, 0));
    if (copied > 0) kernels::strided_copy_bits(out.data, target_offset, in.data, source_offset, shape, bits);
    return;
  }
  if (copied != out.elements()) kernels::fill(out.data, out.elements(), value, width);
  if (copied == 0) return;
  kernels::strided_copy(out.data + target_offset * static_cast<int64_t>(width),
                        in.data + source_offset * static_cast<int64_t>(width), shape, width, c.threads);
}

// A padding without a constant: its axes down to the last one that is padded, and how many elements move
// together below.
struct Mirrored {
  struct Level {
    Axis axis;
    int64_t count, source, target;
  };
  Mode mode;
  size_t depth = 0;
  int64_t block = 1;
  Level levels[InferContext::kMaxRank];

  Mirrored(const RunContext& c, Mode given) : mode(given), depth(c.inputs[0].rank()) {
    for (size_t i = 0; i < depth; ++i) {
      levels[i] = {axis_at_run(c, i), c.outputs[0].dims[i], stride_of(c.inputs[0].dims, i),
                   stride_of(c.outputs[0].dims, i)};
    }
    for (; depth > 1 && is_whole(levels[depth - 1]); --depth) block *= levels[depth - 1].count;
  }
  static bool is_whole(const Level& l) { return l.axis.front == 0 && l.count == l.axis.dim; }
};

template <typename T>
void pad_mirrored(const Mirrored& m, size_t index, const T* in, T* out) {
  const auto& [axis, count, source, target] = m.levels[index];
  const auto from = [&](int64_t i) { return in + reflected(m.mode, i - axis.front, axis) * source; };
  if (index + 1 < m.depth) {
    for (int64_t i = 0; i < count; ++i) pad_mirrored<T>(m, index + 1, from(i), out + i * target);
    return;
  }
  const int64_t begin = std::clamp<int64_t>(axis.low + axis.front, 0, count),
                end = std::clamp(axis.high + axis.front, begin, count);
  for (int64_t i = 0; i < begin; ++i) std::copy_n(from(i), m.block, out + i * target);
  std::copy_n(in + (begin - axis.front) * source, (end - begin) * m.block, out + begin * target);
  for (int64_t i = end; i < count; ++i) std::copy_n(from(i), m.block, out + i * target);
}

// Elements that share bytes, one by one.
void pad_packed(const RunContext& c, const Mirrored& m, size_t index, int64_t in, int64_t out) {
  const auto& [axis, count, source, target] = m.levels[index];
  const int bits = element_bits(c.inputs[0].type);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = in + reflected(m.mode, i - axis.front, axis) * source;
    if (index + 1 < m.depth) {
      pad_packed(c, m, index + 1, from, out + i * target);
      continue;
    }
    for (int64_t k = 0; k < m.block; ++k)
      set_packed_bits(c.outputs[0].data, bits, out + i * target + k,
                      packed_bits(c.inputs[0].data, bits, from + k));
  }
}

void run(const RunContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const ElementType type = c.inputs[0].type;
  if (c.outputs[0].elements() == 0) return;
  if (c.inputs[0].rank() == 0) return run_whole(c);
  if (a.mode != Mode::kConstant && kPackedTypes.contains(type)) {
    pad_packed(c, Mirrored(c, a.mode), 0, 0, 0);
    return clear_padding_bits(c.outputs[0].data, element_bits(type), c.outputs[0].elements());
  }
  if (a.mode != Mode::kConstant) {
    visit_width(type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      pad_mirrored<T>(Mirrored(c, a.mode), 0, c.inputs[0].as<T>(), c.outputs[0].as<T>());
    });
    return;
  }
  alignas(16) std::byte value[16] = {};
  if (c.has_input(2)) {
    std::memcpy(value, c.inputs[2].data, static_cast<size_t>(element_bytes(type, 1)));
  } else if (a.value != 0) {
    visit_float(type, [&](auto tag) {
      const auto typed = static_cast<typename decltype(tag)::type>(a.value);
      std::memcpy(value, &typed, sizeof(typed));
    });
  }
  pad_constant(c, value);
}

// ---- layout, region -------------------------------------------------------------------------------

void layout(LayoutContext& c) {
  const size_t rank = c.rank(0);
  std::vector<int64_t> entries = LayoutContext::order(rank);
  for (size_t i = 0; i < rank; ++i) entries.push_back(entries[i] + static_cast<int64_t>(rank));
  if (c.opset() >= 11) {
    if (c.has_input(3) || !c.has_length(1, 2 * rank)) return;
    c.either({0});
    return c.changes().set_entries(1, entries);
  }
  const std::span<const int64_t> pads = c.attrs<Attrs>().pads;
  if (c.opset() < 2 || pads.size() != entries.size()) return;
  std::vector<int64_t> moved;
  for (int64_t entry : entries) moved.push_back(pads[static_cast<size_t>(entry)]);
  c.either({0});
  c.changes().set("pads", moved);
}

std::optional<std::vector<Axis>> known_padding(const NodeContext& c) {
  const auto pads = attribute_or_known(c, c.attrs<Attrs>().pads, 1);
  std::vector<int64_t> all(c.rank(0));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const auto axes = c.has_input(3) ? resolved_axes(c.integers(3), c.rank(0)) : all;
  if (!pads || !axes || pads->size() != 2 * axes->size()) return std::nullopt;
  std::vector<Axis> result;
  for (Dim d : c.dims(0)) result.push_back({d.value(), 0, d.value(), 0});
  for (size_t i = 0; i < axes->size(); ++i) {
    Axis& axis = result[static_cast<size_t>((*axes)[i])];
    axis = padded(axis.dim, (*pads)[i], (*pads)[i + axes->size()]);
  }
  return result;
}

// What is wanted of one axis, [wanted) of the output, needs this of the input.
Interval needed(Mode mode, const Axis& axis, const Interval& wanted) {
  const Interval shown = {wanted.begin - axis.front, wanted.end - axis.front};
  if (mode == Mode::kConstant) {
    const int64_t high = std::max(axis.low, axis.high);
    return {std::clamp(shown.begin, axis.low, high), std::clamp(shown.end, axis.low, high)};
  }
  Interval needs = {axis.dim, 0};
  for (int64_t i = shown.begin; i < shown.end; ++i) {
    const int64_t from = reflected(mode, i, axis);
    needs = {std::min(needs.begin, from), std::max(needs.end, from + 1)};
  }
  return needs;
}

void region(RegionContext& c) {
  const Mode mode = c.attrs<Attrs>().mode;
  const auto axes = known_padding(c);
  if (!axes) return c.whole();
  const size_t rank = c.rank(0);
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t i = 0; i < rank; ++i) {
    const Interval needs = c.needs[0][i] = needed(mode, (*axes)[i], c.wanted(i));
    const int64_t front = (*axes)[i].front;
    // Where nothing of the input is wanted, all is padding.
    pads[i] = needs.size() > 0 ? needs.begin + front - c.wanted(i).begin : c.wanted(i).size();
    pads[i + rank] = needs.size() > 0 ? c.wanted(i).end - needs.end - front : 0;
  }
  c.runs_on_parts = mode == Mode::kConstant;
  if (c.opset() < 11) return c.changes.set("pads", pads);
  c.changes.set_integers(1, pads);
  if (c.has_input(3)) c.changes.leave_out(3);
}

std::vector<int64_t> all_axes(size_t rank) {
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  return axes;
}

// Reflected, repeated or wrapped elements give their gradient to where they came from, which padding the
// positions tells; axis by axis.
Edge* folded(const GradientContext& c, std::span<const int64_t> pads, std::span<const int64_t> axes) {
  const Mode mode = c.attrs<Attrs>().mode;
  const char* name = mode == Mode::kReflect ? "reflect" : mode == Mode::kEdge ? "edge" : "wrap";
  Edge* edge = c.gradient();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i], front = pads[i], back = pads[i + axes.size()];
    if (front == 0 && back == 0) continue;
    Edge* size =
        c.op("Squeeze", {c.op("Shape", {c.in(0)}, c.attributes().set("start", axis).set("end", axis + 1))});
    Edge* positions = c.op("Range", {c.build.scalar(int64_t{0}), size, c.build.scalar(int64_t{1})});
    Edge* sources =
        c.op("Pad", {positions, c.build.integers({front, back})}, c.attributes().set("mode", name));
    // Axes that are not yet folded have the output's size.
    const auto at = static_cast<size_t>(axis);
    std::vector<Edge*> sizes;
    for (size_t d = 0; d < c.rank(0); ++d) {
      const auto place = static_cast<int64_t>(d);
      sizes.push_back(c.op("Shape", {d == at ? c.in(0) : edge},
                           c.attributes().set("start", place).set("end", place + 1)));
    }
    Edge* shape =
        c.build.emit("", "Concat", sizes, c.attributes().set("axis", int64_t{0}).list())->outputs[0];
    edge = c.own_op("GatherGradient", {edge, sources, shape}, c.attributes().set("axis", axis));
  }
  return edge;
}

void gradient(GradientContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  if (!c.ranked(0)) c.reject("its gradient needs the rank of its input");
  const auto pads = attribute_or_known(c, a.pads, 1);
  std::optional<std::vector<int64_t>> axes =
      c.has_input(3) ? resolved_axes(c.integers(3), c.rank(0)) : all_axes(c.rank(0));
  if (!pads || !axes || pads->size() != 2 * axes->size()) c.reject("its gradient needs the pads to be known");
  const size_t count = axes->size();
  if (a.mode != Mode::kConstant) return c.set(0, folded(c, *pads, *axes));
  // What was cut off gets zeros, what was added is cut off.
  std::vector<int64_t> back;
  for (int64_t pad : *pads) back.push_back(-pad);
  if (c.wants(0))
    c.set(0, c.op("Pad", {c.gradient(), c.build.integers(back), nullptr, c.build.integers(*axes)}));
  if (!c.wants(2)) return;
  // The value's is all that did not come from the input.
  std::vector<int64_t> added;
  for (size_t i = 0; i < 2 * count; ++i) added.push_back((*pads)[i]);
  Edge* ones = c.op("Expand", {c.scalar(1), c.shape_of(c.in(0))});
  Edge* from_input = c.op("Pad", {ones, c.build.integers(added), nullptr, c.build.integers(*axes)});
  Edge* rest = c.op("Mul", {c.gradient(), c.op("Sub", {c.scalar(1), from_input})});
  Edge* sum = c.op("ReduceSum", {rest}, c.attributes().set("keepdims", int64_t{0}));
  c.set(2, c.op("Reshape", {sum, c.shape_of(c.in(2))}));
}

}  // namespace

extern const OpDef op_pad = {
    .name = "Pad",
    .inputs = {1, 4},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .layout = layout,
    .region = region,
    .gradient = gradient,
};

}  // namespace plimsoll
