#include <algorithm>

#include "train/memory_optimizer.h"

namespace plimsoll {
namespace {

std::string grouped(int64_t number) {
  if (number < 0) return fmt::format("-{}", grouped(-number));
  if (number < 1000) return fmt::format("{}", number);
  return fmt::format("{},{:03}", grouped(number / 1000), number % 1000);
}

const char* level_name(MemoryLevel level) {
  switch (level) {
    case MemoryLevel::kUser:
      return "USER_SPECIFIED";
    case MemoryLevel::kLayers:
      return "TRANSFORMER_LAYERWISE_RECOMPUTE";
    default:
      return "TRANSFORMER_LAYERWISE_RECOMPUTE_WITH_COMPROMISE";
  }
}

std::string detail_of(const ClusterPlan& plan) {
  std::string text;
  for (const ClusterOccurrence& one : plan.occurrences) {
    std::string nodes;
    for (const Node* node : one.nodes) nodes += fmt::format("{}{}", nodes.empty() ? "" : ", ", node->name);
    text += fmt::format("    {} {}: {} bytes stashed, {} kept instead, read {} times behind, layer {}: {}\n",
                        one.on ? "ON " : "OFF", one.node->name, grouped(one.stashed_bytes),
                        grouped(one.kept_bytes), one.readers,
                        one.layer == kNoLayer ? "none" : std::to_string(one.layer), nodes);
  }
  return text;
}

}  // namespace

std::string memory_table(const std::vector<ClusterPlan>& plans, MemoryLevel level, TableDetail detail) {
  const bool any_on =
      std::any_of(plans.begin(), plans.end(), [](const ClusterPlan& plan) { return plan.is_on(); });
  size_t config_width = 7, symbolic_width = 23;
  for (const ClusterPlan& plan : plans) {
    config_width = std::max(config_width, plan.config().size());
    symbolic_width = std::max(symbolic_width, plan.symbolic_bytes.size());
  }
  std::string text = fmt::format("Memory Optimizer     :  {:<3}  :  Memory Optimization Level: [{}]\n",
                                 any_on ? "ON" : "OFF", level_name(level));
  text += fmt::format("{:32}{:<{}}  Freq  Max Saving(Bytes)  {:<{}}  Planned Saving(Bytes)\n", "", "Configs",
                      config_width, "Saving Symbolic(Bytes)", symbolic_width);
  for (size_t i = 0; i < plans.size(); ++i) {
    const ClusterPlan& plan = plans[i];
    text += fmt::format("- {:<18} :  {:<3}  :  {:<{}}  {:<4}  {:<17}  {:<{}}  {}\n",
                        fmt::format("Plan {}", i + 1), plan.is_on() ? "ON" : "OFF", plan.config(),
                        config_width, plan.occurrences.size(), grouped(plan.saved_bytes()),
                        plan.symbolic_bytes, symbolic_width, grouped(plan.planned_saved_bytes));
    if (detail == TableDetail::kDevInfo) text += detail_of(plan);
  }
  return text;
}

}  // namespace plimsoll
