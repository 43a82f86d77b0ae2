// Scores of tokens that would repeat a run of n tokens become -inf.
#include <limits>

#include "kernels/copy.h"
#include "ops/elementwise.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct NgramAttrs {
  int64_t size = 1;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<NgramAttrs>();
  a->size = c.integer("ngram_size");
  if (a->size < 1) c.reject("attribute 'ngram_size': expected at least 1, found {}", a->size);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kInt64));
  c.expect_type(1, types(ElementType::kFloat));
  c.expect_rank(0, 2, 2);
  c.expect_rank(1, 2, 2);
  if (c.ranked(0) && c.ranked(1)) unify(c, c.dims(0)[0], c.dims(1)[0]);
  set_output_like(c, 0, ElementType::kFloat, 1);
}

void alias(AliasContext& c) {
  c.overwrite(1);
}

void run(const RunContext& c) {
  const TensorView &ids = c.inputs[0], &y = c.outputs[0];
  kernels::copy_bytes(y.data, c.inputs[1].data, y.bytes());
  const int64_t size = c.attrs<NgramAttrs>().size, length = ids.dims[1], words = y.dims[1];
  if (length < size) return;  // there is no run yet, and no tail to compare with
  for (int64_t b = 0; b < ids.dims[0]; ++b) {
    const int64_t* row = ids.as<int64_t>() + b * length;
    const int64_t* tail = row + length - (size - 1);
    for (int64_t i = 0; i + size <= length; ++i) {
      if (!std::equal(row + i, row + i + size - 1, tail)) continue;
      const int64_t word = row[i + size - 1];
      if (word < 0 || word >= words)
        fail(ErrorCode::kInvalidArgument, "{}: token {} is outside [0, {})", c.node->label(), word, words);
      y.as<float>()[b * words + word] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace

extern const OpDef op_microsoft_ngram_repeat_block = {.domain = kMicrosoftDomain,
                                                      .name = "NGramRepeatBlock",
                                                      .inputs = {2, 2},
                                                      .attrs = attrs,
                                                      .infer = infer,
                                                      .alias = alias,
                                                      .run = run};

}  // namespace plimsoll
