#include "ops/cast_elements.h"

#include <charconv>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/copy.h"
#include "ops/elementwise.h"

namespace plimsoll {

void read_cast_rules(AttrContext& c, CastAttrs& attrs) {
  attrs.rules.saturate_infinity = c.opset() >= 24;
  if (c.opset() >= 19) attrs.rules.saturate = c.integer("saturate", 1) != 0;
  if (c.opset() < 24) return;
  const std::string_view mode = c.text("round_mode", "up");
  if (mode != "up" && mode != "down" && mode != "nearest")
    c.reject("attribute 'round_mode': expected up, down or nearest, found '{}'", mode);
  attrs.rules.rounding = mode == "up"     ? E8M0Rounding::kUp
                         : mode == "down" ? E8M0Rounding::kDown
                                          : E8M0Rounding::kNearest;
}

void infer_cast(InferContext& c, ElementType to) {
  c.expect_type(0, kCastTypes);
  if (!kCastTypes.contains(to)) c.reject("expected another type than {} to cast to", element_type_name(to));
  set_output_like(c, 0, to, 0);
  if (!is_integer(to) || !c.ranked(0)) return;
  const auto values = known_values(c, 0);
  if (!values) return;
  for (Dim value : *values) {
    if (!fits(value, to)) return;
  }
  c.set_values(0, *values);
}

namespace {

// Every conversion without a kernel goes through one of three carriers, so that there are few loops and not
// the square of the types.
constexpr int64_t kChunk = 512;
union Carrier {
  double real[kChunk];
  int64_t integer[kChunk];
  uint64_t natural[kChunk];
};
enum class CarrierKind { kReal, kInteger, kNatural };

CarrierKind carrier_of(ElementType type) {
  if (is_float(type) || is_small_float(type)) return CarrierKind::kReal;
  return type == ElementType::kUint64 ? CarrierKind::kNatural : CarrierKind::kInteger;
}

// The bits of elements that are not whole C++ types.
void load_small(const TensorView& from, int64_t start, int64_t count, Carrier& carrier) {
  const int bits = element_bits(from.type);
  float table[256];
  if (is_small_float(from.type)) decode_table(from.type, table);
  for (int64_t i = 0; i < count; ++i) {
    if (!is_small_float(from.type)) {
      carrier.integer[i] = integer_at(from.type, from.data, start + i);
    } else {
      const unsigned pattern =
          bits == 8 ? from.as<uint8_t>()[start + i] : packed_bits(from.data, bits, start + i);
      carrier.real[i] = static_cast<double>(table[pattern]);
    }
  }
}

void load(const TensorView& from, int64_t start, int64_t count, Carrier& carrier) {
  if (is_small_float(from.type) || is_small_integer(from.type))
    return load_small(from, start, count, carrier);
  visit_bool_or_numeric(from.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = from.as<T>() + start;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<T, uint64_t>) {
        carrier.natural[i] = x[i];
      } else if constexpr (std::is_integral_v<T>) {
        carrier.integer[i] = static_cast<int64_t>(x[i]);
      } else {
        carrier.real[i] = static_cast<double>(load_element(x[i]));
      }
    }
  });
  if (from.type == ElementType::kBool) {
    for (int64_t i = 0; i < count; ++i) carrier.integer[i] = carrier.integer[i] != 0;
  }
}

template <typename C>
void store_small(const SmallFloatRules& rules, const C* carrier, const TensorView& to, int64_t start,
                 int64_t count) {
  const int bits = element_bits(to.type);
  for (int64_t i = 0; i < count; ++i) {
    unsigned pattern;
    if (is_small_float(to.type)) {
      pattern = encode_small_float(to.type, static_cast<double>(carrier[i]), rules);
    } else if constexpr (std::is_same_v<C, double>) {
      pattern = static_cast<unsigned>(cast_to_integer<int64_t>(std::rint(carrier[i])));
    } else {
      pattern = static_cast<unsigned>(carrier[i]);
    }
    if (bits == 8) {
      to.as<uint8_t>()[start + i] = static_cast<uint8_t>(pattern);
    } else {
      set_packed_bits(to.data, bits, start + i, pattern);
    }
  }
}

template <typename C>
void store(const SmallFloatRules& rules, const C* carrier, const TensorView& to, int64_t start,
           int64_t count) {
  if (is_small_float(to.type) || is_small_integer(to.type))
    return store_small(rules, carrier, to, start, count);
  if (to.type == ElementType::kBool) {
    for (int64_t i = 0; i < count; ++i) to.as<uint8_t>()[start + i] = carrier[i] != 0;
    return;
  }
  visit_numeric(to.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = to.as<T>() + start;
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_same_v<C, double> && std::is_integral_v<T>) {
        y[i] = cast_to_integer<T>(carrier[i]);
      } else {
        y[i] = static_cast<T>(static_cast<ComputeType<T>>(carrier[i]));
      }
    }
  });
}

void store_any(const SmallFloatRules& rules, CarrierKind kind, const Carrier& carrier, const TensorView& to,
               int64_t start, int64_t count) {
  switch (kind) {
    case CarrierKind::kReal:
      return store(rules, carrier.real, to, start, count);
    case CarrierKind::kInteger:
      return store(rules, carrier.integer, to, start, count);
    case CarrierKind::kNatural:
      return store(rules, carrier.natural, to, start, count);
  }
}

// ---- text -------------------------------------------------------------------------------------------

// The shortest decimal that reads back as the same number; NaN, INF and -INF.
StringRef print(const TensorView& from, int64_t i, TextMemory& memory) {
  const auto keep = [&](std::string_view text) {
    char* copy = memory.allocate(text.size());
    std::memcpy(copy, text.data(), text.size());
    return StringRef{copy, text.size()};
  };
  const auto number = [&](auto value) {
    char buffer[64];
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      if (std::isnan(value)) return keep("NaN");
      if (std::isinf(value)) return keep(value > 0 ? "INF" : "-INF");
    }
    const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
    return keep({buffer, static_cast<size_t>(end - buffer)});
  };
  if (from.type == ElementType::kBool) return keep(from.as<uint8_t>()[i] != 0 ? "1" : "0");
  if (is_small_integer(from.type)) return number(integer_at(from.type, from.data, i));
  if (is_small_float(from.type)) {
    const int bits = element_bits(from.type);
    return number(
        decode_small_float(from.type, bits == 8 ? from.as<uint8_t>()[i] : packed_bits(from.data, bits, i)));
  }
  if (is_float(from.type))
    return visit_float(from.type, [&](auto tag) {
      return number(load_element(from.as<typename decltype(tag)::type>()[i]));
    });
  return visit_integer(from.type,
                       [&](auto tag) { return number(from.as<typename decltype(tag)::type>()[i]); });
}

[[noreturn]] void reject_text(const Node& node, std::string_view text) {
  fail(ErrorCode::kInvalidArgument, "{}: expected a number, found \"{}\"", node.label(), text.substr(0, 40));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(kSpace) - first + 1);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

template <typename T>
bool parse_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

double parse_real(const Node& node, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) reject_text(node, text);
  if (error == std::errc::result_out_of_range) {  // too large or too small: by the exponent's sign
    const size_t exponent = text.find_first_of("eE");
    const bool tiny =
        exponent != std::string_view::npos && text.substr(exponent).find('-') != std::string_view::npos;
    const double magnitude = tiny ? 0 : std::numeric_limits<double>::infinity();
    return text[0] == '-' ? -magnitude : magnitude;
  }
  if (error != std::errc()) reject_text(node, text);
  return value;
}

void parse(const Node& node, const SmallFloatRules& rules, std::string_view raw, const TensorView& to,
           int64_t i) {
  const std::string_view text = trimmed(raw);
  Carrier carrier;
  const bool integer = is_integer(to.type) || is_small_integer(to.type);
  if (integer && parse_all(text, carrier.integer[0])) return store(rules, carrier.integer, to, i, 1);
  if (integer && parse_all(text, carrier.natural[0])) return store(rules, carrier.natural, to, i, 1);
  if (to.type == ElementType::kFloat) {  // rounded once
    float value;
    if (parse_all(text, value)) {
      to.as<float>()[i] = value;
      return;
    }
  }
  carrier.real[0] = parse_real(node, text);
  store(rules, carrier.real, to, i, 1);
}

}  // namespace

void run_cast(const RunContext& c) {
  const TensorView& from = c.inputs[0];
  const TensorView& to = c.outputs[0];
  const int64_t count = from.elements();
  const SmallFloatRules& rules = c.attrs<CastAttrs>().rules;
  if (element_bits(to.type) < 8 && from.data != to.data)
    clear_padding_bits(to.data, element_bits(to.type), count);
  if (from.type == to.type && from.type != ElementType::kBool) {
    kernels::copy_bytes(to.data, from.data, to.bytes());
    return;
  }
  if (to.type == ElementType::kString) {
    for (int64_t i = 0; i < count; ++i) to.as<StringRef>()[i] = print(from, i, *c.text);
    return;
  }
  if (from.type == ElementType::kString) {
    for (int64_t i = 0; i < count; ++i) parse(*c.node, rules, from.as<StringRef>()[i].view(), to, i);
    return;
  }
  const CarrierKind kind = carrier_of(from.type);
  kernels::parallel_for(count > 65536 ? c.threads : 1, (count + kChunk - 1) / kChunk, [&](int64_t chunk) {
    Carrier carrier;
    const int64_t start = chunk * kChunk;
    const int64_t n = std::min(kChunk, count - start);
    if (element_bits(from.type) >= 8 && element_bits(to.type) >= 8) {
      const int64_t x = start * element_bits(from.type) / 8, y = start * element_bits(to.type) / 8;
      if (kernels::convert(from.type, from.data + x, to.type, to.data + y, n)) return;
    }
    load(from, start, n, carrier);
    store_any(rules, kind, carrier, to, start, n);
  });
}

}  // namespace plimsoll
