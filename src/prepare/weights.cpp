#include "prepare/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/mapped_file.h"
#include "graph/infer.h"
#include "kernels/parallel.h"
#include "memory/transient_memory.h"
#include "prepare/table_rows.h"

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

// Records what the operators ask for, then what is left to be read as it is.
class Weights::Collector : public PackPolicy {
 public:
  Collector(Graph& root, int threads, bool may_pack, bool spends_memory, TransientMemory& memory)
      : root_(root),
        may_pack_(may_pack),
        spends_memory_(spends_memory),
        packed_(memory.resource()),
        packed_at_(memory.resource()),
        formats_of_(memory.resource()),
        copied_(memory.resource()),
        passing_(memory.resource()) {
    Choices choices(root.arena().budget());
    root.for_each_graph([&](Graph& graph) {
      for (const Node* node : graph.nodes) {
        if (node->op->select == nullptr) continue;
        const std::vector<Facts> inputs = facts_of_edges(node->inputs);
        std::vector<Facts> outputs = facts_of_edges(node->outputs);
        SelectContext context(*node, inputs, outputs, this, threads, choices.next());
        node->op->select(context);
      }
    });
    // Of an input that was asked for twice, the last answer counts.
    std::reverse(packed_at_.begin(), packed_at_.end());
    std::stable_sort(packed_at_.begin(), packed_at_.end(),
                     [](const PackedAt& a, const PackedAt& b) { return a.key < b.key; });
    const auto is_same = [](const PackedAt& a, const PackedAt& b) { return a.key == b.key; };
    packed_at_.erase(std::unique(packed_at_.begin(), packed_at_.end(), is_same), packed_at_.end());
    tables_.packed_bytes = round_up(tables_.packed_bytes, page_bytes());
    collect_raw(memory);
  }
  bool pack(const Node& node, size_t input, const PackFormat& format, int64_t bytes) const override {
    return const_cast<Collector*>(this)->request(node, input, format, bytes);
  }
  const Tables* tables(BumpArena& arena) {
    tables_.packed = packed_;
    tables_.packed_at = packed_at_;
    tables_.copied = copied_;
    tables_.passing = passing_;
    return copy(tables_, arena);
  }
  static const Tables* copy(const Tables& from, BumpArena& arena) {
    auto* to = arena.make<Tables>(from);
    to->packed = arena.copy<Packed>(from.packed);
    to->packed_at = arena.copy<PackedAt>(from.packed_at);
    to->copied = arena.copy<Copied>(from.copied);
    to->passing = arena.copy<const std::byte*>(from.passing);
    return to;
  }

 private:
  bool request(const Node& node, size_t input, const PackFormat& format, int64_t bytes);
  void collect_raw(TransientMemory& memory);
  void own(const Edge& edge);
  void collect_passing(std::span<Edge* const> raw);

  Graph& root_;
  const bool may_pack_, spends_memory_;
  Tables tables_;
  std::pmr::vector<Packed> packed_;
  std::pmr::vector<PackedAt> packed_at_;
  std::pmr::unordered_multimap<uint32_t, size_t> formats_of_;  // by edge id: index into packed_
  std::pmr::vector<Copied> copied_;
  std::pmr::vector<const std::byte*> passing_;
};

Weights::Weights(Graph& root, int threads, bool pack, bool spend_memory)
    : threads_(threads), graph_memory_(root.arena()), tables_memory_(root.arena().budget()) {
  TransientMemory transient(root.arena().budget());
  tables_ = Collector(root, threads, pack, spend_memory, transient).tables(tables_memory_);
}

Weights::Weights(Graph& root, int threads, const Tables& decided)
    : threads_(threads),
      graph_memory_(root.arena()),
      tables_memory_(root.arena().budget()),
      tables_(&decided) {}

const Weights::Tables* Weights::tables_in(BumpArena& arena) const {
  return Collector::copy(*tables_, arena);
}

bool Weights::Collector::request(const Node& node, size_t input, const PackFormat& format, int64_t bytes) {
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
    packed_at_.push_back({key(node, input), known->second});
    return true;
  }
  formats_of_.emplace(edge.id, packed_.size());
  packed_at_.push_back({key(node, input), packed_.size()});
  packed_.push_back({&node, input, format, tables_.packed_bytes, bytes});
  tables_.packed_bytes = checked_add(tables_.packed_bytes, round_up(bytes, kAlignment));
  if (edge.data->in_file)
    tables_.largest_raw = std::max(tables_.largest_raw, static_cast<int64_t>(edge.data->bytes.size()));
  return true;
}

const Weights::Packed* Weights::find(const Node& node, size_t input) const {
  const uint64_t wanted = key(node, input);
  const auto found = std::lower_bound(tables_->packed_at.begin(), tables_->packed_at.end(), wanted,
                                      [](const PackedAt& entry, uint64_t k) { return entry.key < k; });
  if (found == tables_->packed_at.end() || found->key != wanted) return nullptr;
  return &tables_->packed[found->index];
}

bool Weights::pack(const Node& node, size_t input, const PackFormat& format, int64_t bytes) const {
  const Packed* item = find(node, input);
  if (item == nullptr) return false;
  if (item->format != format || item->bytes != bytes)
    throw std::logic_error(fmt::format("{}: input {} was packed as {}, is asked for as {}", node.label(),
                                       input, item->format.kind, format.kind));
  return true;
}

void Weights::Collector::collect_raw(TransientMemory& memory) {
  enum Use : uint8_t { kBytewise = 1, kAligned = 2, kRows = 4, kWhole = 8 };
  std::pmr::vector<uint8_t> uses(root_.edge_count(), 0, memory.resource());
  std::pmr::vector<Edge*> edges(root_.edge_count(), nullptr, memory.resource());
  const auto is_packed = [&](const Node& node, size_t input) {
    const auto found = std::lower_bound(packed_at_.begin(), packed_at_.end(), key(node, input),
                                        [](const PackedAt& entry, uint64_t k) { return entry.key < k; });
    return found != packed_at_.end() && found->key == key(node, input);
  };
  root_.for_each_graph([&](Graph& graph) {
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
  std::pmr::vector<Edge*> large(memory.resource());
  for (Edge* edge : edges) {
    if (edge == nullptr) continue;
    edge->by_rows = (uses[edge->id] & kWhole) == 0 && !edge->persistent && is_large_table(*edge->data);
    if (edge->by_rows) large.push_back(edge);
  }
  if (spends_memory_ && rows_take_long(root_, large, memory)) {
    for (Edge* table : large) table->by_rows = false;
    tables_.holds_tables = true;
  }
  for (Edge* edge : edges) {
    if (edge == nullptr || edge->by_rows) continue;
    const uint8_t use = uses[edge->id];
    if (!edge->persistent && !is_worth_a_copy(*edge->data) && ((use & kAligned) == 0 || is_aligned(*edge))) {
      // Others are in the graph's own memory, or in the caller's.
      if (edge->data->in_file) tables_.mapped_bytes += static_cast<int64_t>(edge->data->bytes.size());
    } else {
      own(*edge);
    }
  }
  for (int64_t& bytes : tables_.owned_bytes) bytes = round_up(bytes, page_bytes());
  collect_passing(edges);
}

void Weights::Collector::collect_passing(std::span<Edge* const> raw) {
  const std::less_equal<const std::byte*> not_after;
  const std::less<const std::byte*> is_before;
  for (const Packed& item : packed_) {
    const TensorData& data = *item.node->inputs[item.input]->data;
    const int64_t bytes = data.in_file ? 0 : root_.arena().bytes_to_release(data.bytes.data());
    if (bytes == 0 || std::find(passing_.begin(), passing_.end(), data.bytes.data()) != passing_.end())
      continue;
    const std::byte* const begin = data.bytes.data();
    const bool is_read = std::any_of(raw.begin(), raw.end(), [&](const Edge* edge) {
      return edge != nullptr && not_after(begin, edge->data->bytes.data()) &&
             is_before(edge->data->bytes.data(), begin + bytes);  // another mapping may begin at its end
    });
    if (is_read) continue;
    passing_.push_back(begin);
    tables_.passing_bytes += bytes;
  }
}

void Weights::release_passing() noexcept {
  for (const std::byte* piece : tables_->passing) graph_memory_.release(piece);
}

size_t Weights::owner(const Edge& edge) {
  const Account account = edge.persistent ? edge.account : Account::kWeights;
  return static_cast<size_t>(std::find(kOwners.begin(), kOwners.end(), account) - kOwners.begin());
}

int64_t Weights::owned_bytes(Account account) const {
  const auto found = std::find(kOwners.begin(), kOwners.end(), account);
  return tables_->owned_bytes[static_cast<size_t>(found - kOwners.begin())];
}

// By edge id: they come in that order.
void Weights::Collector::own(const Edge& edge) {
  int64_t& bytes = tables_.owned_bytes[owner(edge)];
  copied_.push_back({&edge, bytes});
  bytes = checked_add(bytes, round_up(edge.data->view().bytes(), kAlignment));
  if (edge.persistent && edge.data->in_file)
    tables_.largest_raw = std::max(tables_.largest_raw, static_cast<int64_t>(edge.data->bytes.size()));
}

void Weights::load(Budget& budget, const Drop& drop) {
  mapped_charge_ = Charge(budget, Account::kWeights, tables_->mapped_bytes);
  for (size_t i = 0; i < kOwners.size(); ++i) owned_[i] = Arena(budget, kOwners[i], tables_->owned_bytes[i]);
  if (adopted_ != nullptr) {
    adopted_charge_ = Charge(budget, Account::kPacked, packed_bytes());
  } else {
    packed_arena_ = Arena(budget, Account::kPacked, packed_bytes());
  }
  const Charge passing(budget, Account::kWeights, largest_raw_bytes());
  for (const auto& [edge, offset] : tables_->copied) {
    const std::span<const std::byte> raw = edge->data->bytes;
    std::byte* const to = owned_[owner(*edge)].data() + offset;
    if (edge->data->file != nullptr) {
      edge->data->read(0, {to, raw.size()});
    } else if (!raw.empty()) {
      std::memcpy(to, raw.data(), raw.size());
      if (edge->data->in_file) drop(raw);
    }
  }
  if (adopted_ == nullptr) pack_all(drop);
  release_passing();
  loaded_ = true;
}

namespace {

// Calls f(task) for every task; what one of them throws comes out at the end.
template <typename F>
void try_for_each(int threads, int64_t tasks, const F& f) {
  std::exception_ptr failure;
  std::mutex mutex;
  kernels::parallel_for(threads, tasks, [&](int64_t task) noexcept {
    try {
      f(task);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  });
  if (failure != nullptr) std::rethrow_exception(failure);
}

// Calls f(begin, size) for parts of a tensor, one for each thread where it is large.
template <typename F>
void for_parts(size_t bytes, int threads, const F& f) {
  constexpr size_t kWorthAThread = 1 << 20;
  const size_t parts = std::clamp<size_t>(bytes / kWorthAThread, 1, static_cast<size_t>(threads));
  try_for_each(threads, static_cast<int64_t>(parts), [&](int64_t part) {
    const size_t begin = bytes * static_cast<size_t>(part) / parts;
    f(begin, bytes * static_cast<size_t>(part + 1) / parts - begin);
  });
}

}  // namespace

// Tensors that are packed side by side, one on each thread, or one on all of them: what is in passage at a
// time is no more than the largest tensor. Where there is room for it, it passes through the end of the
// arena, which nothing packed has reached yet: copying it out of the file costs half of what mapping its
// pages does, and that memory is needed anyway. What finds no room there is mapped.
class Weights::Packer {
 public:
  Packer(const Weights& weights, const Drop& drop)
      : weights_(weights), drop_(drop), planning_("planning", 0), choices_(planning_) {}

  // From here on nothing is packed behind the end of `item`, but in the order in which it lies.
  void pass_behind(const Packed& item) { packed_to_ = std::max(packed_to_, item.offset + item.bytes); }

  void add(const Packed& item) {
    const TensorData& data = *item.node->inputs[item.input]->data;
    const int64_t raw = data.in_file ? static_cast<int64_t>(data.bytes.size()) : 0;
    const bool reaches_passage = item.offset + item.bytes > passage_;
    if (!jobs_.empty() && (weights_.threads_ == 1 || raw_ + raw > weights_.tables_->largest_raw ||
                           jobs_.size() == kMost || reaches_passage))
      finish();
    BumpArena& arena = jobs_.empty() ? *(arena_ = &choices_.next()) : *arena_;
    const Node& node = *item.node;
    Job& job = jobs_.emplace_back(
        Job{&item, facts_of_edges(node.inputs), facts_of_edges(node.outputs), nullptr, passage_for(item)});
    SelectContext select(node, job.inputs, job.outputs, &weights_, weights_.threads_, arena);
    job.choice = node.op->select(select);
    raw_ += raw;
  }
  void finish() {
    if (jobs_.size() == 1) {
      pack(jobs_[0]);
    } else if (!jobs_.empty()) {
      share_out();
    }
    jobs_.clear();
    raw_ = 0;
    passage_ = weights_.packed_bytes();
  }

 private:
  static constexpr size_t kMost = 64;
  struct Job {
    const Packed* item;
    std::vector<Facts> inputs, outputs;
    const void* choice;
    std::byte* passage;  // for the raw tensor, or null
  };

  std::byte* passage_for(const Packed& item) {
    const TensorData& data = *item.node->inputs[item.input]->data;
    const int64_t bytes = static_cast<int64_t>(data.bytes.size());
    pass_behind(item);
    if (data.file == nullptr || passage_ - packed_to_ < bytes + kAlignment) return nullptr;
    passage_ = (passage_ - bytes) / kAlignment * kAlignment;
    return weights_.packed_arena_.data() + passage_;
  }
  void share_out() {
    std::atomic<size_t> next{0};
    try_for_each(weights_.threads_, weights_.threads_, [&](int64_t) {
      for (size_t i = 0; (i = next.fetch_add(1)) < jobs_.size();) pack(jobs_[i]);
    });
  }
  void pack(Job& job) const {
    const Packed& item = *job.item;
    const Edge& edge = *item.node->inputs[item.input];
    const TensorData& data = *edge.data;
    TensorView raw = *edge.constant;
    if (job.passage != nullptr) {
      raw.data = job.passage;
      for_parts(data.bytes.size(), weights_.threads_, [&](size_t begin, size_t size) {
        data.read(static_cast<int64_t>(begin), {job.passage + begin, size});
      });
    } else if (data.in_file) {
      for_parts(data.bytes.size(), weights_.threads_,
                [&](size_t begin, size_t size) { populate_for_reading(data.bytes.subspan(begin, size)); });
    }
    item.node->op->pack(PackContext(*item.node, job.inputs, job.outputs, job.choice, item.input, raw,
                                    weights_.packed_arena_.data() + item.offset));
    if (job.passage == nullptr && data.in_file) drop_(data.bytes);
  }

  const Weights& weights_;
  const Drop& drop_;
  Budget planning_;
  Choices choices_;
  BumpArena* arena_ = nullptr;
  std::vector<Job> jobs_;
  int64_t raw_ = 0;
  int64_t packed_to_ = 0;                      // what is packed, or is about to be, ends here
  int64_t passage_ = weights_.packed_bytes();  // what is in passage begins here
};

void Weights::pack_all(const Drop& drop) {
  Packer packer(*this, drop);
  const auto piece_of = [](const Packed& p) { return p.node->inputs[p.input]->data->bytes.data(); };
  const auto passes = [&](const Packed& p) {
    return std::find(tables_->passing.begin(), tables_->passing.end(), piece_of(p)) != tables_->passing.end();
  };
  // What only packing reads goes first, and is given back piece by piece: it is not there beside all that is
  // packed.
  for (const Packed& item : tables_->packed) {
    if (passes(item)) packer.pass_behind(item);
  }
  for (const std::byte* piece : tables_->passing) {
    for (const Packed& item : tables_->packed) {
      if (piece_of(item) == piece) packer.add(item);
    }
    packer.finish();
    graph_memory_.release(piece);
  }
  for (const Packed& item : tables_->packed) {
    if (!passes(item)) packer.add(item);
  }
  packer.finish();
}

void Weights::adopt(std::span<const std::byte> packed, uint64_t expected) {
  if (static_cast<int64_t>(packed.size()) != packed_bytes() || layout() != expected)
    fail(ErrorCode::kInvalidModel,
         "compiled file: expected {} bytes of packed weights, laid out as this build does with {} threads, "
         "found "
         "{}; compile it again with these settings",
         packed_bytes(), threads_, packed.size());
  // Nobody writes to what is packed.
  adopted_ = const_cast<std::byte*>(packed.data());
}

uint64_t Weights::layout() const {
  uint64_t sum = tables_->packed.size();
  for (const Packed& item : tables_->packed) {
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
  const auto found = std::lower_bound(tables_->copied.begin(), tables_->copied.end(), edge.id,
                                      [](const Copied& entry, uint32_t id) { return entry.edge->id < id; });
  if (found == tables_->copied.end() || found->edge->id != edge.id)
    return const_cast<std::byte*>(edge.data->bytes.data());
  return owned_[owner(edge)].data() + found->offset;
}

}  // namespace plimsoll
