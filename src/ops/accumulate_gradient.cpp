// Adds a gradient to what is kept from step to step, or takes its place where the step begins anew. Inputs:
// the sum so far, the gradient, whether to begin anew (a bool). One pass over the memory.
#include <algorithm>
#include <cstring>

#include "ops/elementwise.h"
#include "ops/movement.h"
#include "ops/update_common.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kUpdateTypes);
  c.expect_same_type(0, 1);
  c.expect_type(2, kBoolType);
  expect_same_dims(c, 0, 1);
  const Dim flags = c.ranked(2) ? product(c.dims(2)) : Dim(1);
  if (flags.is_constant() && flags.value() != 1)
    c.reject("input 2: expected one element, found shape {}", to_string(c.dims(2)));
  set_output_like(c, 0, c.type(0), 0);
}

void alias(AliasContext& c) {
  c.overwrite(0);
}

template <typename T>
void accumulate(const RunContext& c, int64_t begin, int64_t count) {
  T* sum = c.outputs[0].as<T>() + begin;
  const T *so_far = c.inputs[0].as<T>() + begin, *gradient = c.inputs[1].as<T>() + begin;
  const bool anew = *c.inputs[2].as<bool>();
  if (const T* from = anew ? gradient : so_far; from != sum)
    std::memcpy(sum, from, static_cast<size_t>(count) * sizeof(T));
  if (!anew) kernels::add_to(count, gradient, sum);
}

void run(const RunContext& c) {
  const int64_t elements = c.outputs[0].elements(), chunks = (elements + kUpdateChunk - 1) / kUpdateChunk;
  kernels::parallel_for(chunks > 1 ? c.threads : 1, chunks, [&](int64_t chunk) {
    const int64_t begin = chunk * kUpdateChunk, count = std::min(kUpdateChunk, elements - begin);
    if (c.outputs[0].type == ElementType::kDouble) {
      accumulate<double>(c, begin, count);
    } else {
      accumulate<float>(c, begin, count);
    }
  });
}

}  // namespace

extern const OpDef op_accumulate_gradient = {
    .domain = kPlimsollDomain,
    .name = "AccumulateGradient",
    .inputs = {3, 3},
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
