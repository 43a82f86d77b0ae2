#include "graph/gradient.h"

#include <algorithm>

namespace plimsoll {

Edge* real_scalar(GraphBuilder& build, ElementType type, double value) {
  if (type == ElementType::kDouble)
    return build.constant("scalar", type, {}, std::as_bytes(std::span<const double>(&value, 1)));
  const float rounded = static_cast<float>(value);
  return build.reals("scalar", type, {}, std::span<const float>(&rounded, 1));
}

Edge* shape_of(GraphBuilder& build, Edge* edge) {
  if (!edge->facts.is_concrete()) return build.op("Shape", {edge});
  std::vector<int64_t> sizes;
  for (Dim d : edge->facts.type.dims) sizes.push_back(d.value());
  return build.integers(sizes);
}

void GradientContext::set(size_t i, Edge* gradient) {
  if (!wants(i) || gradient == nullptr) return;
  of_inputs_[i] = of_inputs_[i] == nullptr ? gradient : op("Add", {of_inputs_[i], gradient});
}

ElementType GradientContext::gradient_type() const {
  const auto given =
      std::find_if(of_outputs_.begin(), of_outputs_.end(), [](Edge* e) { return e != nullptr; });
  return given == of_outputs_.end() ? ElementType::kFloat : (*given)->facts.type.type;
}

Edge* GradientContext::summed_to(Edge* edge, Edge* like) const {
  const TypeInfo &from = edge->facts.type, &to = like->facts.type;
  if (!from.ranked || !to.ranked) reject("its gradient needs the ranks of what was broadcast");
  const size_t more = from.rank() - to.rank();
  std::vector<int64_t> leading, repeated;
  for (size_t i = 0; i < more; ++i) leading.push_back(static_cast<int64_t>(i));
  for (size_t i = 0; i < to.rank(); ++i) {
    if (from.dims[i + more] == to.dims[i]) continue;
    if (to.dims[i] != Dim(1))
      reject("its gradient needs to know whether dimension {} of '{}', {}, was repeated to {}", i, like->name,
             to.dims[i].to_string(), from.dims[i + more].to_string());
    repeated.push_back(static_cast<int64_t>(i));
  }
  if (!leading.empty())
    edge = op("ReduceSum", {edge, build.integers(leading)}, attributes().set("keepdims", int64_t{0}));
  if (!repeated.empty())
    edge = op("ReduceSum", {edge, build.integers(repeated)}, attributes().set("keepdims", int64_t{1}));
  return edge;
}

}  // namespace plimsoll
