// Gradients: what an operator says of its derivative. Its `gradient` writes nodes that make the gradients of
// its inputs from those of its outputs, when a graph is differentiated (train/differentiate.h): before any
// fusion, after inference, so that facts are on the edges and the passes speed up what is written here too.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "graph/op_def.h"

namespace plimsoll {

// The version in which nodes of ai.onnx are written.
inline constexpr int kGradientOpset = 23;

// A number of any float type, without dimensions.
Edge* real_scalar(GraphBuilder& build, ElementType type, double value);
// An edge's shape as a tensor: a constant where it is known.
Edge* shape_of(GraphBuilder& build, Edge* edge);

// Differentiates graphs inside a node: what the gradient of an operator with bodies uses.
class BodyDifferentiator {
 public:
  virtual ~BodyDifferentiator() = default;
  // Appends nodes to `body` that make the gradients of `xs` from those of `ys`. An x is an edge of the body
  // or of a graph around it. Null where no y depends on x.
  virtual std::vector<Edge*> differentiate(Graph& body, std::span<Edge* const> ys,
                                           std::span<Edge* const> of_ys, std::span<Edge* const> xs) = 0;
};

// What a node with bodies is told beyond its inputs and outputs.
struct BodyGradients {
  BodyDifferentiator* bodies = nullptr;
  std::span<Edge* const> captured;  // edges of graphs around it that bodies use, whose gradients are wanted
  std::span<Edge*> of_captured;     // parallel; what is not given is zeros
};

// New nodes are resolved and inferred as they are made: their shapes can be looked at. What is written may
// use every input and output of the node; what it uses is kept alive until then, so take the smaller or the
// more shared value where there is a choice (Sigmoid's output, not its input), and never a value that only
// shape arithmetic needs.
class GradientContext : public NodeContext {
 public:
  // `wanted` and `of_outputs` are parallel to the node's inputs and outputs.
  GradientContext(const Node& node, std::span<const Facts> inputs, std::span<Facts> outputs,
                  GraphBuilder& graph_builder, std::span<Edge* const> of_outputs,
                  std::span<const bool> wanted, std::span<Edge*> of_inputs,
                  const BodyGradients& body_gradients = {})
      : NodeContext(node, inputs, outputs),
        build(graph_builder),
        inside(body_gradients),
        of_outputs_(of_outputs),
        wanted_(wanted),
        of_inputs_(of_inputs) {}

  // Null where it is absent.
  Edge* in(size_t i) const { return node_.input(i); }
  Edge* out(size_t i) const { return i < node_.outputs.size() ? node_.outputs[i] : nullptr; }
  // Of output i, in its type and shape. Null where nothing that is differentiated depends on it: of a node
  // with one output it is there.
  Edge* gradient(size_t i = 0) const { return i < of_outputs_.size() ? of_outputs_[i] : nullptr; }
  // Whether the gradient of input i is asked for: of floats that a parameter stands behind.
  bool wants(size_t i) const { return i < wanted_.size() && wanted_[i]; }
  // Gives the gradient of input i, in its type and shape; what is given twice is added. An input that is
  // wanted and is given nothing has a gradient of zeros.
  void set(size_t i, Edge* gradient);

  // A node of ai.onnx with one new output, which is returned.
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs) const {
    return build.op(op_type, inputs);
  }
  Edge* op(std::string_view op_type, std::initializer_list<Edge*> inputs,
           const AttributeList& attributes) const {
    return build.op(op_type, inputs, attributes);
  }
  // One of ours (ai.plimsoll), for what ONNX has no operator for.
  Edge* own_op(std::string_view op_type, std::initializer_list<Edge*> inputs,
               const AttributeList& attributes) const {
    return build
        .emit(kPlimsollDomain, op_type, std::span<Edge* const>(inputs.begin(), inputs.size()),
              attributes.list())
        ->outputs[0];
  }
  AttributeList attributes() const { return build.attributes(); }
  Edge* scalar(ElementType type, double value) const { return real_scalar(build, type, value); }
  Edge* scalar(double value) const { return scalar(gradient_type(), value); }
  Edge* shape_of(Edge* edge) const { return plimsoll::shape_of(build, edge); }
  // Undoes broadcasting: sums over what was repeated to reach the edge's shape. Dimensions that may or may
  // not have been repeated, because nothing is known of them, are an Error (kInvalidModel).
  Edge* summed_to(Edge* edge, Edge* like) const;
  // The gradient of input i, summed to its shape.
  void set_broadcast(size_t i, Edge* edge) { set(i, summed_to(edge, in(i))); }

  GraphBuilder& build;
  const BodyGradients inside;

 private:
  // Of the first output that has one.
  ElementType gradient_type() const;

  std::span<Edge* const> of_outputs_;
  std::span<const bool> wanted_;
  std::span<Edge*> of_inputs_;
};

// For operators whose outputs are integers, or constant wherever they are differentiable (Shape, ArgMax,
// Floor, Greater): gradients of zeros.
inline void no_gradient(GradientContext&) {}

}  // namespace plimsoll
