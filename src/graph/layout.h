// Layouts: what an operator says of itself for when the axes of its tensors move.
//
// One move is made today: channels go last, (N, C, spatial...) becomes (N, spatial..., C), for tensors of
// at least three dimensions. An operator knows the move only through order() and place(). Its `layout`
// answers with plain data; optimize/channels_last.cpp chooses which nodes move, and rewrites them.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "graph/node_changes.h"
#include "graph/op_def.h"

namespace plimsoll {

enum class LayoutChoice : uint8_t {
  kPlain,   // as ONNX says only
  kEither,  // all its ports moved, or none
  kMoved,   // moved: its kernels want it, or it makes or unmakes the move
};

// A node that does nothing but the move itself, so that it goes away where its neighbours are moved.
enum class LayoutMover : uint8_t { kNone, kMoves, kMovesBack };

struct Layout {
  LayoutChoice choice = LayoutChoice::kPlain;
  LayoutMover mover = LayoutMover::kNone;
  // Ports are the inputs and outputs whose axes move, together; the others never do.
  std::vector<bool> inputs, outputs;

  NodeChanges changes;  // in a node whose ports move; ports are left alone
  // Output 0, a list that is no port: entry i of what it must be is entry `entries[i]` of the `length`
  // entries that the changed node makes.
  struct OutputList {
    int64_t length;
    std::vector<int64_t> entries;
  };
  std::optional<OutputList> output_list;
};

class LayoutContext : public NodeContext {
 public:
  // `used[i]`: somebody reads output i.
  LayoutContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs,
                std::vector<bool> used)
      : NodeContext(node, inputs, outputs), used_(std::move(used)) {
    layout.inputs.resize(inputs.size());
    layout.outputs.resize(outputs.size());
  }

  // Axis i of a moved tensor is axis order(rank)[i] of the plain one; axis a of the plain one is at
  // place(a, rank) of the moved one. Below three dimensions nothing moves.
  static std::vector<int64_t> order(size_t rank);
  static int64_t place(int64_t axis, size_t rank);

  bool is_weight(size_t i) const { return has_input(i) && node_.inputs[i]->constant != nullptr; }
  bool is_used(size_t output) const { return output < used_.size() && used_[output]; }
  // Every dimension is known to be 1, or there is none.
  bool has_one_element(size_t i) const;
  // Is a list of so many entries.
  bool has_length(size_t i, size_t length) const;
  // Left out, or a weight without elements.
  bool is_empty(size_t i) const;

  // The answers. An operator that gives none stays plain. These make ports of the inputs that are
  // there, and of output 0.
  void either(std::initializer_list<size_t> inputs) { answer(LayoutChoice::kEither, inputs); }
  void moved(std::initializer_list<size_t> inputs) { answer(LayoutChoice::kMoved, inputs); }
  void make_port(size_t input) { layout.inputs[input] = true; }
  void keep_output(size_t output) { layout.outputs[output] = false; }
  NodeChanges& changes() { return layout.changes; }

  Layout layout;

 private:
  void answer(LayoutChoice choice, std::initializer_list<size_t> inputs);
  std::vector<bool> used_;
};

}  // namespace plimsoll
