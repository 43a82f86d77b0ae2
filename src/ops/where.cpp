#include "kernels/choose.h"
#include "ops/elementwise.h"
#include "ops/gradient_terms.h"

namespace plimsoll {
namespace {

// The elements that the condition chooses, where they are known.
void propagate_choice(InferContext& c) {
  const auto condition = known_values(c, 0);
  const auto a = known_values(c, 1);
  const auto b = known_values(c, 2);
  if (!condition || !a || !b || !c.has_output(0) || c.output(0).type.rank() > 1) return;
  const size_t count = std::max({condition->size(), a->size(), b->size()});
  if (std::min({condition->size(), a->size(), b->size()}) == 0) return;
  const auto pick = [](std::span<const Dim> values, size_t i) { return values[values.size() == 1 ? 0 : i]; };
  std::vector<Dim> result;
  for (size_t i = 0; i < count; ++i) {
    const Dim chosen = pick(*condition, i);
    if (!chosen.is_constant()) return;
    result.push_back(pick(chosen.value() != 0 ? *a : *b, i));
  }
  c.set_values(0, result);
}

void infer(InferContext& c) {
  c.expect_type(0, kBoolType);
  c.expect_type(1, kAllTypes);
  c.expect_same_type(1, 2);
  if (!c.ranked(0) || !c.ranked(1) || !c.ranked(2)) return c.set_unranked_output(0, c.type(1));
  for (size_t i = 0; i < 3; ++i) c.expect_rank(i, 0, kernels::kMaxBroadcastRank);
  const std::vector<Dim> values = c.broadcast(c.dims(1), c.dims(2));
  c.set_output(0, c.type(1), c.broadcast(c.dims(0), values));
  propagate_choice(c);
}

template <typename T>
void choose(const kernels::BroadcastBlock& s, const uint8_t* condition, const T* a, const T* b, T* y) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const uint8_t* row_c = condition + s.offset[0] + r * s.row_stride[0];
    const T* row_a = a + s.offset[1] + r * s.row_stride[1];
    const T* row_b = b + s.offset[2] + r * s.row_stride[2];
    T* row_y = y + s.output + r * s.output_row;
    for (int64_t i = 0; i < s.cols; ++i) {
      const T x = row_a[i * s.col_stride[1]];
      const T z = row_b[i * s.col_stride[2]];
      row_y[i] = row_c[i * s.col_stride[0]] != 0 ? x : z;
    }
  }
}

void run(const RunContext& c) {
  const kernels::Broadcast plan(c.outputs[0].dims, {c.inputs[0].dims, c.inputs[1].dims, c.inputs[2].dims});
  visit_width(c.outputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    plan.for_each(c.threads, [&](const kernels::BroadcastBlock& block) {
      const uint8_t* condition = c.inputs[0].as<uint8_t>();
      const T *a = c.inputs[1].as<T>(), *b = c.inputs[2].as<T>();
      T* y = c.outputs[0].as<T>();
      if constexpr (sizeof(T) == sizeof(uint32_t)) {
        kernels::choose(block, condition, a, b, y);
      } else {
        choose(block, condition, a, b, y);
      }
    });
  });
}

void gradient(GradientContext& c) {
  const Term condition = in(c), zero = dy(c).number(0);
  if (c.wants(1)) c.set_broadcast(1, condition.choose(dy(c), zero).edge());
  if (c.wants(2)) c.set_broadcast(2, condition.choose(zero, dy(c)).edge());
}

}  // namespace

extern const OpDef op_where = {
    .name = "Where",
    .inputs = {3, 3},
    .infer = infer,
    .alias = alias_elementwise,
    .run = run,
    .cost = cost_elementwise,
    .layout = layout_broadcasting,
    .region = region_broadcasting,
    .gradient = gradient,
};

}  // namespace plimsoll
