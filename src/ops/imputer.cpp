#include "ops/elementwise.h"
#include "ops/feature_rows.h"

namespace plimsoll {
namespace {

struct ImputerAttrs {
  std::span<const float> reals;
  std::span<const int64_t> integers;
  float replaced_real = 0;
  int64_t replaced_integer = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ImputerAttrs>();
  a->reals = c.reals("imputed_value_floats");
  a->integers = c.integers("imputed_value_int64s");
  a->replaced_real = c.real("replaced_value_float", 0);
  a->replaced_integer = c.integer("replaced_value_int64", 0);
  if (a->reals.empty() == a->integers.empty())
    c.reject("expected one of the attributes 'imputed_value_floats' and 'imputed_value_int64s'");
  return a;
}

// One value for all features, or one for each.
void infer(InferContext& c) {
  const auto& a = c.attrs<ImputerAttrs>();
  c.expect_type(0, a.reals.empty() ? kIndexTypes : types(ElementType::kFloat, ElementType::kDouble));
  c.expect_rank(0, 1, InferContext::kMaxRank);
  const auto values = static_cast<int64_t>(a.reals.size() + a.integers.size());
  if (values != 1 && c.ranked(0) && c.dims(0).back().is_constant() && c.dims(0).back().value() != values)
    c.reject("input 0: expected {} features as there are imputed values, found shape {}", values,
             to_string(c.dims(0)));
  set_output_like(c, 0, c.type(0), 0);
}

template <typename T, typename Value>
void impute(const RunContext& c, std::span<const Value> values, Value replaced) {
  const T* x = c.inputs[0].as<T>();
  T* y = c.outputs[0].as<T>();
  const int64_t count = c.inputs[0].elements();
  const auto wanted = static_cast<T>(replaced);
  const bool nan = wanted != wanted;
  size_t feature = 0;
  for (int64_t i = 0; i < count; ++i) {
    const bool missing = nan ? x[i] != x[i] : x[i] == wanted;
    y[i] = missing ? static_cast<T>(values[feature]) : x[i];
    if (++feature == values.size()) feature = 0;
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<ImputerAttrs>();
  switch (c.inputs[0].type) {
    case ElementType::kFloat:
      return impute<float>(c, a.reals, a.replaced_real);
    case ElementType::kDouble:
      return impute<double>(c, a.reals, a.replaced_real);
    case ElementType::kInt32:
      return impute<int32_t>(c, a.integers, a.replaced_integer);
    default:
      return impute<int64_t>(c, a.integers, a.replaced_integer);
  }
}

}  // namespace

extern const OpDef op_imputer = {
    .domain = kMlDomain,
    .name = "Imputer",
    .attrs = attrs,
    .infer = infer,
    .alias = alias_unary,
    .run = run,
    .cost = cost_elementwise,
};

}  // namespace plimsoll
