// What goes around RecurrentGradient.
#include "ops/recurrent_gradient.h"

#include <algorithm>

#include "ops/recurrent.h"

namespace plimsoll {
namespace {

// What every gradient of this family asks of the forward node.
void check(const GradientContext& c) {
  if (c.type(kRecurrentX) != ElementType::kFloat && c.type(kRecurrentX) != ElementType::kDouble)
    c.reject("its gradient is for float and double");
  if (!c.ranked(kRecurrentX) || !c.ranked(kRecurrentR) || !c.dims(kRecurrentR)[2].is_constant())
    c.reject("its gradient needs to know the hidden size");
}

Edge* product(const GradientContext& c, Edge* a, Edge* b, bool trans_a, bool trans_b) {
  return c.own_op("FusedMatMul", {a, b},
                  c.attributes().set("trans_a", int64_t{trans_a}).set("trans_b", int64_t{trans_b}));
}

Edge* slice(const GradientContext& c, Edge* edge, int64_t begin, int64_t end) {
  return c.op("Slice", {edge, c.build.integers({begin}), c.build.integers({end}), c.build.integers({-1})});
}

}  // namespace

void gradient_recurrent(GradientContext& c, std::string_view cell) {
  const auto& a = c.attrs<RecurrentAttrs>();
  check(c);
  // To and from the order of time, where the batch comes first.
  const auto moved = [&](Edge* edge, std::initializer_list<int64_t> perm) {
    if (edge == nullptr || !a.batch_first) return edge;
    return c.op("Transpose", {edge},
                c.attributes().set("perm", std::span<const int64_t>(perm.begin(), perm.size())));
  };
  const int64_t hidden = c.dims(kRecurrentR)[2].value(), gates = a.kind->gates, width = gates * hidden;
  const bool late = cell == "gru" && a.linear_before_reset, early = cell == "gru" && !late;
  Edge *x = moved(c.in(kRecurrentX), {1, 0, 2}), *w = c.in(kRecurrentW), *last_bias = nullptr;
  Edge* rows = c.op("Flatten", {x}, c.attributes().set("axis", int64_t{2}));
  Edge* p = product(c, rows, w, false, true);  // [directions, steps * batch, width]
  if (c.has_input(kRecurrentB)) {
    Edge *b = c.in(kRecurrentB), *of_r = slice(c, b, width, 2 * width);
    if (late) {
      last_bias = slice(c, of_r, 2 * hidden, width);
      std::vector<float> joint(static_cast<size_t>(width), 0.0f);
      std::fill_n(joint.begin(), 2 * hidden, 1.0f);
      const int64_t dims[] = {width};
      of_r = c.op("Mul", {of_r, c.build.reals("joint", c.type(kRecurrentX), dims, joint)});
    }
    Edge* both = c.op("Add", {slice(c, b, 0, width), of_r});
    p = c.op("Add", {p, c.op("Unsqueeze", {both, c.build.integers({1})})});
  }
  Edge* sizes = c.op("Shape", {x}, c.attributes().set("start", int64_t{0}).set("end", int64_t{2}));
  Edge* shape = c.op("Concat", {c.build.integers({a.directions}), sizes, c.build.integers({width})},
                     c.attributes().set("axis", int64_t{0}));
  p = c.op("Reshape", {p, shape});
  const bool lstm = cell == "lstm", looks = lstm && c.has_input(kRecurrentPeephole);
  const auto state = [&](Edge* edge) { return moved(edge, {1, 0, 2}); };
  Edge* const inputs[] = {p,
                          c.in(kRecurrentR),
                          last_bias,
                          state(c.in(kRecurrentInitialH)),
                          lstm ? state(c.in(kRecurrentInitialC)) : nullptr,
                          moved(c.gradient(0), {1, 2, 0, 3}),
                          state(c.gradient(1)),
                          lstm ? state(c.gradient(2)) : nullptr,
                          looks ? c.in(kRecurrentPeephole) : nullptr,
                          c.in(kRecurrentLengths)};
  std::vector<int64_t> kinds;
  std::vector<float> alphas, betas;
  for (size_t i = 0; i < static_cast<size_t>(a.directions) * a.kind->functions; ++i) {
    kinds.push_back(static_cast<int64_t>(a.functions[i].kind));
    alphas.push_back(a.functions[i].alpha);
    betas.push_back(a.functions[i].beta);
  }
  const AttributeList attributes = c.attributes()
                                       .set("cell", cell)
                                       .set("reverse", int64_t{a.reverse})
                                       .set("linear_before_reset", int64_t{late})
                                       .set("input_forget", int64_t{a.input_forget})
                                       .set("clip", a.clip)
                                       .set("functions", std::span<const int64_t>(kinds))
                                       .set("alphas", std::span<const float>(alphas))
                                       .set("betas", std::span<const float>(betas));
  const size_t outputs = cell == "rnn" ? 3 : early || looks ? 5 : 4;
  const Node* node = c.build.emit(kPlimsollDomain, "RecurrentGradient", inputs, attributes.list(), outputs);
  const auto flat = [&](Edge* edge, int64_t last) {
    return c.op("Reshape", {edge, c.build.integers({0, -1, last})});
  };
  Edge *dp = flat(node->outputs[kToP], width), *dr = cell == "gru" ? flat(node->outputs[kToR], width) : dp;
  if (c.wants(kRecurrentX)) {
    Edge* dx = c.op("ReduceSum", {product(c, dp, w, false, false), c.build.integers({0})},
                    c.attributes().set("keepdims", int64_t{0}));
    c.set(kRecurrentX, moved(c.op("Reshape", {dx, c.shape_of(x)}), {1, 0, 2}));
  }
  if (c.wants(kRecurrentW)) c.set(kRecurrentW, product(c, dp, rows, true, false));
  Edge* states = flat(node->outputs[kStates], hidden);
  if (c.wants(kRecurrentR) && early) {
    Edge* joint = product(c, slice(c, dr, 0, 2 * hidden), states, true, false);
    Edge* last =
        product(c, slice(c, dr, 2 * hidden, width), flat(node->outputs[kReset], hidden), true, false);
    c.set(kRecurrentR, c.op("Concat", {joint, last}, c.attributes().set("axis", int64_t{1})));
  } else if (c.wants(kRecurrentR)) {
    c.set(kRecurrentR, product(c, dr, states, true, false));
  }
  if (c.wants(kRecurrentB)) {
    const auto sum = [&](Edge* edge) {
      return c.op("ReduceSum", {edge, c.build.integers({1})}, c.attributes().set("keepdims", int64_t{0}));
    };
    c.set(kRecurrentB, c.op("Concat", {sum(dp), sum(dr)}, c.attributes().set("axis", int64_t{1})));
  }
  c.set(kRecurrentInitialH, state(node->outputs[kToH0]));
  if (lstm) c.set(kRecurrentInitialC, state(node->outputs[kToC0]));
  if (looks) c.set(kRecurrentPeephole, node->outputs[kToPeephole]);
}

}  // namespace plimsoll
