// Integers with scales from calibration.
#pragma once

#include <map>
#include <optional>

#include "quantize/rewriter.h"

namespace plimsoll {

// What calibration found of a value; of float8 also its deviation.
struct ValueStatistics {
  RealRange range;
  float deviation = 0;
  bool has_infinities = false;  // then nothing else is known, and integers are no way to hold it
};
using Statistics = std::map<std::string, ValueStatistics, std::less<>>;

struct StaticOptions {
  NodeFilter filter;  // of op_types, those of static_op_types() if there are none
  ElementType weight_type = ElementType::kInt8, activation_type = ElementType::kUint8;
  bool per_channel = false, reduce_range = false;
  std::optional<bool> weight_symmetric;
  bool activation_symmetric = false, activation_restricted = false;
  bool force_all = false, constant_weights_only = false;
  float least_range = 0;
  // Of QDQ.
  bool quantize_bias = true, pair_for_weights = false, dedicated_pairs = false, keep_activations = false;
  bool microsoft_domain = false, adjust_weights_for_bias = true;
  int64_t block_size = 0;  // not 0: so many elements of a weight share a scale, along its axis or the first
  std::set<std::string, std::less<>> output_excluded;        // operators whose outputs stay floats
  std::map<std::string, int64_t, std::less<>> channel_axes;  // by operator
};

// The operators that are quantized if nobody says which.
const std::set<std::string, std::less<>>& static_op_types();
// Completes the options and checks them. Throws kInvalidArgument.
void settle_static_options(const Graph& graph, bool qdq, StaticOptions& options);
// Names of the values whose statistics are needed: floats that go into or come out of such operators.
std::vector<std::string> values_to_calibrate(const Graph& graph, const StaticOptions& options);

// Pairs of QuantizeLinear and DequantizeLinear around the operators; weights are integers behind a
// DequantizeLinear.
void quantize_qdq(QuantizeContext& context, const StaticOptions& options, Statistics statistics);
// Operators on integers: QLinearConv, QLinearMatMul, QGemm, ...
void quantize_qoperator(QuantizeContext& context, const StaticOptions& options, Statistics statistics);

// What both have: parameters of activations, weights and biases.
class StaticRewriter : public Rewriter {
 public:
  StaticRewriter(QuantizeContext& context, const StaticOptions& options, Statistics statistics);

 protected:
  bool wants(const Node& node) const {
    return (node.domain.empty() || node.domain == "com.microsoft") && options_.filter.wants(node);
  }
  const ValueStatistics* statistics_of(const Edge* value) const;
  // Whether the node takes or gives a value, or takes a constant that is no weight of it, with infinities in
  // it, as masks of attention have: it stays as it is.
  bool touches_infinities(const Node& node);
  bool holds_infinities(const Edge& constant);
  // Of an activation; null if calibration knows nothing of it.
  std::optional<LinearParameters> activation_parameters(const Edge* value) const;
  struct ScaleEdges {
    Edge *scale = nullptr, *zero_point = nullptr;
    LinearParameters parameters;
  };
  // NAME_scale and NAME_zero_point of an activation, made once.
  const ScaleEdges* activation_scale(const Edge* value);
  WeightRules weight_rules(bool is_weight, bool per_channel) const;

  // NAME_quantized, NAME_quantized_scale and NAME_quantized_zero_point of a bias times beta, in 32 bits: its
  // scale is that of the input times that of the weight.
  QuantizedValue quantize_bias(const Edge& bias, const std::string& name, float input_scale,
                               std::span<const float> weight_scales, float beta);
  // Scales that are large enough for the bias to fit into 32 bits. True if one had to grow.
  bool adjust_for_bias(const Edge& bias, float input_scale, std::span<LinearParameters> weights);

  // A node that uses a value, once per use, as the model was; once for all that its bodies do with it.
  const std::vector<Node*>& users(const Edge* value) const;
  bool is_output(const Edge* value) const { return outputs_.count(value) > 0; }
  bool is_input(const Edge* value) const { return inputs_.count(value) > 0; }
  // An activation that only keeps its output from what the range of it has not: Relu, and Clip from 0 or
  // less.
  bool is_range_only(const Node& node) const;

  const StaticOptions& options_;

 private:
  void pass_ranges_back();

  Statistics statistics_;
  std::unordered_map<const Edge*, bool> infinite_;  // constants that were looked at
  std::unordered_map<const Edge*, ScaleEdges> scales_;
  std::unordered_map<const Edge*, std::vector<Node*>> users_;
  std::set<const Edge*> inputs_, outputs_;
};

}  // namespace plimsoll
