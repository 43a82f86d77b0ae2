// The inputs of the fused operators that rewrites make, by position, and of what they are made from.
#pragma once

#include <vector>

#include "graph/graph.h"
#include "graph/op_def.h"
#include "optimize/match.h"

namespace plimsoll {

// FusedConv(X, W, B, Z, S): activation(conv(X, W * S) + B + Z)
struct ConvInputs {
  Edge *x = nullptr, *w = nullptr, *bias = nullptr, *addend = nullptr, *scale = nullptr;
  std::vector<Edge*> list() const {
    std::vector<Edge*> edges = {x, w, bias, addend, scale};
    while (edges.back() == nullptr) edges.pop_back();
    return edges;
  }
};

// Of a Conv or FusedConv that applies no activation yet; x is null otherwise.
inline ConvInputs open_conv(const Node* node) {
  if (!is_op(node, "Conv") && !is_op(node, "Conv", kPlimsollDomain) &&
      !is_op(node, "FusedConv", kPlimsollDomain))
    return {};
  if (!is_real(node->outputs[0]) || node->attribute("activation") != nullptr) return {};
  return {node->input(0), node->input(1), node->input(2), node->input(3), node->input(4)};
}

// FusedMatMul(A, B, bias, Z); see src/ops/fused_matmul.cpp
struct MatMulInputs {
  Edge *a = nullptr, *b = nullptr, *bias = nullptr, *addend = nullptr;
  std::vector<Edge*> list() const {
    std::vector<Edge*> edges = {a, b, bias, addend};
    while (edges.back() == nullptr) edges.pop_back();
    return edges;
  }
};

// Of a MatMul or FusedMatMul of floats that applies no activation yet; a is null otherwise.
inline MatMulInputs open_matmul(const Node* node) {
  if (!is_op(node, "MatMul") && !is_op(node, "FusedMatMul", kPlimsollDomain)) return {};
  if (!is_real(node->outputs[0]) || node->attribute("activation") != nullptr) return {};
  return {node->input(0), node->input(1), node->input(2), node->input(3)};
}

}  // namespace plimsoll
