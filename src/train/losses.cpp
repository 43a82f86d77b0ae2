#include "train/losses.h"

#include "base/fail.h"
#include "graph/gradient.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

bool is_by_class(LossType loss) {
  return loss == LossType::kCrossEntropy || loss == LossType::kNLL;
}

// Scores of sequences have the classes last, everything else has them second.
size_t class_axis(const TrainingOptions& options, const Edge& prediction) {
  const size_t rank = prediction.facts.type.rank();
  const size_t axis = options.class_axis >= 0 ? static_cast<size_t>(options.class_axis) : rank == 3 ? 2 : 1;
  if (!prediction.facts.type.ranked || rank < 2 || axis < 1 || axis >= rank)
    fail(ErrorCode::kInvalidArgument,
         "the loss: expected scores with classes in dimension {}, found {} of '{}'", axis,
         to_string(prediction.facts.type), prediction.name);
  return axis;
}

class LossWriter {
 public:
  LossWriter(Graph& graph, const TrainingOptions& options, Edge* prediction, Edge* labels)
      : options_(options), build_(graph, "loss"), x_(prediction), y_(labels) {}

  Edge* write() {
    switch (options_.loss) {
      case LossType::kCrossEntropy:
        return by_class("SoftmaxCrossEntropyLoss");
      case LossType::kNLL:
        return by_class("NegativeLogLikelihoodLoss");
      case LossType::kMSE:
        return reduced(square(difference()));
      case LossType::kL1:
        return reduced(op("Abs", {difference()}));
      case LossType::kSmoothL1:
        return reduced(op("Div", {huber(), number(options_.loss_beta)}));
      case LossType::kHuber:
        return reduced(huber());
      case LossType::kBCE:
        return reduced(op("Neg", {entropy()}));
      case LossType::kBCEWithLogits:
        return reduced(entropy_of_logits());
      case LossType::kKLDiv:
        return reduced(divergence());
      case LossType::kNone:
        break;
    }
    return x_;
  }

 private:
  Edge* op(std::string_view type, std::initializer_list<Edge*> inputs) { return build_.op(type, inputs); }
  Edge* number(double value) {
    const float rounded = static_cast<float>(value);
    const ElementType type = x_->facts.type.type;
    if (type == ElementType::kDouble)
      return build_.constant("scalar", type, {}, std::as_bytes(std::span<const double>(&value, 1)));
    return build_.reals("scalar", type, {}, std::span<const float>(&rounded, 1));
  }
  Edge* difference() { return op("Sub", {x_, y_}); }
  Edge* square(Edge* edge) { return op("Mul", {edge, edge}); }

  Edge* by_class(std::string_view type) {
    Edge *scores = x_, *classes = y_;
    const size_t axis = class_axis(options_, *x_), rank = x_->facts.type.rank();
    if (axis != 1) {
      if (axis + 1 != rank)
        fail(ErrorCode::kNotImplemented, "the loss: classes in dimension {} of {}: expected 1 or the last",
             axis, rank);
      const Dim count = x_->facts.type.dims[axis];
      if (!count.is_constant())
        fail(ErrorCode::kNotImplemented, "the loss: expected a fixed number of classes, found {}",
             count.to_string());
      scores = op("Reshape", {x_, build_.integers({-1, count.value()})});
      classes = op("Reshape", {y_, build_.integers({-1})});
    }
    const bool mean = options_.reduction != LossReduction::kSum;
    return build_.op(type, {scores, classes},
                     build_.attributes()
                         .set("reduction", mean ? std::string_view("mean") : std::string_view("sum"))
                         .set("ignore_index", options_.ignore_index));
  }

  // 0.5 d^2 below beta, beta (|d| - beta / 2) above.
  Edge* huber() {
    Edge *d = difference(), *size = op("Abs", {d});
    const double beta = options_.loss_beta;
    if (!(beta > 0)) fail(ErrorCode::kInvalidArgument, "loss_beta: expected more than 0, found {}", beta);
    Edge* near = op("Mul", {square(d), number(0.5)});
    Edge* far = op("Mul", {op("Sub", {size, number(beta / 2)}), number(beta)});
    return op("Where", {op("Less", {size, number(beta)}), near, far});
  }

  // y log x + (1 - y) log(1 - x), with logarithms of at least -100, as PyTorch has them.
  Edge* entropy() {
    const auto log = [&](Edge* edge) { return op("Max", {op("Log", {edge}), number(-100)}); };
    Edge* yes = op("Mul", {y_, log(x_)});
    Edge* no = op("Mul", {op("Sub", {number(1), y_}), log(op("Sub", {number(1), x_}))});
    return op("Add", {yes, no});
  }

  // max(x, 0) - x y + log(1 + exp(-|x|)): no exponent of a positive number.
  Edge* entropy_of_logits() {
    Edge* rest = op("Log", {op("Add", {op("Exp", {op("Neg", {op("Abs", {x_})})}), number(1)})});
    return op("Add", {op("Sub", {op("Relu", {x_}), op("Mul", {x_, y_})}), rest});
  }

  // y (log y - x), which is 0 where y is.
  Edge* divergence() {
    Edge* is_none = op("Equal", {y_, number(0)});
    Edge* log = op("Log", {op("Where", {is_none, number(1), y_})});
    return op("Mul", {y_, op("Sub", {log, x_})});
  }

  Edge* reduced(Edge* edge) {
    const auto flat = build_.attributes().set("keepdims", int64_t{0});
    if (options_.reduction == LossReduction::kMean) return build_.op("ReduceMean", {edge}, flat);
    Edge* sum = build_.op("ReduceSum", {edge}, flat);
    if (options_.reduction == LossReduction::kSum) return sum;
    Edge* shape = op("Shape", {x_});
    Edge* batch = build_.op("Gather", {shape, build_.scalar(int64_t{0})});
    Edge* count =
        build_.op("Cast", {batch}, build_.attributes().set("to", static_cast<int64_t>(x_->facts.type.type)));
    return op("Div", {sum, count});
  }

  const TrainingOptions& options_;
  TrainBuilder build_;
  Edge *x_, *y_;
};

}  // namespace

TrainBuilder::TrainBuilder(Graph& graph, std::string_view prefix)
    : GraphBuilder(graph, prefix, [](Node& node, BumpArena& arena) { resolve(node, arena); }) {}

void TrainBuilder::added(Node& node) {
  if (node.domain.empty()) node.opset = kGradientOpset;
}

Edge* add_labels(Graph& graph, const TrainingOptions& options, const Edge& prediction) {
  const TypeInfo& type = prediction.facts.type;
  for (const Edge* input : graph.inputs) {
    if (input->name == options.labels)
      fail(ErrorCode::kInvalidArgument, "the model has an input '{}' already: name the labels otherwise",
           options.labels);
  }
  Edge* labels = graph.add_edge(options.labels);
  labels->facts.type = type;
  if (is_by_class(options.loss)) {
    std::vector<Dim> dims(type.dims.begin(), type.dims.end());
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(class_axis(options, prediction)));
    labels->facts.type.type = ElementType::kInt64;
    labels->facts.type.dims = graph.arena().copy(dims);
  }
  graph.inputs.push_back(labels);
  return labels;
}

Edge* add_loss(Graph& graph, const TrainingOptions& options, Edge* prediction, Edge* labels) {
  return LossWriter(graph, options, prediction, labels).write();
}

}  // namespace plimsoll
