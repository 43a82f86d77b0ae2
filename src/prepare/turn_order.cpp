#include "prepare/turn_order.h"

#include <algorithm>
#include <tuple>

namespace plimsoll {

Turns hurried(const TurnModel& model, std::span<const uint32_t> order, std::pmr::memory_resource* memory) {
  constexpr int64_t kMuch = 4;  // times what is made of it
  struct Key {
    uint32_t after;  // the turn, in the order given, behind which it can run
    bool hurries;
    uint32_t turn;
  };
  std::pmr::vector<Key> keys(memory);
  std::pmr::vector<uint32_t> made_at(model.edges.size(), TurnModel::kNone,
                                     memory);  // by edge: position in keys
  for (uint32_t t = 0; t < order.size(); ++t) {
    const TurnModel::NodeInfo& node = model.nodes[order[t]];
    int64_t most_read = 0, made = 0;
    uint32_t after = 0;
    bool from_turn = false, from_hurried = true;
    for (const uint32_t edge : model.reads(order[t])) {
      if (made_at[edge] == TurnModel::kNone) continue;
      const Key& producer = keys[made_at[edge]];
      from_turn = true;
      from_hurried &= producer.hurries;
      after = std::max(after, producer.after);
      most_read = std::max(most_read, model.edges[edge].bytes);
    }
    for (const uint32_t edge : model.makes(order[t])) made += model.edges[edge].bytes;
    const bool shrinks = !node.free && made * kMuch <= most_read;
    const bool hurries = from_turn && (shrinks || from_hurried);
    for (const uint32_t edge : model.makes(order[t])) made_at[edge] = t;
    keys.push_back({hurries ? after : t, hurries, t});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return std::tie(a.after, a.hurries, a.turn) < std::tie(b.after, b.hurries, b.turn);
  });
  Turns result(memory);
  for (const Key& key : keys) result.push_back(order[key.turn]);
  return result;
}

}  // namespace plimsoll
