#include <algorithm>

#include "graph/gradient.h"
#include "kernels/copy.h"
#include "ops/dropout.h"
#include "ops/float8_types.h"
#include "ops/random_source.h"

namespace plimsoll {
namespace {

// Whether it trains: before opset 7 an attribute tells, from 12 on an input, between them it never does.
struct DropoutAttrs {
  RandomSeed seed;
  std::string_view stream;  // of the gradient: the node whose numbers it draws again
  bool trains = false;
  double ratio = 0.5;
};

void check_ratio(const Node& node, double ratio) {
  if (!(ratio >= 0 && ratio < 1))
    fail(ErrorCode::kInvalidArgument, "{}: ratio: expected a number in [0, 1), found {}", node.label(),
         ratio);
}

}  // namespace

const void* dropout_attrs(AttrContext& c) {
  DropoutAttrs* a = c.make<DropoutAttrs>();
  if (!c.node().domain.empty()) {
    a->stream = c.text("stream");
    a->trains = c.integer("trains", 0) != 0;
    a->ratio = double{c.real("ratio", 0.5f)};
    if (a->trains) check_ratio(c.node(), a->ratio);
    a->seed = whole_seed(c);
    return a;
  }
  if (c.opset() < 7) {
    unary_attrs(c);
    a->trains = c.integer("is_test", 0) == 0;
  }
  if (c.opset() < 12) {
    a->ratio = double{c.real("ratio", 0.5f)};
    if (a->trains) check_ratio(c.node(), a->ratio);
  } else {
    a->seed = whole_seed(c);
  }
  return a;
}

void infer_dropout(InferContext& c) {
  c.expect_type(0, kFloatTypes | kFloat8Types);
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    c.expect_type(i, i == 1 ? kFloatTypes | kFloat8Types : kBoolType);
    if (c.ranked(i) && product(c.dims(i)).is_constant() && product(c.dims(i)).value() != 1)
      c.reject("input {}: expected one element, found shape {}", i, to_string(c.dims(i)));
  }
  set_output_like(c, 0, c.type(0), 0);
  set_output_like(c, 1, c.opset() < 10 ? c.type(0) : ElementType::kBool, 0);
}

namespace {

bool is_true(const TensorView& view) {
  return view && view.data[0] != std::byte{0};
}

}  // namespace

void alias_dropout(AliasContext& c) {
  const bool trains =
      c.has_input(2) ? c.constant(2) == nullptr || is_true(*c.constant(2)) : c.attrs<DropoutAttrs>().trains;
  if (trains) {
    c.overwrite(0);
  } else {
    c.view(0);
  }
}

namespace {

double ratio_of(const RunContext& c) {
  if (!c.has_input(1)) {
    check_ratio(*c.node, c.attrs<DropoutAttrs>().ratio);
    return c.attrs<DropoutAttrs>().ratio;
  }
  const TensorView& given = c.inputs[1];
  const double ratio =
      kFloat8Types.contains(given.type)
          ? double{decode_small_float(given.type, *given.as<uint8_t>())}
          : visit_float(given.type, [&](auto tag) {
              return static_cast<double>(load_element(*given.as<typename decltype(tag)::type>()));
            });
  check_ratio(*c.node, ratio);
  return ratio;
}

// What is kept becomes grow(x).
template <typename T, typename M, typename Grow>
void drop(const RunContext& c, double ratio, Grow grow) {
  const DropoutAttrs& a = c.attrs<DropoutAttrs>();
  const kernels::RandomStream stream = random_stream(c, a.seed, a.stream.empty() ? c.node->name : a.stream);
  const T* x = c.inputs[0].as<T>();
  T* y = c.has_output(0) ? c.outputs[0].as<T>() : nullptr;
  M* mask = c.has_output(1) ? c.outputs[1].as<M>() : nullptr;
  draw_pieces<float>(
      c, c.inputs[0].elements(),
      [&](int64_t first, int64_t count, float* numbers) { random_uniform(stream, first, count, numbers); },
      [&](int64_t first, const float* numbers, int64_t count) {
        for (int64_t i = 0; i < count; ++i) {
          const bool kept = double{numbers[i]} >= ratio;
          if (mask != nullptr) mask[first + i] = static_cast<M>(kept ? 1 : 0);
          if (y != nullptr) y[first + i] = kept ? grow(x[first + i]) : T{};
        }
      });
}

void pass(const RunContext& c) {
  const TensorView& x = c.inputs[0];
  if (c.has_output(0)) kernels::copy_bytes(c.outputs[0].data, x.data, x.bytes());
  if (!c.has_output(1)) return;
  const TensorView& mask = c.outputs[1];
  if (mask.type == ElementType::kBool) {
    std::fill_n(mask.as<bool>(), mask.elements(), true);
    return;
  }
  visit_float(mask.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(mask.as<T>(), mask.elements(), T(1.0f));
  });
}

}  // namespace

void run_dropout(const RunContext& c) {
  const bool trains = c.has_input(2) ? is_true(c.inputs[2]) : c.attrs<DropoutAttrs>().trains;
  const double ratio = trains ? ratio_of(c) : 0;
  if (ratio == 0) return pass(c);
  const double scale = 1 / (1 - ratio);
  const ElementType type = c.inputs[0].type;
  if (kFloat8Types.contains(type))
    return drop<uint8_t, uint8_t>(c, ratio, [=](uint8_t x) {
      return static_cast<uint8_t>(encode_small_float(type, double{decode_small_float(type, x)} * scale, {}));
    });
  visit_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto grow = [factor = static_cast<ComputeType<T>>(scale)](T x) {
      return static_cast<T>(load_element(x) * factor);
    };
    c.node->opset < 10 ? drop<T, T>(c, ratio, grow) : drop<T, uint8_t>(c, ratio, grow);
  });
}

namespace {

void gradient(GradientContext& c) {
  const DropoutAttrs& a = c.attrs<DropoutAttrs>();
  AttributeList attributes = c.attributes();
  attributes.set("stream", a.stream.empty() ? c.node().name : a.stream);
  attributes.set("ratio", static_cast<float>(a.ratio)).set("trains", int64_t{a.trains});
  if (a.seed.given) attributes.set("seed", static_cast<int64_t>(a.seed.value));
  Edge* const inputs[] = {c.gradient(), c.in(1), c.in(2)};
  c.set(0, c.build.emit(kPlimsollDomain, "DropoutGradient", inputs, attributes.list())->outputs[0]);
}

}  // namespace

extern const OpDef op_dropout = {
    .name = "Dropout",
    .inputs = {1, 3},
    .outputs = {1, 2},
    .deterministic = false,
    .attrs = dropout_attrs,
    .infer = infer_dropout,
    .alias = alias_dropout,
    .run = run_dropout,
    .gradient = gradient,
};

}  // namespace plimsoll
