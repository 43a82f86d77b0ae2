// Constants of a model in the form in which the run wants them.
//
// Planning: which weights are packed, which are used as they are in the file, which must be copied
// because of their alignment, or because they are so small that the neighbours which their page brings along
// would take more; how many bytes each of these takes. Nodes that name the same format of the same
// tensor share what is packed. Loading: does it, one tensor at a time, and lets each raw range leave the
// process as soon as it is packed; what rewrites made and only packing reads leaves with the last of them.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "graph/op_def.h"
#include "memory/mapping.h"

namespace plimsoll {

// As a policy it answers select for a concrete shape as it was answered at load.
class Weights : public PackPolicy {
 public:
  using Drop = std::function<void(std::span<const std::byte>)>;

  // Pure: decides and counts. The graph must be resolved, inferred, and final. Without `pack`, every weight
  // is used as it is. With `spend_memory`, large tables whose rows would take long to read are used as they
  // are too.
  Weights(Graph& root, int threads, bool pack = true, bool spend_memory = false);
  // As they were decided before, for the same graph.
  struct Tables;
  Weights(Graph& root, int threads, const Tables& decided);
  // A copy of what was decided, as the next constructor wants it.
  const Tables* tables_in(BumpArena& arena) const;

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

  bool is_packed(const Node& node, size_t input) const { return find(node, input) != nullptr; }
  // Where its packed form is, from packed_base(); of one that is.
  int64_t packed_offset(const Node& node, size_t input) const { return find(node, input)->offset; }
  bool is_loaded() const { return loaded_; }
  // Valid after load.
  std::byte* packed_base() const { return adopted_ != nullptr ? adopted_ : packed_arena_.data(); }
  std::byte* raw(const Edge& edge) const;

  // Whether tables take memory that `spend_memory` alone gave them.
  bool holds_tables() const { return tables_->holds_tables; }
  int64_t packed_bytes() const { return tables_->packed_bytes; }  // of the arena, whole pages
  int64_t weights_bytes() const { return tables_->mapped_bytes + owned_bytes(Account::kWeights); }
  // What of the state, and of copies, is in that account; whole pages.
  int64_t state_bytes(Account account) const { return owned_bytes(account); }
  // The most that loading holds beyond the final state: the largest raw tensor that is packed or is state.
  int64_t largest_raw_bytes() const { return adopted_ != nullptr ? 0 : tables_->largest_raw; }
  // Of its own tables, in the account `session`.
  int64_t tables_bytes() const { return tables_memory_.mapped_bytes(); }
  // Of the graph's memory, what loading gives back: constants that were packed and that nobody else reads.
  int64_t passing_bytes() const { return tables_->passing_bytes; }

  // One tensor in one format, packed by the first node that asked for it.
  struct Packed {
    const Node* node;
    size_t input;
    PackFormat format;
    int64_t offset, bytes;
  };
  struct PackedAt {
    uint64_t key;  // node and input
    size_t index;  // into `packed`
  };
  struct Copied {
    const Edge* edge;
    int64_t offset;  // in what its account owns
  };
  // One mapping each: copies of constants and parameters, kept gradients, or moments.
  static constexpr std::array kOwners = {Account::kWeights, Account::kGradients, Account::kOptimizer};
  struct Tables {
    std::span<const Packed> packed;
    std::span<const PackedAt> packed_at;        // by key
    std::span<const Copied> copied;             // by the edges' ids
    std::span<const std::byte* const> passing;  // large pieces of the graph's memory
    std::array<int64_t, 3> owned_bytes{};       // by kOwners
    int64_t passing_bytes = 0, packed_bytes = 0, mapped_bytes = 0, largest_raw = 0;
    bool holds_tables = false;
  };

 private:
  class Collector;
  class Packer;
  static uint64_t key(const Node& node, size_t input) { return (uint64_t{node.id} << 32) | input; }
  const Packed* find(const Node& node, size_t input) const;  // null if it is not packed
  void pack_all(const Drop& drop);
  void release_passing() noexcept;
  static size_t owner(const Edge& edge);
  int64_t owned_bytes(Account account) const;

  int threads_;
  BumpArena& graph_memory_;
  BumpArena tables_memory_;
  const Tables* tables_ = nullptr;
  std::array<Arena, kOwners.size()> owned_;
  Arena packed_arena_;
  Charge mapped_charge_, adopted_charge_;
  std::byte* adopted_ = nullptr;
  bool loaded_ = false;
};

}  // namespace plimsoll
