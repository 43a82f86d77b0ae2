#include <algorithm>

#include "ops/feature_rows.h"
#include "ops/lookup_table.h"
#include "ops/maps.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

struct VectorizerAttrs {
  LookupTable<std::string_view> texts;
  LookupTable<int64_t> numbers;
  std::span<int32_t> same;  // by position: the one before it that has the same key, or -1
  bool strings = false;
  int64_t size = 0;
};

// A vocabulary may list a key more than once.
template <typename Key>
void read_vocabulary(AttrContext& c, VectorizerAttrs& a, LookupTable<Key>& table, std::span<const Key> keys) {
  table = LookupTable<Key>(c.arena(), keys.size());
  a.same = c.arena().array<int32_t>(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    a.same[i] = table.find(keys[i]);
    table.insert(keys[i], static_cast<int32_t>(i));
  }
  a.size = static_cast<int64_t>(keys.size());
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<VectorizerAttrs>();
  const auto texts = c.texts("string_vocabulary");
  const auto numbers = c.integers("int64_vocabulary");
  if (texts.empty() == numbers.empty())
    c.reject("expected one of the attributes 'string_vocabulary' and 'int64_vocabulary'");
  a->strings = !texts.empty();
  if (a->strings)
    read_vocabulary(c, *a, a->texts, texts);
  else
    read_vocabulary(c, *a, a->numbers, numbers);
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<VectorizerAttrs>();
  const ElementType values =
      expect_map(c, a.strings ? kStringType : types(ElementType::kInt64),
                 types(ElementType::kInt64, ElementType::kFloat, ElementType::kDouble, ElementType::kString));
  c.set_output(0, values, std::vector<Dim>{Dim(1), Dim(a.size)});
}

// Keys that are not in the vocabulary are left out, as in ONNX Runtime.
template <typename T>
void vectorize(const VectorizerAttrs& a, const MapParts& map, T* y) {
  std::fill_n(y, a.size, T{});
  for (int64_t i = 0; i < map.count(); ++i) {
    const int32_t found =
        a.strings ? a.texts.find(text_at(map.keys, i)) : a.numbers.find(map.keys.as<int64_t>()[i]);
    for (int32_t at = found; at >= 0; at = a.same[static_cast<size_t>(at)]) y[at] = map.values.as<T>()[i];
  }
}

void run_values(ValueRun& run) {
  const auto& a = *static_cast<const VectorizerAttrs*>(run.node().attrs);
  const MapParts map = map_at(run, 0);
  const int64_t dims[] = {1, a.size};
  const TensorView output = run.make_output(0, map.values.type, dims);
  visit_width(output.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    vectorize(a, map, output.as<T>());
  });
}

}  // namespace

extern const OpDef op_dict_vectorizer = {
    .domain = kMlDomain,
    .name = "DictVectorizer",
    .attrs = attrs,
    .infer = infer,
    .run_values = run_values,
};

}  // namespace plimsoll
