#include "ops/elementwise.h"
#include "ops/feature_rows.h"
#include "ops/lookup_table.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

struct MapperAttrs {
  std::span<const std::string_view> texts;
  std::span<const int64_t> numbers;
  LookupTable<std::string_view> by_text;
  LookupTable<int64_t> by_number;
  std::string_view default_text;
  int64_t default_number = -1;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<MapperAttrs>();
  a->texts = c.texts("cats_strings");
  a->numbers = c.integers("cats_int64s");
  a->default_text = c.text("default_string", "_Unused");
  a->default_number = c.integer("default_int64", -1);
  if (a->texts.size() != a->numbers.size())
    c.reject("attributes 'cats_strings' and 'cats_int64s': expected as many of both, found {} and {}",
             a->texts.size(), a->numbers.size());
  a->by_text = LookupTable<std::string_view>(c.arena(), a->texts.size());
  a->by_number = LookupTable<int64_t>(c.arena(), a->texts.size());
  for (size_t i = 0; i < a->texts.size(); ++i) {
    a->by_text.insert(a->texts[i], static_cast<int32_t>(i));
    a->by_number.insert(a->numbers[i], static_cast<int32_t>(i));
  }
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kString, ElementType::kInt64));
  set_output_like(c, 0, c.type(0) == ElementType::kString ? ElementType::kInt64 : ElementType::kString, 0);
}

void run(const RunContext& c) {
  const auto& a = c.attrs<MapperAttrs>();
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const int64_t count = x.elements();
  if (x.type == ElementType::kString) {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t found = a.by_text.find(text_at(x, i));
      y.as<int64_t>()[i] = found < 0 ? a.default_number : a.numbers[static_cast<size_t>(found)];
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const int32_t found = a.by_number.find(x.as<int64_t>()[i]);
    y.as<StringRef>()[i] = text_ref(found < 0 ? a.default_text : a.texts[static_cast<size_t>(found)]);
  }
}

}  // namespace

extern const OpDef op_category_mapper = {
    .domain = kMlDomain,
    .name = "CategoryMapper",
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
