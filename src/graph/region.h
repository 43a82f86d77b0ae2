// Regions: which part of the inputs a part of an output needs, for tiles and chunks.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "graph/node_changes.h"
#include "graph/op_def.h"

namespace plimsoll {

// Positions begin..end-1 along one axis.
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};
// One range per axis.
using Region = std::vector<Interval>;

// All of a tensor whose facts are concrete.
Region whole_region(const Facts& facts);

// Asked with concrete facts: `wanted` is a part of output `output`, with at least one element. The
// answer starts as "everything of every input"; an operator narrows it.
class RegionContext : public NodeContext {
 public:
  RegionContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs, size_t output,
                std::span<const Interval> wanted);

  size_t output_index() const { return output_; }
  std::span<const Interval> wanted() const { return wanted_; }
  const Interval& wanted(size_t axis) const { return wanted_[axis]; }
  int64_t size(size_t input, size_t axis) const { return dims(input)[axis].value(); }

  // Gives up: all of the inputs, and then all of the output.
  void whole();

  // The part of each input that is read to compute what is wanted. Empty ranges: nothing of it.
  std::vector<Region> needs;
  // The node, changed so and given the parts that it needs, makes this part of the output, which
  // contains what is wanted (an operator that cannot make less of an axis makes all of it).
  // Meaningless unless `runs_on_parts`.
  Region made;
  NodeChanges changes;
  bool runs_on_parts = false;

 private:
  size_t output_;
  std::vector<Interval> wanted_;
};

// The answer of the node's operator; whole inputs if it has none to give.
void find_region(RegionContext& c);

}  // namespace plimsoll
