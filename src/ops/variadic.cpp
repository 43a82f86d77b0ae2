#include "ops/variadic.h"

#include "ops/gradient_terms.h"

namespace plimsoll {

void infer_variadic(InferContext& c, TypeSet types) {
  std::vector<Dim> dims;
  bool ranked = true;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    c.expect_type(i, types);
    c.expect_same_type(0, i);
    c.expect_rank(i, 0, kernels::kMaxBroadcastRank);
    ranked = ranked && c.ranked(i);
    if (ranked) dims = c.broadcast(dims, c.dims(i));
  }
  if (ranked) {
    c.set_output(0, c.type(0), dims);
  } else {
    c.set_unranked_output(0, c.type(0));
  }
}

// The first step reads the first two inputs and writes the output: the others must still be there.
void alias_variadic(AliasContext& c) {
  AliasContext all(c);
  alias_elementwise(all);
  for (const Alias& alias : all.aliases) {
    if (alias.input < 2) c.aliases.push_back(alias);
  }
}

// ---- sums --------------------------------------------------------------------------------------------

void infer_sum(InferContext& c) {
  infer_variadic(c, kFloatTypes);
}

const void* select_sum(SelectContext& c) {
  const ElementType type = c.type(0);
  const bool half = type == ElementType::kFloat16 || type == ElementType::kBFloat16;
  if (half && c.output(0).type.ranked) c.scratch(product(c.output(0).type.dims) * Dim(sizeof(float)));
  return nullptr;
}

namespace {

template <typename W>
void divide(W* sums, int64_t count, size_t by) {
  const W divisor = static_cast<W>(by);
  for (int64_t i = 0; i < count; ++i) sums[i] /= divisor;
}

template <typename Half>
void sum_halves(const RunContext& c, bool mean) {
  const TensorView& y = c.outputs[0];
  float* sums = c.scratch_as<float>(0);
  const int64_t count = y.elements();
  std::fill_n(sums, count, 0.0f);
  for (const TensorView& x : c.inputs)
    broadcast_loop(kernels::Broadcast(y.dims, {y.dims, x.dims}), c.threads, sums, x.as<Half>(), sums,
                   [](float a, float b) { return a + b; });
  if (mean) divide(sums, count, c.inputs.size());
  kernels::narrow(sums, y.as<Half>(), count);
}

void run_sum(const RunContext& c, bool mean) {
  const TensorView& y = c.outputs[0];
  visit_float(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kernels::kIsHalf<T>) {
      sum_halves<T>(c, mean);
    } else {
      run_variadic(c, kernels::BinaryKind::kAdd, [](auto a, auto b) { return a + b; });
      if (mean) divide(y.as<T>(), y.elements(), c.inputs.size());
    }
  });
}

}  // namespace

template <bool kMean>
void run_sum(const RunContext& c) {
  run_sum(c, kMean);
}
template void run_sum<false>(const RunContext& c);
template void run_sum<true>(const RunContext& c);

// ---- gradients --------------------------------------------------------------------------------------

void gradient_sum(GradientContext& c, bool mean) {
  const Term given = mean ? dy(c) / static_cast<double>(c.input_count()) : dy(c);
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.wants(i)) c.set_broadcast(i, given.edge());
  }
}

void gradient_extreme(GradientContext& c) {
  if (c.input_count() == 1) return c.set(0, c.gradient());
  std::vector<Term> is_it;
  std::optional<Term> sharers;
  for (size_t i = 0; i < c.input_count(); ++i) {
    is_it.push_back(in(c, i).binary("Equal", out(c)));
    const Term counted = is_it.back().cast(c.type(0));
    sharers = sharers ? *sharers + counted : counted;
  }
  const Term share = dy(c) / *sharers;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (c.wants(i)) c.set_broadcast(i, only_where(is_it[i], share).edge());
  }
}

}  // namespace plimsoll
