// Constants of a model in the form in which the run wants them.
//
// Planning: which weights are packed, which are used as they are in the file, which must be copied
// because of their alignment or because runs change them; how many bytes each of these takes. Loading:
// does it, one tensor at a time, and lets each raw range leave the process as soon as it is packed.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "graph/op_def.h"
#include "memory/mapping.h"

namespace plimsoll {

class Weights {
 public:
  using Drop = std::function<void(std::span<const std::byte>)>;

  // Pure: decides and counts. The graph must be resolved, inferred, and final.
  explicit Weights(Graph& root);

  // Takes the memory and fills it. `drop` forgets pages of the mapped file.
  void load(Budget& budget, const Drop& drop);

  bool is_packed(const Node& node, size_t input) const { return packed_at_.count(key(node, input)) > 0; }
  // Valid after load.
  std::byte* packed(const Node& node, size_t input) const;
  std::byte* raw(const Edge& edge) const;

  int64_t packed_bytes() const { return packed_bytes_; }  // of the arena, whole pages
  int64_t weights_bytes() const { return mapped_bytes_ + copied_bytes_; }
  // The most that loading holds beyond the final state: the largest raw tensor that is packed.
  int64_t largest_raw_bytes() const { return largest_raw_; }

 private:
  struct Packed {
    const Node* node;
    size_t input;
    int64_t offset;
  };
  static uint64_t key(const Node& node, size_t input) { return (uint64_t{node.id} << 32) | input; }
  void collect_packed(const Node& node);
  void collect_raw(Graph& root);

  std::vector<Packed> packed_;
  std::unordered_map<uint64_t, size_t> packed_at_;   // index into packed_
  std::unordered_map<uint32_t, int64_t> copied_at_;  // edge id -> offset in copied_arena_
  std::vector<const Edge*> copied_;
  int64_t packed_bytes_ = 0, mapped_bytes_ = 0, copied_bytes_ = 0, largest_raw_ = 0;
  Arena packed_arena_, copied_arena_;
  Charge mapped_charge_;
};

}  // namespace plimsoll
