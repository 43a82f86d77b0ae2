#include "prepare/value_facts.h"

#include <algorithm>

namespace plimsoll {

Dim value_bytes(const Facts& facts) {
  const int bits = element_bits(facts.type.type);
  return ceil_div(product(facts.type.dims) * Dim(bits), Dim(8));
}

bool is_static(const Facts& facts) {
  if (!facts.type.ranked || facts.type.kind != ValueKind::kTensor) return false;
  return std::none_of(facts.type.dims.begin(), facts.type.dims.end(),
                      [](Dim d) { return d.depends_on_data(); });
}

bool is_known(const Facts& facts) {
  if (facts.constant != nullptr) return facts.constant->bytes() <= kMaxKnownBytes;
  if (!facts.values || !facts.is_concrete()) return false;
  return std::all_of(facts.values->begin(), facts.values->end(), [](Dim d) { return d.is_constant(); });
}

}  // namespace plimsoll
