#include "ops/random_source.h"

#include <bit>
#include <cmath>

namespace plimsoll {
namespace {

// FNV-1a
uint64_t hash(std::string_view text) {
  uint64_t h = 0xcbf29ce484222325;
  for (char ch : text) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001b3;
  return h;
}

}  // namespace

RandomSeed real_seed(AttrContext& c) {
  if (!c.has("seed")) return {};
  return {true, std::bit_cast<uint32_t>(c.real("seed"))};
}

RandomSeed whole_seed(AttrContext& c) {
  if (!c.has("seed")) return {};
  return {true, static_cast<uint64_t>(c.integer("seed"))};
}

kernels::RandomStream random_stream(const RunContext& c, const RandomSeed& seed) {
  return random_stream(c, seed, c.node->name);
}

kernels::RandomStream random_stream(const RunContext& c, const RandomSeed& seed, std::string_view name) {
  if (seed.given) return {kernels::mix_bits(seed.value), c.random_turn};
  return {kernels::mix_bits(c.random_seed ^ hash(name)), c.random_turn};
}

ElementType random_type(AttrContext& c, TypeSet allowed) {
  if (!c.has("dtype")) return ElementType::kUndefined;
  const int64_t code = c.integer("dtype");
  if (code <= 0 || code > 31 || !is_known_type(static_cast<int>(code)) ||
      !allowed.contains(static_cast<ElementType>(code)))
    c.reject("attribute 'dtype': expected a type that the operator gives, found {}", code);
  return static_cast<ElementType>(code);
}

const void* random_attrs(AttrContext& c, Distribution distribution, bool has_shape) {
  RandomAttrs* a = c.make<RandomAttrs>();
  a->distribution = distribution;
  a->seed = real_seed(c);
  a->type = random_type(c, kFloatTypes);
  const bool normal = distribution == Distribution::kNormal;
  const double first = double{c.real(normal ? "mean" : "low", 0.0f)};
  const double second = double{c.real(normal ? "scale" : "high", 1.0f)};
  a->offset = first;
  a->scale = normal ? second : second - first;
  if (normal && !(second >= 0)) c.reject("attribute 'scale': expected at least 0, found {}", second);
  if (!normal && !(second >= first))
    c.reject("attribute 'high': expected at least {}, found {}", first, second);
  if (!has_shape) return a;
  if (!c.has("shape")) c.reject("attribute 'shape' is missing");
  a->shape = c.integers("shape");
  if (a->type == ElementType::kUndefined) a->type = ElementType::kFloat;
  return a;
}

void infer_random(InferContext& c) {
  const RandomAttrs& a = c.attrs<RandomAttrs>();
  c.set_output(0, a.type, std::vector<Dim>(a.shape.begin(), a.shape.end()));
}

void infer_random_like(InferContext& c) {
  const ElementType given = c.attrs<RandomAttrs>().type;
  if (given == ElementType::kUndefined) c.expect_type(0, kFloatTypes);
  set_output_like(c, 0, given == ElementType::kUndefined ? c.type(0) : given, 0);
}

void run_random(const RunContext& c) {
  const RandomAttrs& a = c.attrs<RandomAttrs>();
  const kernels::RandomStream stream = random_stream(c, a.seed);
  const TensorView& y = c.outputs[0];
  visit_float(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Number = ComputeType<T>;
    const Number offset = static_cast<Number>(a.offset), scale = static_cast<Number>(a.scale);
    draw_pieces<Number>(
        c, y.elements(),
        [&](int64_t first, int64_t count, Number* numbers) {
          if (a.distribution == Distribution::kNormal) return random_normal(stream, first, count, numbers);
          random_uniform(stream, first, count, numbers);
        },
        [&](int64_t first, const Number* numbers, int64_t count) {
          for (int64_t i = 0; i < count; ++i)
            y.as<T>()[first + i] = static_cast<T>(offset + scale * numbers[i]);
        });
  });
}

}  // namespace plimsoll
