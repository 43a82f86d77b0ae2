// T5's bias of attention: how far a key is from a query, in buckets that widen with the distance. The table
// has the buckets of one head behind each other, though its shape is [buckets, heads].
#include <algorithm>
#include <cmath>

#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kTable = 0, kQueries = 1, kKeys = 2;

struct RelativeAttrs {
  int64_t farthest = 0;
  bool both_ways = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<RelativeAttrs>();
  a->farthest = c.integer("max_distance");
  if (a->farthest < 1 || a->farthest > INT32_MAX)
    c.reject("attribute 'max_distance': expected at least 1, found {}", a->farthest);
  a->both_ways = c.integer("is_bidirectional", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kTable, kFloatTypes);
  c.expect_rank(kTable, 2, 2);
  Dim lengths[2];
  for (size_t i : {kQueries, kKeys}) {
    c.expect_type(i, types(ElementType::kInt64));
    const auto known = c.values(i);
    if (known && known->size() != 1) c.reject("input {}: expected one number, found {}", i, known->size());
    lengths[i - 1] = known ? (*known)[0] : c.unknown("length");
    constexpr int64_t kMost = INT32_MAX;
    if (lengths[i - 1].is_constant() && (lengths[i - 1].value() < 0 || lengths[i - 1].value() > kMost))
      c.reject("input {}: a length of {}", i, lengths[i - 1].value());
  }
  const bool ranked = c.ranked(kTable);
  const int64_t least = c.attrs<RelativeAttrs>().both_ways ? 4 : 2;
  if (ranked && c.dims(kTable)[0].is_constant() && c.dims(kTable)[0].value() < least)
    c.reject("expected at least {} buckets, found {}", least, c.dims(kTable)[0].value());
  c.set_output(0, c.type(kTable),
               std::vector<Dim>{1, ranked ? c.dims(kTable)[1] : c.unknown("heads"), lengths[0], lengths[1]});
}

int64_t bucket_of(int64_t distance, int64_t buckets, const RelativeAttrs& a) {
  int64_t first = 0;
  if (a.both_ways) {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = buckets / 2;
  if (distance < exact) return first + distance;
  const float part = std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
                     std::log(static_cast<float>(a.farthest) / static_cast<float>(exact));
  const float beyond =
      part * static_cast<float>(buckets - exact);  // not finite where max_distance is `exact`
  const float most = static_cast<float>(buckets - exact - 1);
  return first + exact +
         static_cast<int64_t>(beyond >= 0  ? std::min(beyond, most)
                              : beyond < 0 ? 0.0f
                                           : most);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<RelativeAttrs>();
  const TensorView &table = c.inputs[kTable], &y = c.outputs[0];
  const int64_t buckets = table.dims[0], heads = y.dims[1], queries = y.dims[2], keys = y.dims[3];
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t q = 0; q < queries; ++q) {
      for (int64_t k = 0; k < keys; ++k) {
        double value;
        read_floats(table, h * buckets + bucket_of(k - q, buckets, a), 1, &value);
        write_floats(y, (h * queries + q) * keys + k, 1, &value);
      }
    }
  }
}

}  // namespace

extern const OpDef op_microsoft_relative_position_bias = {.domain = kMicrosoftDomain,
                                                          .name = "RelativePositionBias",
                                                          .inputs = {3, 3},
                                                          .attrs = attrs,
                                                          .infer = infer,
                                                          .run = run};

}  // namespace plimsoll
