#include "ops/training_common.h"

#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr TypeSet kTrained = types(ElementType::kFloat, ElementType::kDouble);

}  // namespace

void expect_one(const InferContext& c, size_t i) {
  if (!c.ranked(i)) return;
  const Dim count = product(c.dims(i));
  if (count.is_constant() && count.value() != 1)
    c.reject("input {}: expected one number, found shape {}", i, to_string(c.dims(i)));
}

void infer_training(InferContext& c, size_t states) {
  const size_t parts = 2 + states, given = c.input_count() - 2;
  if (given == 0 || given % parts != 0)
    c.reject("expected {} inputs per tensor after R and T, found {} together", parts, given);
  const size_t count = given / parts;
  if (c.output_count() != count * (1 + states))
    c.reject("expected {} outputs for {} tensors, found {}", count * (1 + states), count, c.output_count());
  c.expect_type(0, kTrained);
  c.expect_type(1, types(ElementType::kInt64));
  expect_one(c, 0);
  expect_one(c, 1);
  for (size_t i = 2; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    const size_t tensor = 2 + (i - 2) % count;
    c.expect_type(i, kTrained);
    c.expect_same_type(tensor, i);
    if (!c.ranked(i) || !c.ranked(tensor)) continue;
    c.expect_rank(i, c.rank(tensor), c.rank(tensor));
    for (size_t d = 0; d < c.rank(i); ++d) unify(c, c.dims(tensor)[d], c.dims(i)[d]);
  }
  for (size_t i = 0; i < c.output_count(); ++i) {
    if (!c.has_output(i)) c.reject("output {} is missing", i);
    const size_t tensor = 2 + i % count;
    if (c.ranked(tensor)) {
      c.set_output(i, c.type(tensor), c.dims(tensor));
    } else {
      c.set_unranked_output(i, c.type(tensor));
    }
  }
}

void alias_training(AliasContext& c, size_t states) {
  const size_t count = (c.input_count() - 2) / (2 + states);
  for (size_t k = 0; k < count; ++k) {
    c.overwrite(2 + k, k);
    for (size_t s = 0; s < states; ++s) c.overwrite(2 + (2 + s) * count + k, (1 + s) * count + k);
  }
}

double learning_rate(const RunContext& c) {
  const TensorView& rate = c.inputs[0];
  return rate.type == ElementType::kDouble ? rate.as<double>()[0] : static_cast<double>(rate.as<float>()[0]);
}

int64_t update_count(const RunContext& c) {
  return c.inputs[1].as<int64_t>()[0];
}

}  // namespace plimsoll
