#include <algorithm>

#include "ops/layout.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  bool all = false;  // no axes named: every dimension of 1 goes
  std::span<const int64_t> axes;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  if (c.opset() < 13) {
    a->all = !c.has("axes");
    a->axes = c.integers("axes");
  } else {
    a->all = c.node().input(1) == nullptr;
  }
  return a;
}

std::optional<std::vector<Dim>> without_ones(std::span<const Dim> dims) {
  std::vector<Dim> kept;
  for (Dim d : dims) {
    if (!d.is_constant()) return std::nullopt;  // it may turn out to be 1
    if (d != Dim(1)) kept.push_back(d);
  }
  return kept;
}

std::vector<Dim> without(const InferContext& c, const std::vector<int64_t>& axes) {
  std::vector<Dim> kept;
  for (size_t i = 0; i < c.rank(0); ++i) {
    const Dim d = c.dims(0)[i];
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
      kept.push_back(d);
    } else if (d.is_constant() && d.value() != 1) {
      c.reject("axis {} of shape {} is not 1", i, to_string(c.dims(0)));
    }
  }
  return kept;
}

void infer(InferContext& c) {
  c.expect_type(0, kViewTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (c.attrs<Attrs>().all) {
    const auto kept = without_ones(c.dims(0));
    if (!kept) return c.set_unranked_output(0, c.type(0));
    c.set_output(0, c.type(0), *kept);
  } else {
    const auto axes = attribute_or_input(c, c.attrs<Attrs>().axes, 1);
    if (!axes) {
      const auto count = known_length(c, 1);
      if (!count || *count > c.rank(0)) return c.set_unranked_output(0, c.type(0));
      return c.set_output(0, c.type(0), unknown_dims(c, c.rank(0) - *count));
    }
    c.set_output(0, c.type(0), without(c, resolve_axes(c, *axes, c.rank(0))));
  }
  if (const auto values = c.values(0)) c.set_values(0, *values);
}

void layout(LayoutContext& c) {
  if (c.attrs<Attrs>().all || !c.ranked(0)) return;
  const auto axes = resolved_axes(attribute_or_known(c, c.attrs<Attrs>().axes, 1), c.rank(0));
  if (axes) layout_removed_axes(c, *axes, false);
}

}  // namespace

extern const OpDef op_squeeze = {
    .name = "Squeeze",
    .inputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias_whole,
    .run = run_whole,
    .layout = layout,
    .gradient = gradient_whole,
};

}  // namespace plimsoll
