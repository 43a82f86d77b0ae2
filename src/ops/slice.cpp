#include <algorithm>

#include "graph/gradient.h"
#include "ops/layout.h"
#include "ops/movement.h"
#include "ops/region.h"
#include "ops/selection_cost.h"
#include "ops/slice.h"

namespace plimsoll {
namespace {

struct Attrs {
  std::span<const int64_t> starts, ends, axes;  // before opset 10
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() < 10) {
    a->starts = c.integers("starts");
    a->ends = c.integers("ends");
    a->axes = c.integers("axes");
    if (a->starts.size() != a->ends.size())
      c.reject("{} starts but {} ends", a->starts.size(), a->ends.size());
    if (!a->axes.empty() && a->axes.size() != a->starts.size())
      c.reject("{} starts but {} axes", a->starts.size(), a->axes.size());
  } else if (c.node().input(1) == nullptr || c.node().input(2) == nullptr) {
    c.reject("expected the inputs starts and ends");
  }
  return a;
}

// Exporters write "to the end" as the largest number of 32 or of 64 bits.
constexpr int64_t kFarAway = INT32_MAX;
constexpr int64_t kLongestStep = int64_t{1} << 48;

// A position counted from the front or, if negative, from the back, held to [low, high]. A symbolic
// position is a size, hence not negative unless it provably is.
Dim clamp_position(Dim position, Dim dim, Dim low, Dim high) {
  if (position.is_constant() && !dim.is_constant()) {
    if (position.value() >= kFarAway) return high;
    if (position.value() <= -kFarAway) return low;
  }
  if (position.is_constant() && dim.is_constant() && position.value() < -dim.value()) return low;
  const bool negative = position.is_constant() ? position.value() < 0 : known_at_least(Dim(-1), position);
  if (negative) position = position + dim;
  const Dim held = min(position, high);
  if (held.is_constant()) return max(low, held);
  return known_at_least(position, low) && known_at_least(high, low) ? held : max(low, held);
}

}  // namespace

SliceRange make_slice_range(Dim dim, Dim start, Dim end, int64_t step) {
  // One step that leaves the axis is as good as a longer one.
  step = std::clamp(step, -kLongestStep, kLongestStep);
  SliceRange range;
  range.step = step;
  if (step > 0) {
    range.start = clamp_position(start, dim, 0, dim);
    const Dim stop = clamp_position(end, dim, 0, dim);
    range.count = ceil_div(stop - range.start, Dim(step));
    if (range.start != Dim(0)) range.count = max(Dim(0), range.count);
  } else {
    range.start = clamp_position(start, dim, 0, max(Dim(0), dim - Dim(1)));
    if (dim == Dim(0)) return range;
    range.count = max(Dim(0), ceil_div(range.start - clamp_position(end, dim, -1, dim - Dim(1)), Dim(-step)));
  }
  return range;
}

namespace {

// The four lists as far as they are known.
struct Lists {
  std::optional<std::vector<Dim>> starts, ends, axes, steps;
};

Lists read_lists(const NodeContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  auto from_attribute = [](std::span<const int64_t> list) {
    return std::vector<Dim>(list.begin(), list.end());
  };
  Lists lists;
  if (c.opset() < 10) {
    lists = {from_attribute(a.starts), from_attribute(a.ends), std::nullopt, std::nullopt};
    if (!a.axes.empty()) lists.axes = from_attribute(a.axes);
    return lists;
  }
  if (c.has_input(1)) lists.starts = known_values(c.input(1));
  if (c.has_input(2)) lists.ends = known_values(c.input(2));
  if (c.has_input(3)) lists.axes = known_values(c.input(3));
  if (c.has_input(4)) lists.steps = known_values(c.input(4));
  return lists;
}

// The axis that the i-th entries are about.
int64_t axis_at(const Lists& lists, size_t i, size_t rank) {
  if (!lists.axes) return static_cast<int64_t>(i);
  const int64_t axis = (*lists.axes)[i].value();
  return axis < 0 ? axis + static_cast<int64_t>(rank) : axis;
}

// Ranges of all axes, or nullopt if something is not known.
std::optional<std::vector<SliceRange>> known_ranges(const NodeContext& c) {
  const Lists lists = read_lists(c);
  if (!lists.starts || !lists.ends || (c.has_input(3) && !lists.axes) || (c.has_input(4) && !lists.steps))
    return std::nullopt;
  std::vector<SliceRange> ranges;
  for (Dim d : c.dims(0)) ranges.push_back({0, d, 1});
  for (size_t i = 0; i < lists.starts->size(); ++i) {
    const auto axis = static_cast<size_t>(axis_at(lists, i, c.rank(0)));
    const Dim step = lists.steps ? (*lists.steps)[i] : Dim(1);
    if (!step.is_constant()) return std::nullopt;
    ranges[axis] = make_slice_range(c.dims(0)[axis], (*lists.starts)[i], (*lists.ends)[i], step.value());
  }
  return ranges;
}

// The number of axes that are cut; throws if the lists disagree or name axes that do not exist.
void check_lists(const InferContext& c) {
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    c.expect_type(i, kIndexTypes);
    known_length(c, i);
  }
  const Lists lists = read_lists(c);
  std::optional<size_t> count;
  for (const auto* list : {&lists.starts, &lists.ends, &lists.axes, &lists.steps}) {
    if (!*list) continue;
    if (count && *count != (*list)->size()) c.reject("starts, ends, axes and steps differ in length");
    count = (*list)->size();
  }
  if (lists.axes) {
    std::vector<int64_t> axes;
    for (Dim d : *lists.axes) {
      if (!d.is_constant()) c.reject("axis {} is no constant", d.to_string());
      axes.push_back(d.value());
    }
    resolve_axes(c, axes, c.rank(0));
  } else if (count && !c.has_input(3) && *count > c.rank(0)) {
    c.reject("{} starts, but the input has {} dimensions", *count, c.rank(0));
  }
  for (Dim step : lists.steps.value_or(std::vector<Dim>())) {
    if (step == Dim(0)) c.reject("a step is 0");
  }
}

std::vector<Dim> dims_with_unknowns(InferContext& c) {
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  const Lists lists = read_lists(c);
  if (!lists.axes && c.has_input(3)) return unknown_dims(c, dims.size());
  size_t count = dims.size();
  if (lists.axes) {
    count = lists.axes->size();
  } else if (const auto length = known_length(c, 1)) {
    count = std::min(count, *length);
  }
  for (size_t i = 0; i < count; ++i)
    dims[static_cast<size_t>(axis_at(lists, i, dims.size()))] = c.unknown("");
  return dims;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  check_lists(c);
  const auto ranges = known_ranges(c);
  if (!ranges) return c.set_output(0, c.type(0), dims_with_unknowns(c));
  std::vector<Dim> dims;
  for (const SliceRange& range : *ranges) dims.push_back(range.count);
  c.set_output(0, c.type(0), dims);
  const auto values = c.values(0);
  if (!values || dims.size() != 1 || !dims[0].is_constant() || !(*ranges)[0].start.is_constant()) return;
  std::vector<Dim> taken;
  const SliceRange& range = (*ranges)[0];
  for (int64_t i = 0; i < dims[0].value(); ++i)
    taken.push_back((*values)[static_cast<size_t>(range.start.value() + i * range.step)]);
  c.set_values(0, taken);
}

// The piece is contiguous if, in front of the last axis that is cut, one element is left of each.
void alias(AliasContext& c) {
  if (!c.ranked(0)) return;
  const auto ranges = known_ranges(c);
  if (!ranges) return;
  size_t cut = 0;  // the last axis that is cut, plus one
  for (size_t i = 0; i < ranges->size(); ++i) {
    if (!(*ranges)[i].is_whole(c.dims(0)[i])) cut = i + 1;
  }
  Dim offset = 0;
  for (size_t i = 0; i < cut; ++i) {
    const SliceRange& range = (*ranges)[i];
    if (i + 1 < cut && range.count != Dim(1)) return;
    if (i + 1 == cut && range.step != 1 && range.count != Dim(1)) return;
    offset = offset + range.start * product(c.dims(0).subspan(i + 1));
  }
  c.view(0, 0, offset * width_dim(c.type(0)));
}

// The range of one axis at run time.
SliceRange range_at_run(const RunContext& c, size_t axis) {
  const Attrs& a = c.attrs<Attrs>();
  const TensorView& in = c.inputs[0];
  const bool old = c.node->opset < 10;
  auto at = [&](size_t input, std::span<const int64_t> list, int64_t i) {
    return old ? list[static_cast<size_t>(i)] : index_at(c.inputs[input], i);
  };
  const int64_t count = old ? static_cast<int64_t>(a.starts.size()) : c.inputs[1].elements();
  const bool has_axes = old ? !a.axes.empty() : c.has_input(3);
  for (int64_t i = 0; i < count; ++i) {
    int64_t named = has_axes ? at(3, a.axes, i) : i;
    if (named < 0) named += static_cast<int64_t>(in.rank());
    if (named != static_cast<int64_t>(axis)) continue;
    return make_slice_range(in.dims[axis], at(1, a.starts, i), at(2, a.ends, i),
                            c.has_input(4) ? index_at(c.inputs[4], i) : 1);
  }
  return {0, in.dims[axis], 1};
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const size_t width = width_of(in.type);
  if (c.outputs[0].elements() == 0) return;
  kernels::CopyShape shape;
  int64_t source_stride = 1, target_stride = 1, offset = 0;
  for (size_t axis = in.rank(); axis-- > 0;) {
    const SliceRange range = range_at_run(c, axis);
    const int64_t dim = c.outputs[0].dims[axis];
    offset += range.start.value() * source_stride;
    shape.add(dim, dim == 1 ? 0 : range.step * source_stride, target_stride);
    source_stride *= in.dims[axis];
    target_stride *= dim;
  }
  kernels::strided_copy(c.outputs[0].data, in.data + offset * static_cast<int64_t>(width), shape, width,
                        c.threads);
}

// ---- layout, region -------------------------------------------------------------------------------

// The axes that are cut, not negative; nullopt if they are not known.
std::optional<std::vector<int64_t>> cut_axes(const NodeContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  std::optional<std::vector<int64_t>> axes;
  size_t count = a.starts.size();
  if (c.opset() < 10) {
    if (!a.axes.empty()) axes.emplace(a.axes.begin(), a.axes.end());
  } else {
    if (c.has_input(3) && !(axes = c.integers(3))) return std::nullopt;
    if (!c.ranked(1) || c.rank(1) != 1 || !c.dims(1)[0].is_constant()) return std::nullopt;
    count = static_cast<size_t>(c.dims(1)[0].value());
  }
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < count; ++i) axes->push_back(static_cast<int64_t>(i));
  }
  return resolved_axes(axes, c.rank(0));
}

void layout(LayoutContext& c) {
  std::optional<std::vector<int64_t>> axes = cut_axes(c);
  if (!axes) return;
  for (int64_t& axis : *axes) axis = LayoutContext::place(axis, c.rank(0));
  c.either({0});
  if (c.opset() < 10) return c.changes().set("axes", *axes);
  c.changes().set_integers(3, *axes);
}

// What is needed is cut out of the input; from that, the whole length by the same step.
void region(RegionContext& c) {
  const auto ranges = known_ranges(c);
  if (!ranges) return c.whole();
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t axis = 0; axis < c.rank(0); ++axis) {
    const SliceRange& range = (*ranges)[axis];
    const int64_t first = range.start.value() + c.wanted(axis).begin * range.step;
    const int64_t last = range.start.value() + (c.wanted(axis).end - 1) * range.step;
    c.needs[0][axis] = {std::min(first, last), std::max(first, last) + 1};
    const bool forward = range.step > 0;
    starts.push_back(forward ? 0 : c.needs[0][axis].size() - 1);
    ends.push_back(forward ? c.needs[0][axis].size() : INT64_MIN);
    axes.push_back(static_cast<int64_t>(axis));
    steps.push_back(range.step);
  }
  c.runs_on_parts = true;
  if (c.opset() < 10) {
    c.changes.set("starts", starts);
    c.changes.set("ends", ends);
    return c.changes.set("axes", axes);
  }
  c.changes.set_integers(1, starts);
  c.changes.set_integers(2, ends);
  c.changes.set_integers(3, axes);
  c.changes.set_integers(4, steps);
}

void gradient(GradientContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const bool old = c.opset() < 10;
  const auto list = [&](size_t input, std::span<const int64_t> attribute) -> Edge* {
    if (!old) return c.in(input);
    return attribute.empty() ? nullptr : c.build.integers(attribute);
  };
  Edge* const inputs[] = {c.gradient(),    c.shape_of(c.in(0)), list(1, a.starts),
                          list(2, a.ends), list(3, a.axes),     old ? nullptr : c.in(4)};
  c.set(0, c.build.emit(kPlimsollDomain, "SliceGradient", inputs, {})->outputs[0]);
}

}  // namespace

extern const OpDef op_slice = {
    .name = "Slice",
    .inputs = {1, 5},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost_selection,
    .layout = layout,
    .region = region,
    .gradient = gradient,
};

}  // namespace plimsoll
