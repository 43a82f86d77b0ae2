#include "plan/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace plimsoll::plan {
namespace {

TEST(MinCut, EqualsTheBestOfAllCutsOfSmallGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const uint32_t vertices = 2 + random() % 7;
    struct Arc {
      uint32_t from, to;
      int64_t capacity;
    };
    std::vector<Arc> arcs;
    MinCut cut(std::pmr::get_default_resource());
    cut.reset(vertices);
    for (uint32_t i = 0; i < vertices * 2; ++i) {
      arcs.push_back({static_cast<uint32_t>(random() % vertices), static_cast<uint32_t>(random() % vertices),
                      static_cast<int64_t>(random() % 20)});
      cut.add_arc(arcs.back().from, arcs.back().to, arcs.back().capacity);
    }
    const auto weight = [&](const auto& with_source) {
      int64_t sum = 0;
      for (const Arc& arc : arcs) {
        if (with_source(arc.from) && !with_source(arc.to)) sum += arc.capacity;
      }
      return sum;
    };
    int64_t least = MinCut::kNever;
    for (uint32_t set = 0; set < 1u << vertices; ++set) {
      if ((set & 1) == 0 || (set & 2) != 0) continue;
      least = std::min(least, weight([&](uint32_t v) { return ((set >> v) & 1) != 0; }));
    }
    EXPECT_EQ(cut.solve(), least);
    EXPECT_EQ(weight([&](uint32_t v) { return cut.is_with_source(v); }), least);
  }
}

}  // namespace
}  // namespace plimsoll::plan
