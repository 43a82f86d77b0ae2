// How an Einsum is computed: operands are taken one after the other, each multiplied into what has been
// computed so far and summed over the labels that nobody needs any more.
#pragma once

#include <vector>

#include "ops/einsum_equation.h"

namespace plimsoll {

enum class EinsumPlace : uint8_t { kInput, kScratch, kOutput };

struct EinsumAddress {
  EinsumPlace place = EinsumPlace::kInput;
  size_t input = 0;
  Dim offset = 0;  // elements into the scratch
};

struct EinsumLoop {
  Dim size, a, b, o;  // strides
};

enum class EinsumStepKind : uint8_t {
  kWiden,   // o = a, as floats
  kSum,     // o = sum of a
  kNest,    // o = sum of a * b, by loops
  kGemm,    // o = sum of a * b, by matrix products
  kCopy,    // o = a, with its dimensions in another order
  kNarrow,  // o = a, from floats
};

struct EinsumStep {
  EinsumStepKind kind;
  EinsumAddress a, b, o;
  Dim elements;                   // of o
  std::vector<EinsumLoop> loops;  // kGemm: the batch
  Dim m = 1, k = 1, n = 1, a_row = 0, a_col = 0, b_row = 0, b_col = 0, o_row = 0;
};

struct EinsumPlan {
  std::vector<EinsumStep> steps;
  Dim scratch = 0;  // elements
  Dim operations = 0;
};

// Facts may be symbolic: then the sizes are formulas.
EinsumPlan plan_einsum(const NodeContext& c, const EinsumEquation& equation);

}  // namespace plimsoll
