// Values that are pieces of another one (inputs of a Concat), so that their producers write straight into it.
#pragma once

#include "prepare/lifetimes.h"
#include "prepare/node_aliases.h"

namespace plimsoll {

class Pieces {
 public:
  explicit Pieces(TransientMemory& memory) : claims_(memory.resource()), buffers_(memory.resource()) {}

  // Decides which values become pieces, and whether any do. Later nodes claim first, so that a chain of
  // Concats ends in one buffer.
  bool claim(const Lifetimes& lifetimes, NodeAliases& aliases, const FactsTable& facts);

  // What a value is a piece of, at the end of all claims, and where in it; itself if nobody claimed it.
  struct Whole {
    uint32_t value;
    Dim offset = 0;
  };
  Whole whole_of(uint32_t value) const;

  // The buffer of a whole, once somebody made it.
  uint32_t buffer_of(uint32_t whole) const {
    const auto found = buffers_.find(whole);
    return found == buffers_.end() ? StepInfo::kNone : found->second;
  }
  void set_buffer(uint32_t whole, uint32_t buffer) { buffers_[whole] = buffer; }

 private:
  std::pmr::unordered_map<uint32_t, Whole> claims_;      // by value: what it is a piece of
  std::pmr::unordered_map<uint32_t, uint32_t> buffers_;  // by value of the whole
};

}  // namespace plimsoll
