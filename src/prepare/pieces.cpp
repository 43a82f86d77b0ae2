#include "prepare/pieces.h"

#include <algorithm>

namespace plimsoll {

bool Pieces::claim(const Lifetimes& lifetimes, NodeAliases& aliases, const FactsTable& facts) {
  const ScheduledValues& values = lifetimes.values;
  const auto may_be_claimed = [&](size_t turn, uint32_t piece) {
    if (piece == kNoValue || values[piece].made < 0 || claims_.count(piece) > 0) return false;
    if (values[piece].last_use >= ScheduledValue::kForever) return false;
    const std::span<const uint32_t> reads = values.reads(turn);
    if (std::count(reads.begin(), reads.end(), piece) != 1) return false;
    const Node& producer = *lifetimes.schedule[static_cast<size_t>(values[piece].made)].node;
    return !is_known(facts[values[piece].edge]) && !aliases.is_dynamic(producer) &&
           !aliases.is_view(producer) && !producer.op->control_flow;
  };
  for (size_t t = lifetimes.schedule.size(); t-- > 0;) {
    const Node& node = *lifetimes.schedule[t].node;
    if (aliases.is_constant(node) || aliases.is_view(node)) continue;
    for (const Alias& alias : aliases.of(node)) {
      if (alias.kind != AliasKind::kPiece) continue;
      const uint32_t piece = values.reads(t)[alias.input];
      if (may_be_claimed(t, piece)) claims_[piece] = {values.makes(t)[alias.output], alias.offset_bytes};
    }
  }
  return !claims_.empty();
}

Pieces::Whole Pieces::whole_of(uint32_t value) const {
  Whole whole{value, 0};
  for (auto claim = claims_.find(value); claim != claims_.end(); claim = claims_.find(whole.value))
    whole = {claim->second.value, whole.offset + claim->second.offset};
  return whole;
}

}  // namespace plimsoll
