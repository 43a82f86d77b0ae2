#include "graph/region.h"

namespace plimsoll {

Region whole_region(const Facts& facts) {
  Region region;
  for (Dim d : facts.type.dims) region.push_back({0, d.value()});
  return region;
}

RegionContext::RegionContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs,
                             size_t output, std::span<const Interval> wanted)
    : NodeContext(node, inputs, outputs),
      made(wanted.begin(), wanted.end()),
      output_(output),
      wanted_(wanted.begin(), wanted.end()) {
  for (const Facts& facts : inputs) needs.push_back(whole_region(facts));
}

void RegionContext::whole() {
  for (size_t i = 0; i < needs.size(); ++i) needs[i] = whole_region(inputs_[i]);
  made = whole_region(outputs_[output_]);
  changes = {};
  runs_on_parts = true;
}

void find_region(RegionContext& c) {
  if (c.node().op->region == nullptr) return c.whole();
  c.node().op->region(c);
}

}  // namespace plimsoll
