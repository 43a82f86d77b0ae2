#include <cstring>

#include "ops/elementwise.h"
#include "ops/feature_rows.h"
#include "ops/lookup_table.h"
#include "ops/text_elements.h"

namespace plimsoll {
namespace {

constexpr TypeSet kLabelTypes = types(ElementType::kString, ElementType::kInt64, ElementType::kFloat,
                                      ElementType::kInt32, ElementType::kInt16, ElementType::kDouble);

template <typename F>
decltype(auto) visit_label(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kString:
      return f(TypeTag<StringRef>{});
    case ElementType::kFloat:
      return f(TypeTag<float>{});
    case ElementType::kDouble:
      return f(TypeTag<double>{});
    case ElementType::kInt16:
      return f(TypeTag<int16_t>{});
    case ElementType::kInt32:
      return f(TypeTag<int32_t>{});
    default:
      return f(TypeTag<int64_t>{});
  }
}

// Elements of one type in the arena. Element `count` of values is what unknown keys become.
struct LabelList {
  ElementType type = ElementType::kUndefined;
  size_t count = 0;
  std::byte* data = nullptr;
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

// A mapping for one type of keys. Keys of all integer types are int64_t, of both real types double.
struct LabelMap {
  LabelList keys, values;
  LookupTable<std::string_view> texts;
  LookupTable<int64_t> integers;
  LookupTable<double> reals;
};
struct EncoderAttrs {
  LabelMap maps[2];
  size_t count = 1;  // two before version 2: from texts and to them
};

template <typename T>
LabelList make_list(AttrContext& c, size_t count) {
  LabelList list{element_type_of<T>(), count, nullptr};
  list.data = reinterpret_cast<std::byte*>(c.arena().array<T>(count + 1).data());
  return list;
}

LabelList list_of(AttrContext& c, std::span<const std::string_view> texts) {
  const LabelList list = make_list<StringRef>(c, texts.size());
  for (size_t i = 0; i < texts.size(); ++i) list.as<StringRef>()[i] = text_ref(texts[i]);
  return list;
}

template <typename T>
LabelList list_of(AttrContext& c, std::span<const T> values) {
  const LabelList list = make_list<T>(c, values.size());
  std::copy(values.begin(), values.end(), list.as<T>());
  return list;
}

LabelList list_of(AttrContext& c, std::string_view name, const TensorData& tensor) {
  if (!kLabelTypes.contains(tensor.type))
    c.reject("attribute '{}': type {} is not allowed", name, element_type_name(tensor.type));
  return visit_label(tensor.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto count = static_cast<size_t>(tensor.view().elements());
    const LabelList list = make_list<T>(c, count);
    if (count > 0) std::memcpy(static_cast<void*>(list.data), tensor.bytes.data(), count * sizeof(T));
    return list;
  });
}

// The one of the attributes PREFIX_tensor, _strings, _int64s and _floats that is there.
LabelList read_list(AttrContext& c, const std::string& prefix) {
  LabelList list;
  int found = 0;
  const auto take = [&](const LabelList& taken) {
    list = taken;
    ++found;
  };
  const std::string strings = prefix + "_strings", integers = prefix + "_int64s", reals = prefix + "_floats",
                    tensor = prefix + "_tensor";
  // The context remembers names as views.
  const auto name = [&](const std::string& text) { return c.arena().copy(std::string_view(text)); };
  if (const auto texts = c.texts(name(strings)); !texts.empty()) take(list_of(c, texts));
  if (const auto numbers = c.integers(name(integers)); !numbers.empty()) take(list_of(c, numbers));
  if (const auto numbers = c.reals(name(reals)); !numbers.empty()) take(list_of(c, numbers));
  if (c.opset() >= 4) {
    if (const TensorData* data = c.tensor(name(tensor))) take(list_of(c, tensor, *data));
  }
  if (found != 1) c.reject("expected one of the attributes '{}_*', found {}", prefix, found);
  return list;
}

void set_default(AttrContext& c, LabelList& values) {
  const std::string_view text = c.text("default_string", "_Unused");
  const int64_t integer = c.integer("default_int64", -1);
  const float real = c.real("default_float", -0.f);
  const TensorData* tensor = c.opset() >= 4 ? c.tensor("default_tensor") : nullptr;
  if (tensor != nullptr && (tensor->type != values.type || tensor->view().elements() != 1))
    c.reject("attribute 'default_tensor': expected one element of type {}, found {} of {}",
             element_type_name(values.type), tensor->view().elements(), element_type_name(tensor->type));
  visit_label(values.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T& unknown = values.as<T>()[values.count];
    if constexpr (std::is_same_v<T, StringRef>)
      unknown = text_ref(text);
    else if constexpr (std::is_floating_point_v<T>)
      unknown = static_cast<T>(real);
    else
      unknown = static_cast<T>(integer);
    if (tensor != nullptr) std::memcpy(static_cast<void*>(&unknown), tensor->bytes.data(), sizeof(T));
  });
}

void index_keys(AttrContext& c, LabelMap& map) {
  const size_t count = map.keys.count;
  visit_label(map.keys.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto fill = [&](auto& table, auto key_at) {
      for (size_t i = 0; i < count; ++i) table.insert(key_at(map.keys.as<T>()[i]), static_cast<int32_t>(i));
    };
    if constexpr (std::is_same_v<T, StringRef>) {
      map.texts = LookupTable<std::string_view>(c.arena(), count);
      fill(map.texts, [](StringRef key) { return key.view(); });
    } else if constexpr (std::is_floating_point_v<T>) {
      map.reals = LookupTable<double>(c.arena(), count);
      fill(map.reals, [](T key) { return static_cast<double>(key); });
    } else {
      map.integers = LookupTable<int64_t>(c.arena(), count);
      fill(map.integers, [](T key) { return static_cast<int64_t>(key); });
    }
  });
}

// Version 1: texts to their positions, and back.
void read_classes(AttrContext& c, EncoderAttrs& a) {
  const LabelList texts = list_of(c, c.texts("classes_strings"));
  const LabelList positions = make_list<int64_t>(c, texts.count);
  for (size_t i = 0; i < texts.count; ++i) positions.as<int64_t>()[i] = static_cast<int64_t>(i);
  texts.as<StringRef>()[texts.count] = text_ref(c.text("default_string", "_Unused"));
  positions.as<int64_t>()[texts.count] = c.integer("default_int64", -1);
  a.count = 2;
  a.maps[0].keys = a.maps[1].values = texts;
  a.maps[0].values = a.maps[1].keys = positions;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<EncoderAttrs>();
  if (c.opset() < 2) {
    read_classes(c, *a);
  } else {
    LabelMap& map = a->maps[0];
    map.keys = read_list(c, "keys");
    map.values = read_list(c, "values");
    if (map.keys.count != map.values.count)
      c.reject("expected as many keys as values, found {} and {}", map.keys.count, map.values.count);
    set_default(c, map.values);
  }
  for (size_t i = 0; i < a->count; ++i) index_keys(c, a->maps[i]);
  return a;
}

const LabelMap* map_of(const EncoderAttrs& a, ElementType type) {
  for (size_t i = 0; i < a.count; ++i) {
    if (a.maps[i].keys.type == type) return &a.maps[i];
  }
  return nullptr;
}

void infer(InferContext& c) {
  c.expect_type(0, kLabelTypes);
  const auto& a = c.attrs<EncoderAttrs>();
  const LabelMap* map = map_of(a, c.type(0));
  if (map == nullptr)
    c.reject("input 0: expected the type of the keys, {}, found {}", element_type_name(a.maps[0].keys.type),
             element_type_name(c.type(0)));
  set_output_like(c, 0, map->values.type, 0);
}

template <typename T>
int32_t find(const LabelMap& map, T key) {
  if constexpr (std::is_same_v<T, StringRef>)
    return map.texts.find(key.view());
  else if constexpr (std::is_floating_point_v<T>)
    return map.reals.find(static_cast<double>(key));
  else
    return map.integers.find(static_cast<int64_t>(key));
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const LabelMap& map = *map_of(c.attrs<EncoderAttrs>(), x.type);
  const int64_t count = x.elements();
  visit_label(x.type, [&](auto key_tag) {
    using Key = typename decltype(key_tag)::type;
    visit_width(y.type, [&](auto value_tag) {
      using Value = typename decltype(value_tag)::type;
      const auto* values = map.values.as<Value>();
      for (int64_t i = 0; i < count; ++i) {
        const int32_t found = find(map, x.as<Key>()[i]);
        y.as<Value>()[i] = values[found < 0 ? map.values.count : static_cast<size_t>(found)];
      }
    });
  });
}

}  // namespace

extern const OpDef op_label_encoder = {
    .domain = kMlDomain,
    .name = "LabelEncoder",
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
