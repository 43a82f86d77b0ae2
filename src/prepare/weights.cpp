#include "prepare/weights.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "graph/infer.h"

namespace plimsoll {
namespace {

constexpr int64_t kAlignment = 64;

bool is_aligned(const Edge& edge) {
  const auto address = reinterpret_cast<uintptr_t>(edge.data->bytes.data());
  const auto width = static_cast<uintptr_t>(std::max(1, element_bits(edge.data->type) / 8));
  return address % std::min<uintptr_t>(width, 8) == 0;
}

}  // namespace

Weights::Weights(Graph& root) {
  root.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) collect_packed(*node);
  });
  packed_bytes_ = round_up(packed_bytes_, page_bytes());
  collect_raw(root);
}

void Weights::collect_packed(const Node& node) {
  if (node.op->packs == nullptr) return;
  const std::vector<Facts> inputs = facts_of_edges(node.inputs);
  std::vector<Facts> outputs = facts_of_edges(node.outputs);
  PackContext context(node, inputs, outputs);
  node.op->packs(context);
  for (const PackContext::Request& request : context.requests) {
    // Known, but made by a node (a Constant that no pass folded): there is no weight to pack. One that
    // changes would not be what was packed.
    const Edge& edge = *node.inputs[request.input];
    if (edge.data == nullptr || edge.persistent) continue;
    packed_at_[key(node, request.input)] = packed_.size();
    packed_.push_back({&node, request.input, packed_bytes_});
    packed_bytes_ = checked_add(packed_bytes_, round_up(request.bytes, kAlignment));
    const TensorData& raw = *edge.data;
    if (raw.in_file) largest_raw_ = std::max(largest_raw_, static_cast<int64_t>(raw.bytes.size()));
  }
}

void Weights::collect_raw(Graph& root) {
  enum Use : uint8_t { kNone, kBytewise, kAligned };
  std::vector<uint8_t> uses(root.edge_count(), kNone);
  std::vector<const Edge*> edges(root.edge_count(), nullptr);
  root.for_each_graph([&](Graph& graph) {
    for (const Node* node : graph.nodes) {
      for (size_t i = 0; i < node->inputs.size(); ++i) {
        const Edge* edge = node->inputs[i];
        if (edge == nullptr || edge->data == nullptr || is_packed(*node, i)) continue;
        const bool bytewise = i < 32 && ((node->op->unaligned_inputs >> i) & 1) != 0;
        uses[edge->id] = std::max<uint8_t>(uses[edge->id], bytewise ? kBytewise : kAligned);
        edges[edge->id] = edge;
      }
    }
    for (const Edge* edge : graph.outputs) {
      if (edge->data == nullptr) continue;
      uses[edge->id] = kAligned;
      edges[edge->id] = edge;
    }
  });
  for (const Edge* edge : edges) {
    if (edge == nullptr) continue;
    const auto bytes = static_cast<int64_t>(edge->data->bytes.size());
    if (!edge->persistent && (uses[edge->id] == kBytewise || is_aligned(*edge))) {
      // Others are in the graph's own memory, or in the caller's.
      if (edge->data->in_file) mapped_bytes_ += bytes;
    } else {
      copied_at_[edge->id] = copied_bytes_;
      copied_.push_back(edge);
      copied_bytes_ = checked_add(copied_bytes_, round_up(bytes, kAlignment));
    }
  }
  copied_bytes_ = round_up(copied_bytes_, page_bytes());
}

void Weights::load(Budget& budget, const Drop& drop) {
  mapped_charge_ = Charge(budget, Account::kWeights, mapped_bytes_);
  copied_arena_ = Arena(budget, Account::kWeights, copied_bytes_);
  packed_arena_ = Arena(budget, Account::kPacked, packed_bytes_);
  for (const Edge* edge : copied_) {
    const std::span<const std::byte> raw = edge->data->bytes;
    if (!raw.empty()) std::memcpy(copied_arena_.data() + copied_at_[edge->id], raw.data(), raw.size());
    if (edge->data->in_file) drop(raw);
  }
  const Charge passing(budget, Account::kWeights, largest_raw_);
  for (const Packed& item : packed_) {
    const Node& node = *item.node;
    const std::vector<Facts> inputs = facts_of_edges(node.inputs);
    std::vector<Facts> outputs = facts_of_edges(node.outputs);
    const NodeContext context(node, inputs, outputs);
    const Edge& edge = *node.inputs[item.input];
    node.op->pack(context, item.input, *edge.constant, packed_arena_.data() + item.offset);
    if (edge.data->in_file) drop(edge.data->bytes);
  }
}

std::byte* Weights::packed(const Node& node, size_t input) const {
  return packed_arena_.data() == nullptr
             ? nullptr
             : packed_arena_.data() + packed_[packed_at_.at(key(node, input))].offset;
}

std::byte* Weights::raw(const Edge& edge) const {
  const auto copied = copied_at_.find(edge.id);
  if (copied == copied_at_.end()) return const_cast<std::byte*>(edge.data->bytes.data());
  return copied_arena_.data() == nullptr ? nullptr : copied_arena_.data() + copied->second;
}

}  // namespace plimsoll
