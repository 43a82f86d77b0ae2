// A convolution by channels that sees only what came before: the rows that the next call needs are its state.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kWeights = 1, kBias = 2, kPast = 3;

struct CausalConvAttrs {
  bool swish = false;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CausalConvAttrs>();
  const std::string_view activation = c.text("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    c.reject("attribute 'activation': expected none, silu or swish, found '{}'", activation);
  a->swish = activation != "none";
  if (const int64_t axes = c.integer("ndim", 1); axes != 1)
    fail(ErrorCode::kNotImplemented, "{}: ndim {}, whose state is not described", c.node().label(), axes);
  if (const int64_t window = c.integer("state_window", 0); window != 0)
    fail(ErrorCode::kNotImplemented, "{}: state_window {}", c.node().label(), window);
  return a;
}

void infer(InferContext& c) {
  infer_like_first(c, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16),
                   {kWeights, kBias, kPast});
  c.expect_rank(kX, 3, 3);
  c.expect_rank(kWeights, 3, 3);
  if (!c.ranked(kX) || !c.ranked(kWeights)) return c.set_unranked_output(1, c.type(kX));
  const auto x = c.dims(kX), w = c.dims(kWeights);
  if (w[2].is_constant() && w[2].value() < 1) c.reject("input 1: expected weights, found none");
  expect_dims(c, kWeights, {x[1], Dim(1), w[2]});
  if (c.has_input(kBias)) expect_dims(c, kBias, {x[1]});
  const std::vector<Dim> state = {x[0], x[1], w[2] - Dim(1)};
  if (c.has_input(kPast)) expect_dims(c, kPast, state);
  c.set_output(1, c.type(kX), state);
}

Edge* size_of(const DecomposeContext& c, Edge* edge, int64_t first, int64_t end) {
  return c.op("Shape", {edge}, c.attributes().set("start", first).set("end", end));
}

Edge* numbers_below(const DecomposeContext& c, Edge* count) {
  Edge* end = c.op("Squeeze", {count, c.build.integers({0})});
  return c.op("Range", {c.build.scalar(int64_t{0}), end, c.build.scalar(int64_t{1})});
}

// Conv wants to know the number of its groups. Where it is not declared, all windows are written out.
Edge* convolve(const DecomposeContext& c, Edge* whole) {
  for (const auto& [input, axis] : {std::pair<size_t, size_t>{kX, 1}, {kWeights, 0}}) {
    if (!c.ranked(input) || !c.dims(input)[axis].is_constant()) continue;
    return c.op("Conv", {whole, c.in(kWeights), c.in(kBias)},
                c.attributes().set("group", c.dims(input)[axis].value()));
  }
  Edge* first = c.op("Unsqueeze", {numbers_below(c, size_of(c, c.in(kX), 2, 3)), c.build.integers({1})});
  Edge* places = c.op("Add", {first, numbers_below(c, size_of(c, c.in(kWeights), 2, 3))});
  Edge* windows = c.op("Gather", {whole, places}, c.attributes().set("axis", int64_t{2}));
  Edge* sums = c.op("ReduceSum", {c.op("Mul", {windows, c.in(kWeights)}), c.build.integers({3})},
                    c.attributes().set("keepdims", int64_t{0}));
  if (c.in(kBias) == nullptr) return sums;
  return c.op("Add", {sums, c.op("Unsqueeze", {c.in(kBias), c.build.integers({1})})});
}

void decompose(DecomposeContext& c) {
  const AttributeList along = c.attributes().set("axis", int64_t{2});
  Edge* kept = c.op("Sub", {size_of(c, c.in(kWeights), 2, 3), c.build.integers({1})});
  Edge* past = c.in(kPast);
  if (past == nullptr) {
    Edge* shape = c.op("Concat", {size_of(c, c.in(kX), 0, 2), kept}, c.attributes().set("axis", int64_t{0}));
    past = c.op("CastLike", {c.op("ConstantOfShape", {shape}), c.in(kX)});
  }
  Edge* whole = c.op("Concat", {past, c.in(kX)}, along);
  Edge* y = convolve(c, whole);
  if (c.attrs<CausalConvAttrs>().swish) {
    c.op_into(0, "Mul", {y, c.op("Sigmoid", {y})});
  } else {
    c.op_into(0, "Identity", {y});
  }
  if (c.node().outputs.size() < 2 || c.node().outputs[1] == nullptr) return;
  Edge* length = size_of(c, c.in(kX), 2, 3);
  c.op_into(1, "Slice", {whole, length, c.op("Add", {length, kept}), c.build.integers({2})});
}

}  // namespace

extern const OpDef op_microsoft_causal_conv_with_state = {.domain = kMicrosoftDomain,
                                                          .name = "CausalConvWithState",
                                                          .inputs = {2, 4},
                                                          .outputs = {1, 2},
                                                          .attrs = attrs,
                                                          .infer = infer,
                                                          .decompose = decompose};

}  // namespace plimsoll
