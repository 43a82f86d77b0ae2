#include "ops/variadic.h"

namespace plimsoll {

void infer_variadic(InferContext& c) {
  std::vector<Dim> dims;
  bool ranked = true;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    c.expect_type(i, kNumericTypes);
    c.expect_same_type(0, i);
    c.expect_rank(i, 0, kernels::kMaxBroadcastRank);
    ranked = ranked && c.ranked(i);
    if (ranked) dims = c.broadcast(dims, c.dims(i));
  }
  if (ranked) {
    c.set_output(0, c.type(0), dims);
  } else {
    c.set_unranked_output(0, c.type(0));
  }
}

// The first step reads the first two inputs and writes the output: the others must still be there.
void alias_variadic(AliasContext& c) {
  AliasContext all(c);
  alias_elementwise(all);
  for (const Alias& alias : all.aliases) {
    if (alias.input < 2) c.aliases.push_back(alias);
  }
}

}  // namespace plimsoll
