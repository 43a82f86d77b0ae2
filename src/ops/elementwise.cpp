#include "ops/elementwise.h"

#include <algorithm>
#include <cstring>

namespace plimsoll {

// ---- one input ------------------------------------------------------------------------------------

const void* unary_attrs(AttrContext& c) {
  if (c.opset() < 6) c.ignore("consumed_inputs");
  return nullptr;
}

void set_output_like(InferContext& c, size_t output, ElementType type, size_t input) {
  if (c.ranked(input)) {
    c.set_output(output, type, c.dims(input));
  } else {
    c.set_unranked_output(output, type);
  }
}

void alias_unary(AliasContext& c) {
  if (element_bits(c.input(0).type.type) == element_bits(c.output(0).type.type)) c.overwrite(0);
}

Cost cost_elementwise(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 4;
  return {checked_mul(kOperationsPerElement, product(c.output(0).type.dims).value()), tensor_bytes(c)};
}

void infer_float_unary(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  set_output_like(c, 0, c.type(0), 0);
}

void infer_numeric_unary(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  set_output_like(c, 0, c.type(0), 0);
}

namespace {

template <typename Half>
void unary_half(const kernels::Unary& f, const Half* x, Half* y, int64_t count) {
  constexpr int64_t kBuffer = 1024;
  float buffer[kBuffer];
  for (int64_t start = 0; start < count; start += kBuffer) {
    const int64_t n = std::min(kBuffer, count - start);
    kernels::widen(x + start, buffer, n);
    kernels::unary_f32(f, buffer, buffer, n);
    kernels::narrow(buffer, y + start, n);
  }
}

void unary_chunk(const kernels::Unary& f, ElementType type, const std::byte* x, std::byte* y, int64_t count) {
  visit_float(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = reinterpret_cast<const T*>(x);
    T* to = reinterpret_cast<T*>(y);
    if constexpr (std::is_same_v<T, float>) {
      kernels::unary_f32(f, from, to, count);
    } else if constexpr (std::is_same_v<T, double>) {
      kernels::unary_f64(f, from, to, count);
    } else {
      unary_half(f, from, to, count);
    }
  });
}

}  // namespace

void run_unary(const RunContext& c, const kernels::Unary& f) {
  const TensorView& x = c.inputs[0];
  const TensorView& y = c.outputs[0];
  constexpr int64_t kChunk = 8192;
  const int64_t count = x.elements();
  const int64_t width = element_bits(x.type) / 8;
  kernels::parallel_for(count > 2 * kChunk ? c.threads : 1, (count + kChunk - 1) / kChunk,
                        [&](int64_t chunk) {
                          const int64_t start = chunk * kChunk;
                          unary_chunk(f, x.type, x.data + start * width, y.data + start * width,
                                      std::min(kChunk, count - start));
                        });
}

void run_attribute_unary(const RunContext& c) {
  run_unary(c, c.attrs<kernels::Unary>());
}

// ---- two inputs ------------------------------------------------------------------------------------

const void* binary_attrs(AttrContext& c) {
  BinaryAttrs* attrs = c.make<BinaryAttrs>();
  if (c.opset() >= 7) return attrs;
  if (c.opset() < 6) c.ignore("consumed_inputs");
  const bool broadcasts = c.integer("broadcast", 0) != 0;
  const int64_t axis = c.integer("axis", -1);
  if (axis < -1) c.reject("attribute 'axis': expected at least 0, found {}", axis);
  if (broadcasts) attrs->axis = axis;
  return attrs;
}

void check_trailing_broadcast(const NodeContext& c) {
  if (c.attrs<BinaryAttrs>().axis >= 0)
    c.reject("its gradient is not implemented with attribute 'axis' (before opset 7)");
}

namespace {

// The second input's shape with ones behind it, so that its first dimension meets `axis` of the first.
template <typename T>
std::vector<T> placed(std::span<const T> dims, int64_t axis, size_t rank) {
  std::vector<T> result(dims.begin(), dims.end());
  if (axis >= 0) {
    while (result.size() + static_cast<size_t>(axis) < rank) result.push_back(1);
  }
  return result;
}

bool same_dims(std::span<const Dim> a, std::span<const Dim> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void set_broadcast_output(InferContext& c, ElementType output) {
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, output);
  const int64_t axis = c.attrs<BinaryAttrs>().axis;
  const std::vector<Dim> b = placed(c.dims(1), axis, c.rank(0));
  const std::vector<Dim> dims = c.broadcast(c.dims(0), b);
  if (dims.size() > static_cast<size_t>(kernels::kMaxBroadcastRank))
    fail(ErrorCode::kNotImplemented, "{}: {} dimensions; at most {} are implemented", c.node().label(),
         dims.size(), kernels::kMaxBroadcastRank);
  c.set_output(0, output, dims);
}

}  // namespace

void infer_binary(InferContext& c, TypeSet types, ElementType output) {
  c.expect_type(0, types);
  c.expect_type(1, types);
  c.expect_same_type(0, 1);
  set_broadcast_output(c, output);
}

void infer_binary(InferContext& c, TypeSet first, TypeSet second) {
  c.expect_type(0, first);
  c.expect_type(1, second);
  set_broadcast_output(c, c.type(0));
}

void infer_binary(InferContext& c, TypeSet types) {
  infer_binary(c, types, c.type(0));
}

void infer_comparison(InferContext& c) {
  infer_binary(c, kNumericTypes, ElementType::kBool);
}

void infer_logical(InferContext& c) {
  infer_binary(c, kBoolType, ElementType::kBool);
}

void alias_elementwise(AliasContext& c) {
  const TypeInfo& output = c.output(0).type;
  if (!output.ranked) return;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    const TypeInfo& input = c.input(i).type;
    if (input.ranked && element_bits(input.type) == element_bits(output.type) &&
        same_dims(input.dims, output.dims))
      c.overwrite(i);
  }
}

kernels::Broadcast broadcast_of(const RunContext& c) {
  const int64_t axis = c.attrs<BinaryAttrs>().axis;
  if (axis < 0) return {c.outputs[0].dims, {c.inputs[0].dims, c.inputs[1].dims}};
  int64_t b[kernels::kMaxBroadcastRank];
  size_t rank = 0;
  for (int64_t d : c.inputs[1].dims) b[rank++] = d;
  while (rank + static_cast<size_t>(axis) < c.inputs[0].rank()) b[rank++] = 1;
  return {c.outputs[0].dims, {c.inputs[0].dims, std::span<const int64_t>(b, rank)}};
}

void run_float_binary(const RunContext& c, kernels::BinaryKind kind) {
  const kernels::Broadcast plan = broadcast_of(c);
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    plan.for_each(c.threads, [&](const kernels::BroadcastBlock& block) {
      kernels::binary(kind, block, c.inputs[0].as<T>(), c.inputs[1].as<T>(), c.outputs[0].as<T>());
    });
  });
}

// ---- value propagation ------------------------------------------------------------------------------

std::optional<std::span<const Dim>> known_values(InferContext& c, size_t i) {
  const TensorView* data = c.constant(i);
  if (c.input(i).values || data == nullptr || data->type != ElementType::kBool) return c.values(i);
  const int64_t count = data->elements();
  if (count > static_cast<int64_t>(InferContext::kMaxKnownValues)) return std::nullopt;
  std::span<Dim> values = c.arena().array<Dim>(static_cast<size_t>(count));
  for (size_t k = 0; k < values.size(); ++k) values[k] = data->data[k] != std::byte{0} ? 1 : 0;
  return values;
}

int known_equal(Dim a, Dim b) {
  if (a == b) return 1;
  if (a.is_constant() && b.is_constant()) return 0;
  // Different for every value of the symbols, zero included.
  const auto exceeds = [](Dim larger, Dim smaller) {
    const Dim difference = larger - smaller;
    return known_at_least(difference, 1) && difference.evaluate([](std::string_view) { return 0; }) >= 1;
  };
  return exceeds(a, b) || exceeds(b, a) ? 0 : -1;
}

bool fits(Dim value, ElementType type) {
  if (!value.is_constant() || !is_integer(type)) return true;
  return visit_integer(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return static_cast<int64_t>(static_cast<T>(value.value())) == value.value() &&
           (std::is_signed_v<T> || value.value() >= 0);
  });
}

namespace {

std::span<const Dim> without_leading_ones(std::span<const Dim> dims) {
  while (!dims.empty() && dims[0] == Dim(1)) dims = dims.subspan(1);
  return dims;
}

}  // namespace

void propagate(InferContext& c, const DimFunction& f) {
  if (!c.ranked(0) || !c.ranked(1) || !c.has_output(0)) return;
  const auto a = known_values(c, 0);
  const auto b = known_values(c, 1);
  if (!a || !b) return;
  const size_t count = a->size() == 1 ? b->size() : a->size();
  const bool in_step = a->size() == 1 || b->size() == 1 ||
                       same_dims(without_leading_ones(c.dims(0)), without_leading_ones(c.dims(1)));
  if (!in_step) return;
  std::vector<Dim> result;
  try {
    for (size_t i = 0; i < count; ++i) {
      const auto value = f((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
      if (!value || !fits(*value, c.output(0).type.type)) return;
      result.push_back(*value);
    }
  } catch (const Error&) {
    return;  // the arithmetic of sizes overflows; at run time the elements wrap
  }
  c.set_values(0, result);
}

}  // namespace plimsoll
