#include "random_graph.h"

#include <algorithm>

namespace plimsoll {

void RandomGraph::concat() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const auto rank = static_cast<int64_t>(x.shape.size());
  const int64_t axis = chance(0.5) && rank > 1 ? 1 : between(0, rank - 1);
  std::vector<Edge*> inputs = {x.edge};
  Shape shape = x.shape;
  for (int64_t i = between(0, 2); i >= 0; --i) {
    Item y = any([&](const Item& item) {
      if (item.shape.size() != x.shape.size()) return false;
      Shape other = item.shape;
      other[static_cast<size_t>(axis)] = x.shape[static_cast<size_t>(axis)];
      return other == x.shape;
    });
    if (chance(0.2)) {
      Shape dims = x.shape;
      dims[static_cast<size_t>(axis)] = between(1, 3);
      y = {random_constant(dims), dims};
    }
    inputs.push_back(y.edge);
    shape[static_cast<size_t>(axis)] += y.shape[static_cast<size_t>(axis)];
  }
  if (chance(0.1)) inputs.resize(1), shape = x.shape;
  if (count(shape) > kMostElements) return;
  keep(node("Concat", inputs, {attribute("axis", chance(0.2) ? axis - rank : axis)}), shape);
}

void RandomGraph::split() {
  const Item x = any([](const Item& i) { return !i.shape.empty() && i.shape.size() <= 5; });
  if (x.edge == nullptr) return;
  const auto rank = static_cast<int64_t>(x.shape.size());
  const int64_t axis = between(0, rank - 1), size = x.shape[static_cast<size_t>(axis)];
  if (size < 2) return;
  Shape sizes;
  for (int64_t left = size; left > 0 && sizes.size() < 3;) {
    sizes.push_back(sizes.size() == 2 ? left : between(1, left));
    left -= sizes.back();
  }
  std::vector<Attribute> attributes = {attribute("axis", chance(0.2) ? axis - rank : axis)};
  std::vector<Edge*> inputs = {x.edge};
  if (opset_ < 13) {
    attributes.push_back(attribute("split", sizes));
  } else {
    inputs.push_back(integers(sizes));
  }
  const std::vector<Edge*> outputs = nodes("Split", inputs, sizes.size(), attributes);
  for (size_t i = 0; i < outputs.size(); ++i) {
    Shape shape = x.shape;
    shape[static_cast<size_t>(axis)] = sizes[i];
    keep(outputs[i], shape);
  }
}

void RandomGraph::slice() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  Shape starts, ends, axes, steps, shape = x.shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (!chance(0.5)) continue;
    const int64_t size = x.shape[i];
    if (size == 0) continue;
    int64_t from = between(0, size - 1), to = between(from + 1, size), by = chance(0.3) ? 2 : 1;
    if (chance(0.3)) from = 0, to = size;
    const auto rank = static_cast<int64_t>(x.shape.size());
    axes.push_back(chance(0.2) ? static_cast<int64_t>(i) - rank : static_cast<int64_t>(i));
    if (chance(0.15)) {  // backwards
      starts.push_back(to - 1);
      ends.push_back(from - 1 - (from == 0 ? size + 5 : 0));
      steps.push_back(-by);
    } else {
      starts.push_back(chance(0.2) ? from - size : from);
      ends.push_back(to == size ? (chance(0.5) ? int64_t{1} << 62 : to) : chance(0.2) ? to - size : to);
      steps.push_back(by);
    }
    shape[i] = (to - from + by - 1) / by;
  }
  if (axes.empty()) return;
  std::vector<Edge*> inputs = {x.edge, integers(starts), integers(ends), integers(axes)};
  if (std::any_of(steps.begin(), steps.end(), [](int64_t s) { return s != 1; }) || chance(0.3))
    inputs.push_back(integers(steps));
  keep(node("Slice", inputs), shape);
}

void RandomGraph::pad() {
  const Item x = ranked(1, 5);
  if (x.edge == nullptr) return;
  const std::string mode = one_of({"constant", "constant", "reflect", "edge"});
  const size_t rank = x.shape.size();
  Shape pads(2 * rank, 0), shape = x.shape;
  for (size_t i = 0; i < rank; ++i) {
    if (!chance(0.5) || (mode == "reflect" && x.shape[i] < 2) || x.shape[i] == 0) continue;
    pads[i] = between(0, 1);
    pads[i + rank] = between(0, 1);
    if (mode == "constant" && chance(0.1) && x.shape[i] > 1) pads[i] = -1;
    shape[i] += pads[i] + pads[i + rank];
  }
  if (count(shape) > kMostElements) return;
  std::vector<Edge*> inputs = {x.edge, integers(pads)};
  if (mode == "constant" && chance(0.5)) inputs.push_back(constant({}, std::vector<float>{0.5f}));
  const char* name = mode == "constant" ? "constant" : mode == "edge" ? "edge" : "reflect";
  keep(node("Pad", inputs, {attribute("mode", name)}), shape);
}

void RandomGraph::gather() {
  const Item x = ranked(1, 4);
  if (x.edge == nullptr) return;
  const auto axis = static_cast<size_t>(between(0, static_cast<int64_t>(x.shape.size()) - 1));
  const int64_t size = x.shape[axis];
  if (size == 0) return;
  Shape indices(static_cast<size_t>(between(1, 3)));
  for (int64_t& i : indices) i = between(-size, size - 1);
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  Edge* list = nullptr;
  if (chance(0.3)) {
    list = constant({}, std::vector<int64_t>{indices[0]});
  } else {
    list = integers(indices);
    shape.push_back(static_cast<int64_t>(indices.size()));
  }
  shape.insert(shape.end(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, x.shape.end());
  keep(node("Gather", {x.edge, list}, {attribute("axis", static_cast<int64_t>(axis))}), shape);
}

}  // namespace plimsoll
