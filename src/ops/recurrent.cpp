#include "ops/recurrent.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "ops/movement.h"

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

// RNN's own default names two functions even for one direction.
void read_functions(AttrContext& c, RecurrentAttrs& a) {
  const auto names = c.texts("activations");
  const auto alphas = c.reals("activation_alpha"), betas = c.reals("activation_beta");
  const size_t each = a.kind->functions, count = static_cast<size_t>(a.directions) * each;
  if (!names.empty() && names.size() != count && !(each == 1 && names.size() == 2))
    c.reject("activations: expected {} names, found {}", count, names.size());
  size_t next_alpha = 0, next_beta = 0;
  for (size_t i = 0; i < count; ++i) {
    std::string name(names.empty() ? a.kind->defaults[i % each] : names[i]);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char ch) { return std::tolower(ch); });
    const auto* found =
        std::find_if(std::begin(kGates), std::end(kGates), [&](const GateName& g) { return name == g.name; });
    if (found == std::end(kGates)) c.reject("activations: '{}' is not known", name);
    a.functions[i] = {found->kind, found->alpha, found->beta};
    if (takes_alpha(found->kind) && next_alpha < alphas.size()) a.functions[i].alpha = alphas[next_alpha++];
    if (takes_beta(found->kind) && next_beta < betas.size()) a.functions[i].beta = betas[next_beta++];
  }
}

void check_types(const InferContext& c) {
  c.expect_type(kRecurrentX, kFloatTypes);
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (i == kRecurrentLengths) {
      c.expect_type(i, types(ElementType::kInt32));
    } else {
      c.expect_same_type(kRecurrentX, i);
    }
  }
  for (size_t i : {kRecurrentX, kRecurrentW, kRecurrentR}) c.expect_rank(i, 3, 3);
}

}  // namespace

const RecurrentAttrs* recurrent_attrs(AttrContext& c, const RecurrentKind& kind) {
  auto* a = c.make<RecurrentAttrs>();
  a->kind = &kind;
  a->hidden = c.integer("hidden_size", 0);
  const std::string_view direction = c.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    c.reject("direction: expected forward, reverse or bidirectional, found '{}'", direction);
  a->directions = direction == "bidirectional" ? 2 : 1;
  a->reverse = direction == "reverse";
  a->batch_first = c.integer("layout", 0) != 0;
  a->clip = c.real("clip", 0.0f);
  if (kind.has_cell) a->input_forget = c.integer("input_forget", 0) != 0;
  if (kind.joint_gates < kind.gates) a->linear_before_reset = c.integer("linear_before_reset", 0) != 0;
  c.ignore("output_sequence");  // opset 1
  read_functions(c, *a);
  return a;
}

void infer_recurrent(InferContext& c) {
  const auto& a = c.attrs<RecurrentAttrs>();
  check_types(c);
  const size_t states = a.kind->has_cell ? 2 : 1;
  if (!c.ranked(kRecurrentX) || !c.ranked(kRecurrentR)) {
    for (size_t i = 0; i <= states; ++i) c.set_unranked_output(i, c.type(kRecurrentX));
    return;
  }
  const Dim hidden = c.dims(kRecurrentR)[2], directions = a.directions;
  if (a.hidden != 0 && hidden.is_constant() && hidden.value() != a.hidden)
    c.reject("hidden_size is {}, but R has shape {}", a.hidden, to_string(c.dims(kRecurrentR)));
  const auto x = c.dims(kRecurrentX);
  const Dim steps = x[a.batch_first ? 1 : 0], batch = x[a.batch_first ? 0 : 1];
  const Dim gates = hidden * Dim(a.kind->gates);
  expect_dims(c, kRecurrentW, {directions, gates, x[2]});
  expect_dims(c, kRecurrentR, {directions, gates, hidden});
  expect_dims(c, kRecurrentB, {directions, gates * Dim(2)});
  expect_dims(c, kRecurrentLengths, {batch});
  const std::vector<Dim> state = a.batch_first ? std::vector<Dim>{batch, directions, hidden}
                                               : std::vector<Dim>{directions, batch, hidden};
  expect_dims(c, kRecurrentInitialH, state);
  if (a.kind->has_cell) {
    expect_dims(c, kRecurrentInitialC, state);
    expect_dims(c, kRecurrentPeephole, {directions, hidden * Dim(3)});
  }
  c.set_output(0, c.type(kRecurrentX),
               a.batch_first ? std::vector<Dim>{batch, steps, directions, hidden}
                             : std::vector<Dim>{steps, directions, batch, hidden});
  for (size_t i = 1; i <= states; ++i) c.set_output(i, c.type(kRecurrentX), state);
}

Cost cost_recurrent(const NodeContext& c) {
  const auto& a = c.attrs<RecurrentAttrs>();
  const auto x = c.dims(kRecurrentX);
  const auto hidden = static_cast<double>(c.dims(kRecurrentR)[2].value());
  const double operations = 2.0 * static_cast<double>(a.kind->gates * a.directions) *
                            static_cast<double>(x[0].value()) * static_cast<double>(x[1].value()) * hidden *
                            (static_cast<double>(x[2].value()) + hidden);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace plimsoll
