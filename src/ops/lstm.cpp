#include "ops/lstm.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace plimsoll {
namespace {

struct GateName {
  const char* name;
  Gate kind;
  float alpha, beta;  // defaults of the specification
};
constexpr GateName kGates[] = {
    {"sigmoid", Gate::kSigmoid, 0, 0},
    {"tanh", Gate::kTanh, 0, 0},
    {"relu", Gate::kRelu, 0, 0},
    {"affine", Gate::kAffine, 1, 0},
    {"leakyrelu", Gate::kLeakyRelu, 0.01f, 0},
    {"thresholdedrelu", Gate::kThresholdedRelu, 1, 0},
    {"scaledtanh", Gate::kScaledTanh, 1, 1},
    {"hardsigmoid", Gate::kHardSigmoid, 0.2f, 0.5f},
    {"elu", Gate::kElu, 1, 0},
    {"softsign", Gate::kSoftsign, 0, 0},
    {"softplus", Gate::kSoftplus, 0, 0},
};

bool takes_alpha(Gate gate) {
  return gate != Gate::kSigmoid && gate != Gate::kTanh && gate != Gate::kRelu && gate != Gate::kSoftsign &&
         gate != Gate::kSoftplus;
}
bool takes_beta(Gate gate) {
  return gate == Gate::kAffine || gate == Gate::kScaledTanh || gate == Gate::kHardSigmoid;
}

void read_functions(AttrContext& c, LstmAttrs& a) {
  const auto names = c.texts("activations");
  const auto alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  const auto count = static_cast<size_t>(a.directions) * 3;
  if (!names.empty() && names.size() != count)
    c.reject("activations: expected {} names, found {}", count, names.size());
  size_t next_alpha = 0, next_beta = 0;
  for (size_t i = 0; i < count; ++i) {
    std::string name(names.empty() ? (i % 3 == 0 ? "sigmoid" : "tanh") : names[i]);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char ch) { return std::tolower(ch); });
    const auto* found =
        std::find_if(std::begin(kGates), std::end(kGates), [&](const GateName& g) { return name == g.name; });
    if (found == std::end(kGates)) c.reject("activations: '{}' is not known", name);
    a.functions[i] = {found->kind, found->alpha, found->beta};
    if (takes_alpha(found->kind) && next_alpha < alphas.size()) a.functions[i].alpha = alphas[next_alpha++];
    if (takes_beta(found->kind) && next_beta < betas.size()) a.functions[i].beta = betas[next_beta++];
  }
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<LstmAttrs>();
  a->hidden = c.integer("hidden_size", 0);
  const std::string_view direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.reject("direction: expected forward, reverse or bidirectional, found '{}'", direction);
  a->directions = direction == "bidirectional" ? 2 : 1;
  a->reverse = direction == "reverse";
  a->batch_first = c.integer("layout", 0) != 0;
  a->input_forget = c.integer("input_forget", 0) != 0;
  a->clip = c.real("clip", 0.0f);
  c.ignore("output_sequence");  // opset 1
  read_functions(c, *a);
  return a;
}

// Throws unless input i is absent or has these dimensions, as far as both are known.
void expect_dims(const InferContext& c, size_t i, const std::vector<Dim>& expected) {
  if (!c.has_input(i) || !c.ranked(i)) return;
  const auto found = c.dims(i);
  bool fits = found.size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d)
    fits = !found[d].is_constant() || !expected[d].is_constant() || found[d] == expected[d];
  if (!fits) c.reject("input {}: expected shape {}, found {}", i, to_string(expected), to_string(found));
}

void infer(InferContext& c) {
  const auto& a = c.attrs<LstmAttrs>();
  c.expect_type(kLstmX, kFloatTypes);
  for (size_t i : {kLstmW, kLstmR, kLstmB, kLstmInitialH, kLstmInitialC, kLstmPeephole}) {
    if (c.has_input(i)) c.expect_same_type(kLstmX, i);
  }
  if (c.has_input(kLstmLengths)) c.expect_type(kLstmLengths, types(ElementType::kInt32));
  for (size_t i : {kLstmW, kLstmR}) {
    if (c.ranked(i)) c.expect_rank(i, 3, 3);
  }
  if (!c.ranked(kLstmX) || !c.ranked(kLstmR)) {
    for (size_t i = 0; i < 3; ++i) c.set_unranked_output(i, c.type(kLstmX));
    return;
  }
  c.expect_rank(kLstmX, 3, 3);
  const Dim hidden = c.dims(kLstmR)[2], directions = a.directions;
  if (a.hidden != 0 && hidden.is_constant() && hidden.value() != a.hidden)
    c.reject("hidden_size is {}, but R has shape {}", a.hidden, to_string(c.dims(kLstmR)));
  const Dim steps = c.dims(kLstmX)[a.batch_first ? 1 : 0], batch = c.dims(kLstmX)[a.batch_first ? 0 : 1];
  expect_dims(c, kLstmW, {directions, hidden * Dim(4), c.dims(kLstmX)[2]});
  expect_dims(c, kLstmR, {directions, hidden * Dim(4), hidden});
  expect_dims(c, kLstmB, {directions, hidden * Dim(8)});
  expect_dims(c, kLstmLengths, {batch});
  expect_dims(c, kLstmPeephole, {directions, hidden * Dim(3)});
  const std::vector<Dim> state = a.batch_first ? std::vector<Dim>{batch, directions, hidden}
                                               : std::vector<Dim>{directions, batch, hidden};
  expect_dims(c, kLstmInitialH, state);
  expect_dims(c, kLstmInitialC, state);
  c.set_output(0, c.type(kLstmX),
               a.batch_first ? std::vector<Dim>{batch, steps, directions, hidden}
                             : std::vector<Dim>{steps, directions, batch, hidden});
  c.set_output(1, c.type(kLstmX), state);
  c.set_output(2, c.type(kLstmX), state);
}

Cost cost(const NodeContext& c) {
  const auto x = c.dims(kLstmX);
  const auto hidden = static_cast<double>(c.dims(kLstmR)[2].value());
  const double operations = 8.0 * static_cast<double>(x[0].value()) * static_cast<double>(x[1].value()) *
                            hidden * (static_cast<double>(x[2].value()) + hidden) *
                            static_cast<double>(c.attrs<LstmAttrs>().directions);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_lstm = {
    .name = "LSTM",
    .inputs = {3, 8},
    .outputs = {0, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select_lstm,
    .pack = pack_lstm,
    .run = run_lstm,
    .cost = cost,
};

}  // namespace plimsoll
