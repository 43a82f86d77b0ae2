#include "plimsoll/operators.h"

#include <algorithm>
#include <tuple>

#include "graph/gradient.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

GradientKind gradient_of(const OpDef& op) {
  if (op.same_as != nullptr) return gradient_of(*op.same_as);
  if (op.gradient == no_gradient) return GradientKind::kZeros;
  if (op.gradient != nullptr) return GradientKind::kYes;
  return op.decompose != nullptr ? GradientKind::kDecomposed : GradientKind::kNone;
}

}  // namespace

std::vector<OperatorInfo> GetOperators() {
  std::vector<OperatorInfo> operators;
  for (const OpDef* op : all_ops()) {
    OperatorInfo info;
    info.domain = op->domain;
    info.name = op->name;
    info.least_inputs = op->inputs.least, info.most_inputs = op->inputs.most;
    info.least_outputs = op->outputs.least, info.most_outputs = op->outputs.most;
    info.any_number_of_inputs = op->inputs.most >= kAnyNumber;
    info.any_number_of_outputs = op->outputs.most >= kAnyNumber;
    info.deterministic = op->deterministic;
    info.has_bodies = op->control_flow != nullptr;
    info.packs_weights = op->pack != nullptr;
    info.gradient = gradient_of(*op);
    operators.push_back(std::move(info));
  }
  std::sort(operators.begin(), operators.end(), [](const OperatorInfo& a, const OperatorInfo& b) {
    return std::tie(a.domain, a.name) < std::tie(b.domain, b.name);
  });
  return operators;
}

}  // namespace plimsoll
