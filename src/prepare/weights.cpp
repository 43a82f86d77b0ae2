#include "prepare/weights.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/mapped_file.h"
#include "graph/infer.h"

namespace plimsoll {
namespace {

constexpr int64_t kAlignment = 64;

bool is_aligned(const Edge& edge) {
  const auto address = reinterpret_cast<uintptr_t>(edge.data->bytes.data());
  const auto width = static_cast<uintptr_t>(std::max(1, element_bits(edge.data->type) / 8));
  return address % std::min<uintptr_t>(width, 8) == 0;
}

// A page of a file brings its neighbours, 64 KiB in all: what is smaller takes less as a copy.
bool is_worth_a_copy(const TensorData& data) {
  constexpr size_t kNeighbours = 64 << 10;
  return data.in_file && data.bytes.size() < kNeighbours;
}

// Of a large table rows are read: each that is mapped would bring those neighbours.
bool is_large_table(const TensorData& data) {
  constexpr size_t kLargeTable = 1 << 20;
  return data.in_file && data.file != nullptr && data.bytes.size() >= kLargeTable;
}

// Memory for one Choice after the other.
class Choices {
 public:
  explicit Choices(Budget& budget) : budget_(budget) {}
  // What the one before has in there is gone.
  BumpArena& next() {
    constexpr int64_t kEnough = 128 << 10;
    if (!arena_ || arena_->mapped_bytes() > kEnough) arena_.emplace(budget_);
    return *arena_;
  }

 private:
  Budget& budget_;
  std::optional<BumpArena> arena_;
};

}  // namespace

// Records what the operators ask for.
class Weights::Collector : public PackPolicy {
 public:
  explicit Collector(Weights& weights) : weights_(weights) {}
  bool pack(const Node& node, size_t input, const PackFormat& format, int64_t bytes) const override {
    return weights_.request(node, input, format, bytes);
  }

 private:
  Weights& weights_;
};

Weights::Weights(Graph& root, int threads, bool pack)
    : threads_(threads),
      may_pack_(pack),
      graph_memory_(root.arena()),
      own_("weights", 0, &root.arena().budget()),
      mappings_(own_, Account::kSession),
      tables_(mappings_),
      packed_(&tables_),
      packed_at_(&tables_),
      formats_of_(&tables_),
      copied_at_(&tables_),
      copied_(&tables_),
      passing_(&tables_) {
  TransientMemory transient(root.arena().budget());
  Choices choices(root.arena().budget());
  const Collector collector(*this);
  root.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) {
      if (node->op->select == nullptr) continue;
      const std::vector<Facts> inputs = facts_of_edges(node->inputs);
      std::vector<Facts> outputs = facts_of_edges(node->outputs);
      SelectContext context(*node, inputs, outputs, &collector, threads_, choices.next());
      node->op->select(context);
    }
  });
  packed_bytes_ = round_up(packed_bytes_, page_bytes());
  collect_raw(root, transient);
  tables_bytes_ = own_.report().now_bytes;
}

bool Weights::request(const Node& node, size_t input, const PackFormat& format, int64_t bytes) {
  if (!may_pack_) return false;
  const Edge& edge = *node.inputs[input];
  // A value that a node makes, be it known or not, is no weight to pack; one that runs change would not be
  // what was packed.
  const auto stays = [](const Edge& e) { return e.data != nullptr && !e.persistent; };
  if (!stays(edge) || (format.also_reads != nullptr && !stays(*format.also_reads))) return false;
  const auto [begin, end] = formats_of_.equal_range(edge.id);
  const auto known =
      std::find_if(begin, end, [&](const auto& entry) { return packed_[entry.second].format == format; });
  if (known != end) {
    packed_at_[key(node, input)] = known->second;
    return true;
  }
  formats_of_.emplace(edge.id, packed_.size());
  packed_at_[key(node, input)] = packed_.size();
  packed_.push_back({&node, input, format, packed_bytes_, bytes});
  packed_bytes_ = checked_add(packed_bytes_, round_up(bytes, kAlignment));
  if (edge.data->in_file)
    largest_raw_ = std::max(largest_raw_, static_cast<int64_t>(edge.data->bytes.size()));
  return true;
}

bool Weights::pack(const Node& node, size_t input, const PackFormat& format, int64_t bytes) const {
  const auto found = packed_at_.find(key(node, input));
  if (found == packed_at_.end()) return false;
  const Packed& item = packed_[found->second];
  if (item.format != format || item.bytes != bytes)
    throw std::logic_error(fmt::format("{}: input {} was packed as {}, is asked for as {}", node.label(),
                                       input, item.format.kind, format.kind));
  return true;
}

void Weights::collect_raw(Graph& root, TransientMemory& transient) {
  enum Use : uint8_t { kBytewise = 1, kAligned = 2, kRows = 4, kWhole = 8 };
  std::pmr::vector<uint8_t> uses(root.edge_count(), 0, transient.resource());
  std::pmr::vector<Edge*> edges(root.edge_count(), nullptr, transient.resource());
  root.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) {
      const uint32_t rows = node->op->row_inputs == nullptr ? 0 : node->op->row_inputs(*node);
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        Edge* edge = node->inputs[i];
        if (edge == nullptr || edge->data == nullptr || is_packed(*node, i)) continue;
        const auto has = [i](uint32_t set) { return i < 32 && ((set >> i) & 1) != 0; };
        uses[edge->id] |= has(node->op->unaligned_inputs) ? kBytewise : kAligned;
        uses[edge->id] |= has(rows) ? kRows : kWhole;
        edges[edge->id] = edge;
      }
    }
    const auto hold = [&](Edge* edge) {
      if (edge->data == nullptr) return;
      uses[edge->id] |= kAligned | kWhole;
      edges[edge->id] = edge;
    };
    for (Edge* edge : graph.outputs) hold(edge);
    for (Edge* edge : graph.updated) hold(edge);
  });
  for (Edge* edge : edges) {
    if (edge == nullptr) continue;
    const uint8_t use = uses[edge->id];
    edge->by_rows = (use & kWhole) == 0 && !edge->persistent && is_large_table(*edge->data);
    if (edge->by_rows) continue;
    if (!edge->persistent && !is_worth_a_copy(*edge->data) && ((use & kAligned) == 0 || is_aligned(*edge))) {
      // Others are in the graph's own memory, or in the caller's.
      if (edge->data->in_file) mapped_bytes_ += static_cast<int64_t>(edge->data->bytes.size());
    } else {
      own(*edge);
    }
  }
  for (Owned& owned : owned_) owned.bytes = round_up(owned.bytes, page_bytes());
  collect_passing(edges);
}

void Weights::collect_passing(std::span<Edge* const> raw) {
  const std::less_equal<const std::byte*> not_after;
  const std::less<const std::byte*> is_before;
  for (const Packed& item : packed_) {
    const TensorData& data = *item.node->inputs[item.input]->data;
    const int64_t bytes = data.in_file ? 0 : graph_memory_.bytes_to_release(data.bytes.data());
    if (bytes == 0 || std::find(passing_.begin(), passing_.end(), data.bytes.data()) != passing_.end())
      continue;
    const std::byte* const begin = data.bytes.data();
    const bool is_read = std::any_of(raw.begin(), raw.end(), [&](const Edge* edge) {
      return edge != nullptr && not_after(begin, edge->data->bytes.data()) &&
             is_before(edge->data->bytes.data(), begin + bytes);  // another mapping may begin at its end
    });
    if (is_read) continue;
    passing_.push_back(begin);
    passing_bytes_ += bytes;
  }
}

void Weights::release_passing() noexcept {
  for (const std::byte* piece : passing_) graph_memory_.release(piece);
}

void Weights::own(const Edge& edge) {
  auto& owned = const_cast<Owned&>(this->owned(edge.persistent ? edge.account : Account::kWeights));
  copied_at_[edge.id] = owned.bytes;
  copied_.push_back(&edge);
  owned.bytes = checked_add(owned.bytes, round_up(edge.data->view().bytes(), kAlignment));
  if (edge.persistent && edge.data->in_file)
    largest_raw_ = std::max(largest_raw_, static_cast<int64_t>(edge.data->bytes.size()));
}

const Weights::Owned& Weights::owned(Account account) const {
  return *std::find_if(owned_.begin(), owned_.end(), [&](const Owned& o) { return o.account == account; });
}

void Weights::load(Budget& budget, const Drop& drop) {
  mapped_charge_ = Charge(budget, Account::kWeights, mapped_bytes_);
  for (Owned& owned : owned_) owned.arena = Arena(budget, owned.account, owned.bytes);
  if (adopted_ != nullptr) {
    adopted_charge_ = Charge(budget, Account::kPacked, packed_bytes_);
  } else {
    packed_arena_ = Arena(budget, Account::kPacked, packed_bytes_);
  }
  const Charge passing(budget, Account::kWeights, largest_raw_);
  for (const Edge* edge : copied_) {
    const std::span<const std::byte> raw = edge->data->bytes;
    if (!raw.empty()) std::memcpy(this->raw(*edge), raw.data(), raw.size());
    if (edge->data->in_file) drop(raw);
  }
  if (adopted_ == nullptr) pack_all(drop);
  release_passing();
  loaded_ = true;
}

void Weights::pack_all(const Drop& drop) {
  Budget planning("planning", 0);
  Choices choices(planning);
  const auto piece_of = [](const Packed& p) { return p.node->inputs[p.input]->data->bytes.data(); };
  const auto passes = [&](const Packed& p) {
    return std::find(passing_.begin(), passing_.end(), piece_of(p)) != passing_.end();
  };
  const auto pack = [&](const Packed& item) {
    const Node& node = *item.node;
    const std::vector<Facts> inputs = facts_of_edges(node.inputs);
    std::vector<Facts> outputs = facts_of_edges(node.outputs);
    SelectContext select(node, inputs, outputs, this, threads_, choices.next());
    const void* choice = node.op->select(select);
    const Edge& edge = *node.inputs[item.input];
    if (edge.data->in_file) populate_for_reading(edge.data->bytes);
    node.op->pack(PackContext(node, inputs, outputs, choice, item.input, *edge.constant,
                              packed_arena_.data() + item.offset));
    if (edge.data->in_file) drop(edge.data->bytes);
  };
  // What only packing reads goes first, and is given back piece by piece: it is not there beside all that is
  // packed.
  for (const std::byte* piece : passing_) {
    for (const Packed& item : packed_) {
      if (piece_of(item) == piece) pack(item);
    }
    graph_memory_.release(piece);
  }
  for (const Packed& item : packed_) {
    if (!passes(item)) pack(item);
  }
}

void Weights::adopt(std::span<const std::byte> packed, uint64_t expected) {
  if (static_cast<int64_t>(packed.size()) != packed_bytes_ || layout() != expected)
    fail(ErrorCode::kInvalidModel,
         "compiled file: expected {} bytes of packed weights, laid out as this build does with {} threads, "
         "found "
         "{}; compile it again with these settings",
         packed_bytes_, threads_, packed.size());
  largest_raw_ = 0;
  // Nobody writes to what is packed.
  adopted_ = const_cast<std::byte*>(packed.data());
}

uint64_t Weights::layout() const {
  uint64_t sum = packed_.size();
  for (const Packed& item : packed_) {
    const int64_t place[] = {item.node->id, static_cast<int64_t>(item.input), item.offset, item.bytes};
    sum = checksum(std::as_bytes(std::span(place)), sum);
    sum = checksum(std::as_bytes(std::span(item.format.numbers)), sum);
    sum = checksum(std::as_bytes(std::span(item.format.kind)), sum);
  }
  return sum;
}

std::vector<const Edge*> Weights::raw_constants(Graph& root, const Weights& weights) {
  std::vector<const Edge*> found;
  root.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) {
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const Edge* edge = node->inputs[i];
        if (edge != nullptr && edge->data != nullptr && !weights.is_packed(*node, i)) found.push_back(edge);
      }
    }
    for (const Edge* edge : graph.outputs) {
      if (edge->data != nullptr) found.push_back(edge);
    }
  });
  return found;
}

std::byte* Weights::raw(const Edge& edge) const {
  const auto copied = copied_at_.find(edge.id);
  if (copied == copied_at_.end()) return const_cast<std::byte*>(edge.data->bytes.data());
  return owned(edge.persistent ? edge.account : Account::kWeights).arena.data() + copied->second;
}

}  // namespace plimsoll
