// The operators that this library runs, as its registry has them.
//
// Plain data, owned by whoever asked for it. Any thread may ask.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace plimsoll {

// What training can do with an operator.
enum class GradientKind {
  kNone,   // it cannot be differentiated
  kZeros,  // nothing flows through it: its outputs are integers, or constant wherever they have a derivative
  kYes,    // it has a gradient of its own
  kDecomposed  // others take its place, and are differentiated if all of them are
};

struct OperatorInfo {
  std::string domain;  // "" is ai.onnx
  std::string name;
  size_t least_inputs = 0, most_inputs = 0;
  size_t least_outputs = 0, most_outputs = 0;
  bool any_number_of_inputs = false, any_number_of_outputs = false;
  bool deterministic = true;
  bool has_bodies = false;     // If, Loop and their kin
  bool packs_weights = false;  // weights are kept in a format of its own
  GradientKind gradient = GradientKind::kNone;
};

// Sorted by domain, then by name.
std::vector<OperatorInfo> GetOperators();

}  // namespace plimsoll
