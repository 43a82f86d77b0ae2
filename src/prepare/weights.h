// Constants of a model in the form in which the run wants them.
//
// Planning: which weights are packed, which are used as they are in the file, which must be copied
// because of their alignment, or because they are so small that the neighbours which their page brings along
// would take more; how many bytes each of these takes. Nodes that name the same format of the same
// tensor share what is packed. Loading: does it, one tensor at a time, and lets each raw range leave the
// process as soon as it is packed; what rewrites made and only packing reads leaves with the last of them.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "graph/op_def.h"
#include "memory/mapping.h"
#include "memory/transient_memory.h"

namespace plimsoll {

// As a policy it answers select for a concrete shape as it was answered at load.
class Weights : public PackPolicy {
 public:
  using Drop = std::function<void(std::span<const std::byte>)>;

  // Pure: decides and counts. The graph must be resolved, inferred, and final. Without `pack`, every weight
  // is used as it is.
  Weights(Graph& root, int threads, bool pack = true);

  // Takes the memory and fills it. `drop` forgets pages of the mapped file.
  void load(Budget& budget, const Drop& drop);

  // What was packed before, in these bytes, which outlive it, takes the place of packing. Throws
  // kInvalidModel if it was packed for another layout.
  void adopt(std::span<const std::byte> packed, uint64_t layout);
  // A checksum over which tensor is packed how and where.
  uint64_t layout() const;
  // The constants that runs read as they are.
  static std::vector<const Edge*> raw_constants(Graph& root, const Weights& weights);

  // A format other than the one named at load is a bug of the operator: throws std::logic_error.
  bool pack(const Node& node, size_t input, const PackFormat& format, int64_t bytes) const override;

  bool is_packed(const Node& node, size_t input) const { return packed_at_.count(key(node, input)) > 0; }
  // Where its packed form is, from packed_base().
  int64_t packed_offset(const Node& node, size_t input) const {
    return packed_[packed_at_.at(key(node, input))].offset;
  }
  bool is_loaded() const { return loaded_; }
  // Valid after load.
  std::byte* packed_base() const { return adopted_ != nullptr ? adopted_ : packed_arena_.data(); }
  std::byte* raw(const Edge& edge) const;

  int64_t packed_bytes() const { return packed_bytes_; }  // of the arena, whole pages
  int64_t weights_bytes() const { return mapped_bytes_ + owned(Account::kWeights).bytes; }
  // What of the state, and of copies, is in that account; whole pages.
  int64_t state_bytes(Account account) const { return owned(account).bytes; }
  // Of its own tables, in the account `session`.
  int64_t tables_bytes() const { return tables_bytes_; }
  // The most that loading holds beyond the final state: the largest raw tensor that is packed or is state.
  int64_t largest_raw_bytes() const { return largest_raw_; }
  // Of the graph's memory, what loading gives back: constants that were packed and that nobody else reads.
  int64_t passing_bytes() const { return passing_bytes_; }

 private:
  // One tensor in one format, packed by the first node that asked for it.
  struct Packed {
    const Node* node;
    size_t input;
    PackFormat format;
    int64_t offset, bytes;
  };
  // One mapping: copies of constants and parameters, kept gradients, or moments.
  struct Owned {
    Account account;
    int64_t bytes = 0;
    Arena arena = {};
  };
  class Collector;
  static uint64_t key(const Node& node, size_t input) { return (uint64_t{node.id} << 32) | input; }
  bool request(const Node& node, size_t input, const PackFormat& format, int64_t bytes);
  void collect_raw(Graph& root, TransientMemory& transient);
  void pack_all(const Drop& drop);
  void own(const Edge& edge);
  void collect_passing(std::span<Edge* const> raw);
  void release_passing() noexcept;
  const Owned& owned(Account account) const;

  int threads_;
  bool may_pack_;
  BumpArena& graph_memory_;
  Budget own_;
  ChargedResource mappings_;
  FreeLists tables_;
  std::pmr::vector<Packed> packed_;
  std::pmr::unordered_map<uint64_t, size_t> packed_at_;        // by node and input: index into packed_
  std::pmr::unordered_multimap<uint32_t, size_t> formats_of_;  // by edge id: likewise
  std::pmr::unordered_map<uint32_t, int64_t> copied_at_;       // edge id -> offset in what its account owns
  std::pmr::vector<const Edge*> copied_;
  std::pmr::vector<const std::byte*> passing_;  // large pieces of the graph's memory
  int64_t passing_bytes_ = 0, packed_bytes_ = 0, mapped_bytes_ = 0, largest_raw_ = 0, tables_bytes_ = 0;
  std::array<Owned, 3> owned_ = {Owned{Account::kWeights}, {Account::kGradients}, {Account::kOptimizer}};
  Arena packed_arena_;
  Charge mapped_charge_, adopted_charge_;
  std::byte* adopted_ = nullptr;
  bool loaded_ = false;
};

}  // namespace plimsoll
