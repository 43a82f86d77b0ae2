// Lowering: what an operator on sequences and optionals says of itself where their elements are known, so
// that they become plain edges that are planned like any other.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/builder.h"
#include "graph/op_def.h"

namespace plimsoll {

// The edges that a sequence consists of, or the one that an optional holds, made when they are first asked
// for.
using KnownElements = std::function<std::vector<Edge*>()>;

// Asked once after load, at every level of optimization, with the facts of the edges.
class LowerContext : public NodeContext {
 public:
  using NodeContext::NodeContext;
  virtual ~LowerContext() = default;

  // Null: they are not known. What is emitted for them must be used then: ask only to replace something.
  virtual KnownElements elements(size_t input) const = 0;
  // Nodes just before this one, resolved and inferred; may be used as long as lowering goes on.
  virtual GraphBuilder& builder() = 0;

  // Output `output` is the value of another edge.
  virtual void replace(size_t output, Edge* edge) = 0;
  // Output `output`, a sequence or an optional, consists of these.
  virtual void consists_of(size_t output, KnownElements elements) = 0;
};

}  // namespace plimsoll
