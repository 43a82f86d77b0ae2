#include "random_graph.h"

#include <algorithm>

namespace plimsoll {

RandomGraph::Item RandomGraph::convolved(const Item& x) {
  const int64_t channels = x.shape[1];
  const size_t spatial = x.shape.size() - 2;
  const bool depthwise = chance(0.25);
  const int64_t group = depthwise ? channels : channels % 2 == 0 && chance(0.3) ? 2 : 1;
  const int64_t out = depthwise ? channels * between(1, 2) : group * between(1, 4);
  Shape kernel(spatial), strides(spatial, 1), dilations(spatial, 1), pads(2 * spatial, 0),
      shape = {x.shape[0], out};
  for (size_t i = 0; i < spatial; ++i) {
    kernel[i] = between(1, std::min<int64_t>(3, x.shape[i + 2]));
    if (chance(0.3)) strides[i] = 2;
    if (chance(0.15) && (kernel[i] - 1) * 2 + 1 <= x.shape[i + 2]) dilations[i] = 2;
    if (chance(0.5)) {
      pads[i] = between(0, kernel[i] - 1);
      pads[i + spatial] = between(0, kernel[i] - 1);
    }
    const int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    shape.push_back((x.shape[i + 2] + pads[i] + pads[i + spatial] - extent) / strides[i] + 1);
  }
  Shape weight = {out, channels / group};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  std::vector<Attribute> attributes;
  if (group != 1) attributes.push_back(attribute("group", group));
  if (chance(0.5)) attributes.push_back(attribute("kernel_shape", kernel));
  if (strides != Shape(spatial, 1)) attributes.push_back(attribute("strides", strides));
  if (dilations != Shape(spatial, 1)) attributes.push_back(attribute("dilations", dilations));
  if (pads != Shape(2 * spatial, 0)) attributes.push_back(attribute("pads", pads));
  Edge* w = random_constant(weight, -0.6f, 0.6f);
  if (chance(0.1)) w = node("Tanh", {w});
  std::vector<Edge*> inputs = {x.edge, w};
  if (chance(0.5)) inputs.push_back(random_constant({out}));
  return {node("Conv", inputs, attributes), shape};
}

RandomGraph::Item RandomGraph::normalized(const Item& x) {
  const Shape channels = {x.shape[1]};
  std::vector<Attribute> attributes;
  if (chance(0.5)) attributes.push_back(attribute("epsilon", 0.001f));
  return {node("BatchNormalization",
               {x.edge, random_constant(channels), random_constant(channels), random_constant(channels),
                random_constant(channels, 0.5f, 2.0f)},
               attributes),
          x.shape};
}

void RandomGraph::conv() {
  const Item x = image();
  if (x.edge == nullptr) return;
  const Item y = convolved(x);
  keep(y.edge, y.shape);
}

void RandomGraph::conv_block() {
  const Item x = image();
  if (x.edge == nullptr) return;
  Item y = convolved(x);
  if (chance(0.05)) keep(y.edge, y.shape);
  if (chance(0.5)) y = normalized(y);
  if (chance(0.3)) y.edge = node(one_of({"Mul", "Add", "Sub"}), {y.edge, per_channel(y.shape, -1, 1)});
  if (chance(0.4)) {
    const Item z = any([&](const Item& i) { return i.shape == y.shape; });
    if (z.edge != nullptr)
      y.edge = chance(0.5) ? node("Add", {y.edge, z.edge}) : node("Add", {z.edge, y.edge});
  }
  if (chance(0.6)) y = activated(y);
  keep(y.edge, y.shape);
}

// On an image that is large enough to be computed by bands of rows; only its means are kept.
void RandomGraph::mobile_block() {
  const Item x = any([](const Item& i) { return i.shape.size() == 4 && i.shape[0] * i.shape[1] > 0; });
  if (x.edge == nullptr) return;
  const int64_t batch = x.shape[0], size = 68, wide = between(28, 33);
  int64_t channels = x.shape[1];
  Edge* y = node("Mul", {node("GlobalMaxPool", {x.edge}), random_constant({batch, channels, size, size})});
  const auto convolve = [&](int64_t out, int64_t kernel, int64_t group) {
    const Shape pads(4, kernel / 2), strides(2, kernel > 1 && chance(0.3) ? 2 : 1);
    y = node("Conv", {y, random_constant({out, channels / group, kernel, kernel}, -0.3f, 0.3f)},
             {attribute("pads", pads), attribute("strides", strides), attribute("group", group)});
    channels = out;
    if (chance(0.5)) y = node(one_of({"Relu", "Sigmoid", "Tanh"}), {y});
  };
  convolve(wide, 1, 1);
  if (chance(0.4)) {  // pieces of one map, as U-Nets have them
    y = node("Concat", {y, node("Neg", {y})}, {attribute("axis", int64_t{1})});
    channels *= 2;
    convolve(between(1, 9), chance(0.5) ? 3 : 1, 1);
    convolve(wide, 1, 1);
  }
  convolve(wide, chance(0.5) ? 3 : 5, wide);
  if (chance(0.7)) convolve(between(1, 6), 1, 1);
  keep(node("GlobalAveragePool", {y}), {batch, channels, 1, 1});
}

void RandomGraph::conv_transpose() {
  const Item x = ranked(3, 4);
  if (x.edge == nullptr || count(x.shape) > 400) return;
  const size_t spatial = x.shape.size() - 2;
  const int64_t group = x.shape[1] % 2 == 0 && chance(0.3) ? 2 : 1, out = between(1, 3);
  Shape kernel(spatial), strides(spatial), shape = {x.shape[0], out * group};
  for (size_t i = 0; i < spatial; ++i) {
    kernel[i] = between(1, 3);
    strides[i] = between(1, 2);
    shape.push_back((x.shape[i + 2] - 1) * strides[i] + kernel[i]);
  }
  Shape weight = {x.shape[1], out};
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  std::vector<Edge*> inputs = {x.edge, random_constant(weight, -0.6f, 0.6f)};
  if (chance(0.5)) inputs.push_back(random_constant({out * group}));
  Item y = {node("ConvTranspose", inputs, {attribute("group", group), attribute("strides", strides)}), shape};
  if (chance(0.4)) y.edge = node("Add", {y.edge, per_channel(y.shape, -1, 1)});
  if (chance(0.3)) y = normalized(y);
  keep(y.edge, y.shape);
}

void RandomGraph::batch_normalization() {
  const Item x = ranked(2, 5);
  if (x.edge == nullptr) return;
  Item y = normalized(x);
  if (chance(0.4)) y = activated(y);
  keep(y.edge, y.shape);
}

void RandomGraph::affine() {
  const Item x = ranked(2, 5);
  if (x.edge == nullptr) return;
  Item y = x;
  for (int64_t i = between(1, 3); i > 0; --i) {
    const std::string op = one_of({"Mul", "Add", "Sub", "Div"});
    Edge* c = chance(0.6) ? per_channel(x.shape, 0.5f, 2.0f) : scalar(0.75f);
    y.edge = op != "Div" && chance(0.3) ? node(op, {c, y.edge}) : node(op, {y.edge, c});
  }
  if (chance(0.3)) {
    const Item z = any([&](const Item& i) { return i.shape == y.shape; });
    y.edge = node("Add", {y.edge, z.edge});
  }
  if (chance(0.3)) y = activated(y);
  keep(y.edge, y.shape);
}

void RandomGraph::pool() {
  const Item x = image();
  if (x.edge == nullptr) return;
  const bool is_max = chance(0.5);
  const size_t spatial = x.shape.size() - 2;
  Shape kernel(spatial), strides(spatial, 1), pads(2 * spatial, 0), shape = {x.shape[0], x.shape[1]};
  for (size_t i = 0; i < spatial; ++i) {
    kernel[i] = between(1, std::min<int64_t>(3, x.shape[i + 2]));
    if (chance(0.4)) strides[i] = 2;
    if (chance(0.4)) pads[i] = pads[i + spatial] = between(0, kernel[i] / 2);
    shape.push_back((x.shape[i + 2] + pads[i] + pads[i + spatial] - kernel[i]) / strides[i] + 1);
  }
  std::vector<Attribute> attributes = {attribute("kernel_shape", kernel), attribute("strides", strides),
                                       attribute("pads", pads)};
  if (!is_max && chance(0.3)) attributes.push_back(attribute("count_include_pad", int64_t{1}));
  if (is_max && chance(0.2)) {
    const std::vector<Edge*> outputs = nodes("MaxPool", {x.edge}, 2, attributes);
    keep(outputs[0], shape);
    if (chance(0.5)) keep(node("Cast", {outputs[1]}, {attribute("to", int64_t{1})}), shape);
    return;
  }
  keep(node(is_max ? "MaxPool" : "AveragePool", {x.edge}, attributes), shape);
}

void RandomGraph::global_pool() {
  const Item x = image();
  if (x.edge == nullptr) return;
  Item y = {node(one_of({"GlobalAveragePool", "GlobalMaxPool"}), {x.edge}), x.shape};
  std::fill(y.shape.begin() + 2, y.shape.end(), 1);
  if (chance(0.3)) {  // squeeze and excitation
    const Item z = activated(y);
    keep(node("Mul", {x.edge, z.edge}), x.shape);
    return;
  }
  keep(y.edge, y.shape);
}

void RandomGraph::resize() {
  const Item x = ranked(3, 4);
  if (x.edge == nullptr || count(x.shape) > 600) return;
  std::vector<float> scales(x.shape.size(), 1.0f);
  Shape shape = x.shape;
  for (size_t i = 2; i < scales.size(); ++i) {
    scales[i] = chance(0.7) ? 2.0f : 1.0f;
    shape[i] *= scales[i] == 2.0f ? 2 : 1;
  }
  const auto rank = static_cast<int64_t>(scales.size());
  Edge* roi = opset_ >= 13 ? nullptr : constant({0}, std::vector<float>{});
  std::vector<Edge*> inputs = {x.edge, roi};
  if (chance(0.5)) {
    inputs.push_back(constant({rank}, scales));
  } else {
    inputs.push_back(opset_ >= 13 ? nullptr : constant({0}, std::vector<float>{}));
    inputs.push_back(integers(shape));
  }
  const std::string mode = one_of({"nearest", "linear"});
  std::vector<Attribute> attributes = {attribute("mode", mode == "linear" ? "linear" : "nearest"),
                                       attribute("coordinate_transformation_mode", "asymmetric")};
  if (mode == "nearest") attributes.push_back(attribute("nearest_mode", "floor"));
  keep(node("Resize", inputs, attributes), shape);
}

}  // namespace plimsoll
