// ConvChain(X, Z, W1, B1, S1, W2, B2, S2, ...) = a_n(conv(... a_1(conv(X, W1 * S1) + B1) ..., Wn * Sn) + Bn +
// Z): two or three convolutions of float, channels last, computed by bands of rows, so that what is between
// them is never in memory as a whole. Each is depthwise, or 1x1 with neither strides nor padding. Z, every B
// and every S may be absent. `group` has one number for each, `strides` two, `pads` four (top, left, bottom,
// right); their activations are `activation_1`, `activation_params_1`, ... The image's height and width are
// known when the model is loaded.
#include "kernels/conv_chain.h"

#include "kernels/depthwise.h"
#include "kernels/gemm.h"
#include "ops/activation_attr.h"
#include "ops/conv_common.h"

namespace plimsoll {
namespace {

using kernels::ChainedConv;
using kernels::ConvShape;
using kernels::kMostChained;

constexpr size_t kX = 0, kZ = 1;
constexpr size_t weight_at(size_t i) {
  return 2 + 3 * i;
}
constexpr size_t bias_at(size_t i) {
  return 3 + 3 * i;
}
constexpr size_t scale_at(size_t i) {
  return 4 + 3 * i;
}

struct Attrs {
  size_t count = 0;
  std::span<const int64_t> groups, strides, pads;
  kernels::Activation activations[kMostChained];
};

void expect_numbers(const AttrContext& c, const char* name, std::span<const int64_t> found, size_t expected,
                    int64_t least) {
  if (found.size() != expected)
    c.reject("attribute '{}': expected {} numbers, found {}", name, expected, found.size());
  for (int64_t number : found) {
    if (number < least || number > INT32_MAX)
      c.reject("attribute '{}': expected numbers from {}, found {}", name, least, number);
  }
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->groups = c.integers("group");
  a->count = a->groups.size();
  if (a->count < 2 || a->count > kMostChained)
    c.reject("attribute 'group': expected 2 or 3 numbers, found {}", a->count);
  a->strides = c.integers("strides"), a->pads = c.integers("pads");
  expect_numbers(c, "group", a->groups, a->count, 1);
  expect_numbers(c, "strides", a->strides, 2 * a->count, 1);
  expect_numbers(c, "pads", a->pads, 4 * a->count, 0);
  constexpr std::string_view kNames[] = {"activation_1", "activation_2", "activation_3"};
  constexpr std::string_view kParams[] = {"activation_params_1", "activation_params_2",
                                          "activation_params_3"};
  for (size_t i = 0; i < a->count; ++i) a->activations[i] = read_activation(c, kNames[i], kParams[i]);
  return a;
}

// What comes out of convolution i, given what goes in.
struct Image {
  int64_t height, width, channels;
};

ChainedConv chained(const NodeContext& c, size_t i, const Image& in) {
  const Attrs& a = c.attrs<Attrs>();
  const std::span<const Dim> w = c.dims(weight_at(i));
  ChainedConv conv;
  ConvShape& s = conv.shape;
  s.groups = a.groups[i];
  s.in_h = in.height, s.in_w = in.width, s.in_c = in.channels, s.out_c = w[0].value();
  s.kernel_h = w[2].value(), s.kernel_w = w[3].value();
  s.stride_h = a.strides[2 * i], s.stride_w = a.strides[2 * i + 1];
  s.pad_top = a.pads[4 * i], s.pad_left = a.pads[4 * i + 1];
  s.out_h = floor_div(s.in_h + s.pad_top + a.pads[4 * i + 2] - s.kernel_h, s.stride_h) + 1;
  s.out_w = floor_div(s.in_w + s.pad_left + a.pads[4 * i + 3] - s.kernel_w, s.stride_w) + 1;
  conv.depthwise = s.groups > 1;
  conv.activation = a.activations[i];
  return conv;
}

bool is_plain(const Attrs& a, size_t i, const ConvShape& s) {
  const std::span<const int64_t> pads = a.pads.subspan(4 * i, 4);
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 &&
         std::all_of(pads.begin(), pads.end(), [](int64_t pad) { return pad == 0; });
}

void check_vector(const InferContext& c, size_t input, int64_t channels) {
  if (!c.has_input(input)) return;
  c.expect_same_type(kX, input);
  c.expect_rank(input, 1, 1);
  if (c.ranked(input) && !(c.dims(input)[0] == Dim(channels)))
    c.reject("input {}: expected {} elements, found {}", input, channels, to_string(c.dims(input)));
}

void check_weights(const InferContext& c, size_t i) {
  const size_t input = weight_at(i);
  if (!c.has_input(input)) c.reject("input {}: expected weights", input);
  c.expect_same_type(kX, input);
  c.expect_rank(input, 4, 4);
  const std::span<const Dim> w = c.dims(input);
  const bool is_known = w.size() == 4 && std::all_of(w.begin(), w.end(), [](Dim d) {
                          return d.is_constant() && d.value() >= 1 && d.value() <= INT32_MAX;
                        });
  if (!is_known) c.reject("input {}: expected weights of a known shape, found {}", input, to_string(w));
  const int64_t groups = c.attrs<Attrs>().groups[i];
  if (groups > 1 && !(w[0] == Dim(groups) && w[1] == Dim(1)))
    c.reject("input {}: expected a kernel for each of {} channels, found {}", input, groups, to_string(w));
}

void infer(InferContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  c.expect_type(kX, types(ElementType::kFloat));
  c.expect_rank(kX, 4, 4);
  for (size_t i = 0; i < a.count; ++i) check_weights(c, i);
  if (!c.ranked(kX)) c.reject("input 0: expected a known shape");
  const std::span<const Dim> x = c.dims(kX);
  for (size_t i = 1; i < 4; ++i) {
    if (!x[i].is_constant()) c.reject("input 0: expected a known height and width, found {}", to_string(x));
  }
  Image image{x[1].value(), x[2].value(), x[3].value()};
  for (size_t i = 0; i < a.count; ++i) {
    const ChainedConv conv = chained(c, i, image);
    const ConvShape& s = conv.shape;
    if (c.dims(weight_at(i))[1].value() * s.groups != image.channels)
      c.reject("input {}: expected {} channels, found {}", weight_at(i), image.channels,
               to_string(c.dims(weight_at(i))));
    if (!conv.depthwise && !is_plain(a, i, s))
      c.reject("convolution {}: expected it depthwise, or 1x1 with neither strides nor pads", i + 1);
    if (s.out_h < 1 || s.out_w < 1) c.reject("convolution {}: its kernel is larger than its image", i + 1);
    check_vector(c, bias_at(i), s.out_c);
    check_vector(c, scale_at(i), s.out_c);
    image = {s.out_h, s.out_w, s.out_c};
  }
  const std::vector<Dim> y = {x[0], image.height, image.width, image.channels};
  if (c.has_input(kZ)) {
    c.expect_same_type(kX, kZ);
    c.expect_rank(kZ, 4, 4);
    for (size_t i = 0; c.ranked(kZ) && i < 4; ++i) {
      if (c.dims(kZ)[i].is_constant() && y[i].is_constant() && !(c.dims(kZ)[i] == y[i]))
        c.reject("the addend has shape {}, the result {}", to_string(c.dims(kZ)), to_string(y));
    }
  }
  c.set_output(0, ElementType::kFloat, y);
}

void alias(AliasContext& c) {
  if (!c.has_input(kZ) || !c.ranked(kZ)) return;
  const std::span<const Dim> z = c.dims(kZ), y = c.output(0).type.dims;
  if (std::equal(z.begin(), z.end(), y.begin(), y.end())) c.overwrite(kZ);
}

struct Choice {
  size_t count = 0;
  ChainedConv chain[kMostChained];
  ConvChoice weights[kMostChained];  // how each is packed
  int64_t working_at = 0;
};

PackFormat format_of(const SelectContext& c, size_t i, const ConvChoice& choice) {
  PackFormat format{choice.kernel == ConvKernel::kDepthwise ? "depthwise" : "conv",
                    {kernels::packed_b_format(), choice.shape.groups, false, 0}};
  if (c.has_input(scale_at(i))) format.also_reads = c.node().inputs[scale_at(i)];
  return format;
}

const void* select(SelectContext& c) {
  auto* choice = c.make<Choice>();
  choice->count = c.attrs<Attrs>().count;
  const std::span<const Dim> x = c.dims(kX);
  Image image{x[1].value(), x[2].value(), x[3].value()};
  for (size_t i = 0; i < choice->count; ++i) {
    ChainedConv& conv = choice->chain[i];
    conv = chained(c, i, image);
    image = {conv.shape.out_h, conv.shape.out_w, conv.shape.out_c};
    ConvChoice& weights = choice->weights[i];
    weights.kernel = conv.depthwise ? ConvKernel::kDepthwise : ConvKernel::kDense;
    weights.shape = conv.shape;
    weights.plane_bytes =
        static_cast<int64_t>(conv.depthwise ? kernels::depthwise_packed_bytes<float>(conv.shape)
                                            : kernels::conv_packed_bytes<float>(conv.shape));
    weights.packed = c.pack(weight_at(i), format_of(c, i, weights), weights.plane_bytes);
    if (!weights.packed) weights.packed_at = c.scratch(weights.plane_bytes);
  }
  choice->working_at =
      c.scratch(kernels::conv_chain_scratch_bytes(std::span(choice->chain, choice->count), c.threads));
  return choice;
}

void pack(const PackContext& c) {
  const size_t i = (c.input_to_pack - weight_at(0)) / 3;
  const TensorView* scale = c.constant(scale_at(i));
  std::vector<float> factors(scale == nullptr ? 0 : static_cast<size_t>(scale->elements()));
  if (!factors.empty()) std::memcpy(factors.data(), scale->data, factors.size() * sizeof(float));
  pack_conv_weights<float>(c.choice<Choice>().weights[i], c.raw.data,
                           factors.empty() ? nullptr : factors.data(), c.destination);
}

const float* data_of(const RunContext& c, size_t input) {
  return c.has_input(input) ? c.inputs[input].as<float>() : nullptr;
}

void run(const RunContext& c) {
  const auto& choice = c.choice<Choice>();
  ChainedConv chain[kMostChained];
  for (size_t i = 0; i < choice.count; ++i) {
    chain[i] = choice.chain[i];
    chain[i].packed = c.inputs[weight_at(i)].data;
    chain[i].bias = data_of(c, bias_at(i));
    if (choice.weights[i].packed) continue;
    std::byte* packed = c.scratch + choice.weights[i].packed_at;
    pack_conv_weights<float>(choice.weights[i], chain[i].packed, data_of(c, scale_at(i)), packed);
    chain[i].packed = packed;
  }
  const int64_t batch = c.inputs[kX].dims[0];
  if (batch == 0) return;
  kernels::conv_chain(std::span(chain, choice.count), batch, c.inputs[kX].as<float>(), data_of(c, kZ),
                      c.outputs[0].as<float>(), c.scratch + choice.working_at, c.threads);
}

Cost cost(const NodeContext& c) {
  const std::span<const Dim> x = c.dims(kX);
  Image image{x[1].value(), x[2].value(), x[3].value()};
  Cost sum{0, tensor_bytes(c)};
  for (size_t i = 0; i < c.attrs<Attrs>().count; ++i) {
    const ConvShape s = chained(c, i, image).shape;
    const int64_t taps = s.kernel_h * s.kernel_w * s.in_c / s.groups;
    sum.operations += 2 * x[0].value() * s.out_h * s.out_w * s.out_c * taps;
    image = {s.out_h, s.out_w, s.out_c};
  }
  return sum;
}

}  // namespace

extern const OpDef op_conv_chain = {
    .domain = kPlimsollDomain,
    .name = "ConvChain",
    .inputs = {6, weight_at(kMostChained)},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .select = select,
    .pack = pack,
    .run = run,
    .cost = cost,
    .optional_inputs = 0b11010,
};

}  // namespace plimsoll
