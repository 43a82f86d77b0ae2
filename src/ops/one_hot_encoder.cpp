#include <algorithm>

#include "ops/elementwise.h"
#include "ops/feature_rows.h"
#include "ops/lookup_table.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

struct EncoderAttrs {
  LookupTable<std::string_view> texts;
  LookupTable<int64_t> numbers;
  int64_t categories = 0;
  bool strings = false;
  bool zeros = true;  // an unknown category is all zeros, else an Error
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<EncoderAttrs>();
  const auto texts = c.texts("cats_strings");
  const auto numbers = c.integers("cats_int64s");
  if (texts.empty() == numbers.empty())
    c.reject("expected one of the attributes 'cats_strings' and 'cats_int64s'");
  a->zeros = c.integer("zeros", 1) != 0;
  a->strings = !texts.empty();
  a->categories = static_cast<int64_t>(texts.size() + numbers.size());
  a->texts = LookupTable<std::string_view>(c.arena(), texts.size());
  a->numbers = LookupTable<int64_t>(c.arena(), numbers.size());
  for (size_t i = 0; i < texts.size(); ++i) a->texts.insert(texts[i], static_cast<int32_t>(i));
  for (size_t i = 0; i < numbers.size(); ++i) a->numbers.insert(numbers[i], static_cast<int32_t>(i));
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<EncoderAttrs>();
  c.expect_type(0, a.strings ? kStringType : kFeatureTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, ElementType::kFloat);
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  dims.push_back(a.categories);
  c.set_output(0, ElementType::kFloat, dims);
}

template <typename F>
void encode(const RunContext& c, F&& category_at) {
  const auto& a = c.attrs<EncoderAttrs>();
  auto* y = c.outputs[0].as<float>();
  std::fill_n(y, c.outputs[0].elements(), 0.f);
  for (int64_t i = 0; i < c.inputs[0].elements(); ++i) {
    const int32_t category = category_at(i);
    if (category >= 0)
      y[i * a.categories + category] = 1;
    else if (!a.zeros)
      fail(ErrorCode::kInvalidArgument, "{}: element {} is none of the {} categories, and 'zeros' is 0",
           c.node->label(), i, a.categories);
  }
}

// Reals are cut to integers, as the specification says; a NaN is no category.
template <typename T>
int32_t category_of(const EncoderAttrs& a, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return -1;
    return a.numbers.find(cast_to_integer<int64_t>(value));
  } else {
    return a.numbers.find(static_cast<int64_t>(value));
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<EncoderAttrs>();
  const TensorView& x = c.inputs[0];
  if (a.strings) return encode(c, [&](int64_t i) { return a.texts.find(text_at(x, i)); });
  visit_numeric(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4)
      encode(c, [&](int64_t i) { return category_of(a, x.as<T>()[i]); });
  });
}

}  // namespace

extern const OpDef op_one_hot_encoder = {
    .domain = kMlDomain,
    .name = "OneHotEncoder",
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
