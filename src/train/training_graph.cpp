#include "train/training_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/fail.h"
#include "graph/infer.h"
#include "graph/op_def.h"
#include "train/differentiate.h"
#include "train/losses.h"
#include "train/optimizers.h"
#include "train/training_mode.h"

namespace plimsoll {

bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t at = star; at <= name.size(); ++at) {
    if (matches(rest, name.substr(at))) return true;
  }
  return false;
}

namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const auto& p) { return matches(p, name); });
}

// Masks hold infinities, weights do not.
bool is_finite(const TensorData& data) {
  if (data.type != ElementType::kFloat) return true;
  for (size_t i = 0; i + sizeof(float) <= data.bytes.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, data.bytes.data() + i, sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

class Builder {
 public:
  Builder(Graph& graph, const TrainingOptions& options) : graph_(graph), options_(options) {}

  TrainingGraph build() {
    result_.model_outputs = graph_.outputs.size();
    Edge* prediction = find_prediction();
    result_.has_labels = options_.loss != LossType::kNone;
    Edge* labels = result_.has_labels ? add_labels(graph_, options_, *prediction) : nullptr;
    result_.given_inputs = graph_.inputs.size();
    add_losses(prediction, labels);
    differentiate_loss();
    add_updates();
    list_runs();
    for (Edge* edge : graph_.initializers) {
      if (edge->persistent) result_.states.push_back(edge);
    }
    return std::move(result_);
  }

 private:
  Edge* find_prediction() {
    if (graph_.outputs.empty()) fail(ErrorCode::kInvalidArgument, "training: the model has no outputs");
    if (options_.output.empty()) return graph_.outputs[0];
    for (Edge* edge : graph_.outputs) {
      if (edge->name == options_.output) return edge;
    }
    fail(ErrorCode::kInvalidArgument, "training: there is no output '{}'", options_.output);
  }

  // The loss of training, and where operators differ that of evaluation, in nodes of their own.
  void add_losses(Edge* prediction, Edge* labels) {
    const size_t forward = graph_.nodes.size();
    Edge* evaluated = prediction;
    const bool differs = differs_in_training(graph_);
    if (differs && options_.evaluate) copy_for_evaluation(graph_, std::span<Edge*>(&evaluated, 1));
    if (differs) set_training_mode(graph_, forward);
    const size_t updates = graph_.updated.size();  // of running statistics: they stay last
    loss_ = add_loss(graph_, options_, prediction, labels);
    if (loss_->facts.type.ranked && loss_->facts.type.rank() > 1)
      fail(ErrorCode::kInvalidArgument, "the loss: expected one number, found {} of '{}'",
           to_string(loss_->facts.type), loss_->name);
    Edge* evaluation_loss = evaluated == prediction ? loss_ : add_loss(graph_, options_, evaluated, labels);
    told_loss_ = as_float(loss_);
    insert_outputs(updates, {told_loss_, evaluation_loss == loss_ ? told_loss_ : as_float(evaluation_loss)});
  }

  // What is told of a loss is a float, whatever it is computed in.
  Edge* as_float(Edge* loss) {
    if (loss->facts.type.type == ElementType::kFloat) return loss;
    TrainBuilder build(graph_, "loss");
    return build.op("Cast", {loss}, build.attributes().set("to", static_cast<int64_t>(ElementType::kFloat)));
  }

  // Before the next values of the states.
  void insert_outputs(size_t updates, std::initializer_list<Edge*> edges) {
    for (Edge* edge : edges) graph_.outputs.push_back(edge);
    std::rotate(graph_.outputs.end() - static_cast<ptrdiff_t>(updates + edges.size()),
                graph_.outputs.end() - static_cast<ptrdiff_t>(edges.size()), graph_.outputs.end());
  }

  bool may_be_trained(const Edge& edge) const {
    if (edge.persistent || edge.data == nullptr) return false;
    const ElementType type = edge.data->type;
    if (type != ElementType::kFloat && type != ElementType::kDouble) return false;
    if (matches_any(options_.frozen, edge.name)) return false;
    if (!options_.trainable.empty()) return matches_any(options_.trainable, edge.name);
    return edge.data->view().elements() > 1 && is_finite(*edge.data);
  }

  void differentiate_loss() {
    std::vector<Edge*> candidates;
    for (Edge* edge : graph_.initializers) {
      if (!may_be_trained(*edge)) continue;
      candidates.push_back(edge);
      edge->make_persistent();
    }
    const Cotangent ys[] = {{loss_, nullptr}};
    const std::vector<Edge*> gradients = differentiate(graph_, ys, candidates);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (gradients[i] == nullptr) {
        candidates[i]->persistent = false;
        const TensorData data = *candidates[i]->data;
        candidates[i]->set_data(graph_.arena(), data);
        continue;
      }
      result_.parameters.push_back(candidates[i]);
      gradients_.push_back(gradients[i]);
    }
    for (const std::string& pattern : options_.trainable) {
      const bool found = std::any_of(result_.parameters.begin(), result_.parameters.end(),
                                     [&](const Edge* edge) { return matches(pattern, edge->name); });
      if (!found)
        fail(ErrorCode::kInvalidArgument,
             "training: expected a float weight that the loss depends on, called '{}'; found none", pattern);
    }
    if (result_.parameters.empty())
      fail(ErrorCode::kInvalidArgument, "training: the loss depends on no float weight of the model");
  }

  size_t add_number(std::string_view name, ElementType type) {
    Edge* edge = graph_.add_edge(name);
    edge->facts.type = {ValueKind::kTensor, type, ElementType::kUndefined, true, {}, nullptr};
    graph_.inputs.push_back(edge);
    return graph_.inputs.size() - 1;
  }

  void add_updates() {
    result_.rate = add_number("plimsoll.learning_rate", ElementType::kFloat);
    result_.step = add_number("plimsoll.step", ElementType::kInt64);
    UpdateNumbers numbers{graph_.inputs[result_.rate], graph_.inputs[result_.step], nullptr, nullptr};
    if (options_.keep_gradients) {
      keep_gradients();
      numbers.scale = graph_.inputs[result_.scale];
    } else {
      numbers.guard = told_loss_;
    }
    if (options_.optimizer.max_grad_norm > 0) numbers.scale = add_clipping(numbers.scale);
    first_update_ = graph_.outputs.size();
    for (size_t i = 0; i < result_.parameters.size(); ++i)
      add_optimizer(graph_, options_.optimizer, result_.parameters[i], gradients_[i], numbers);
  }

  // Sums that live from step to step take the gradients' place.
  void keep_gradients() {
    result_.reset = add_number("plimsoll.lazy_reset_grad", ElementType::kBool);
    result_.scale = add_number("plimsoll.gradient_scale", ElementType::kFloat);
    TrainBuilder build(graph_, "accumulate");
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const Edge& parameter = *result_.parameters[i];
      Edge* sum = graph_.add_state(fmt::format("{}_grad.accumulation.buffer", parameter.name),
                                   parameter.data->type, parameter.data->dims, Account::kGradients);
      Edge* inputs[] = {sum, gradients_[i], graph_.inputs[result_.reset]};
      graph_.add_update(sum, build.emit(kPlimsollDomain, "AccumulateGradient", inputs, {})->outputs[0]);
      gradients_[i] = sum;
    }
  }

  Edge* add_clipping(Edge* scale) {
    TrainBuilder build(graph_, "clip");
    std::vector<Edge*> inputs = {scale};
    inputs.insert(inputs.end(), gradients_.begin(), gradients_.end());
    return build
        .emit(kPlimsollDomain, "GradientScale", inputs,
              build.attributes().set("max_norm", options_.optimizer.max_grad_norm).list())
        ->outputs[0];
  }

  void list_runs() {
    const auto loss = static_cast<uint32_t>(result_.model_outputs);
    result_.train = {loss};
    for (size_t i = graph_.visible_outputs(); i < graph_.outputs.size(); ++i) {
      const bool by_optimizer = options_.keep_gradients && i >= first_update_;
      (by_optimizer ? result_.optimize : result_.train).push_back(static_cast<uint32_t>(i));
    }
    for (uint32_t i = 0; i < loss; ++i) result_.evaluate.push_back(i);
    result_.evaluate.push_back(loss + 1);
  }

  Graph& graph_;
  const TrainingOptions& options_;
  TrainingGraph result_;
  Edge *loss_ = nullptr, *told_loss_ = nullptr;
  std::vector<Edge*> gradients_;  // by parameter
  size_t first_update_ = 0;       // output: those of the optimizer begin here
};

}  // namespace

TrainingGraph build_training_graph(Graph& graph, const TrainingOptions& options) {
  return Builder(graph, options).build();
}

}  // namespace plimsoll
