// Einsum's equation: which label each dimension of each operand carries.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "graph/op_def.h"

namespace plimsoll {

// 0..51 are the letters in ASCII order (capitals first); what an ellipsis stands for follows, aligned at the
// end.
using EinsumLabel = uint8_t;
inline constexpr size_t kEinsumLetters = 52;
inline constexpr size_t kEinsumLabels = kEinsumLetters + InferContext::kMaxRank;

struct EinsumTerm {
  std::span<const EinsumLabel> letters;
  bool has_ellipsis = false;
  size_t ellipsis = 0;  // letters before it

  // Labels of the dimensions of a tensor of this rank, or of a term whose ellipsis stands for `rank` minus
  // its letters. The rank must fit.
  std::vector<EinsumLabel> labels(size_t rank) const;
  bool fits(size_t rank) const { return has_ellipsis ? rank >= letters.size() : rank == letters.size(); }
};

struct EinsumEquation {
  std::span<const EinsumTerm> inputs;
  bool is_explicit = false;
  EinsumTerm output;  // of an explicit one
};

// Throws unless there is a term per input of the node and the output is made of labels of the inputs.
const EinsumEquation* parse_equation(AttrContext& c, std::string_view text);

// Labels of the output, and of every input, for inputs of these ranks.
struct EinsumLabels {
  std::vector<std::vector<EinsumLabel>> inputs;
  std::vector<EinsumLabel> output;
  std::array<Dim, kEinsumLabels> sizes;  // 1 where no operand has more
};
EinsumLabels label_operands(const NodeContext& c, const EinsumEquation& equation);

}  // namespace plimsoll
