#include "ops/qlinear_binary.h"

namespace plimsoll {

void infer_qlinear_binary(InferContext& c) {
  c.expect_type(kQlA, kByteTypes);
  c.expect_same_type(kQlA, kQlB);
  expect_quantization(c, kQlA, kQlAScale, kQlAZero);
  expect_quantization(c, kQlA, kQlBScale, kQlBZero);
  expect_quantization(c, kQlA, kQlCScale, kQlCZero);
  if (!c.ranked(kQlA) || !c.ranked(kQlB)) return c.set_unranked_output(0, c.type(kQlA));
  for (size_t i : {kQlA, kQlB}) c.expect_rank(i, 0, kernels::kMaxBroadcastRank);
  c.set_output(0, c.type(kQlA), c.broadcast(c.dims(kQlA), c.dims(kQlB)));
}

void layout_qlinear_binary(LayoutContext& c) {
  constexpr size_t kTensors[] = {kQlA, kQlB};
  layout_broadcasting(c, kTensors);
}

}  // namespace plimsoll
