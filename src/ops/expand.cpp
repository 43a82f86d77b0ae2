#include <algorithm>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(1, types(ElementType::kInt64));
  const auto shape = c.values(1);
  if (!shape) {
    const auto length = known_length(c, 1);
    if (!length || !c.ranked(0)) return c.set_unranked_output(0, c.type(0));
    return c.set_output(0, c.type(0), unknown_dims(c, std::max(*length, c.rank(0))));
  }
  known_length(c, 1);
  for (Dim d : *shape) {
    if (d.is_constant() && d.value() < 0) c.reject("shape {} has a negative dimension", to_string(*shape));
  }
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const std::vector<Dim> dims = c.broadcast(c.dims(0), *shape);
  c.set_output(0, c.type(0), dims);
  const Dim count = product(dims);
  const auto values = c.values(0);
  if (values && values->size() == 1 && count.is_constant() &&
      count.value() <= static_cast<int64_t>(InferContext::kMaxKnownValues)) {
    c.set_values(0, std::vector<Dim>(static_cast<size_t>(count.value()), (*values)[0]));
  } else if (values && count == Dim(static_cast<int64_t>(values->size()))) {
    c.set_values(0, *values);
  }
}

// Nothing but leading ones is added.
void alias(AliasContext& c) {
  if (!c.ranked(0) || !c.output(0).type.ranked) return;
  const auto from = c.dims(0), to = c.output(0).type.dims;
  const size_t added = to.size() - from.size();
  const bool same = std::equal(from.begin(), from.end(), to.begin() + static_cast<ptrdiff_t>(added));
  const bool ones =
      std::all_of(to.begin(), to.begin() + static_cast<ptrdiff_t>(added), [](Dim d) { return d == Dim(1); });
  if (same && ones) c.view(0);
}

void run(const RunContext& c) {
  const auto from = c.inputs[0].dims, to = c.outputs[0].dims;
  kernels::CopyShape shape;
  int64_t source = 1, target = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    const int64_t dim = to[to.size() - 1 - i];
    const int64_t given = i < from.size() ? from[from.size() - 1 - i] : 1;
    shape.add(dim, given == 1 ? 0 : source, target);
    source *= given;
    target *= dim;
  }
  kernels::strided_copy(c.outputs[0].data, c.inputs[0].data, shape, width_of(c.inputs[0].type), c.threads);
}

void gradient(GradientContext& c) {
  c.set_broadcast(0, c.gradient());
}

}  // namespace

extern const OpDef op_expand = {
    .name = "Expand",
    .inputs = {2, 2},
    .infer = infer,
    .alias = alias,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
