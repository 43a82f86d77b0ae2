#include "ops/scatter_reduction.h"

#include <cstring>

namespace plimsoll {

ScatterReduction read_scatter_reduction(AttrContext& c) {
  if (c.opset() < 16) return ScatterReduction::kNone;
  const std::string_view text = c.text("reduction", "none");
  if (text == "none") return ScatterReduction::kNone;
  if (text == "add") return ScatterReduction::kAdd;
  if (text == "mul") return ScatterReduction::kMul;
  if (text == "max" && c.opset() >= 18) return ScatterReduction::kMax;
  if (text == "min" && c.opset() >= 18) return ScatterReduction::kMin;
  c.reject("reduction '{}' is unknown (opset {})", text, c.opset());
}

void check_scatter_types(InferContext& c, ScatterReduction reduction) {
  c.expect_type(0, reduction == ScatterReduction::kNone ? kAllTypes : kNumericTypes | kBoolType);
  c.expect_same_type(0, 2);
}

namespace {

template <typename T>
T combine(ScatterReduction reduction, T a, T b) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return static_cast<T>(combine(reduction, static_cast<float>(a), static_cast<float>(b)));
  } else {
    // Integers wrap.
    using Wide = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
    switch (reduction) {
      case ScatterReduction::kAdd:
        return static_cast<T>(static_cast<Wide>(a) + static_cast<Wide>(b));
      case ScatterReduction::kMul:
        return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
      case ScatterReduction::kMax:
        return std::max(a, b);
      case ScatterReduction::kMin:
        return std::min(a, b);
      case ScatterReduction::kNone:
        break;
    }
    return b;
  }
}

}  // namespace

void scatter_into(ScatterReduction reduction, ElementType type, std::byte* target, const std::byte* update,
                  int64_t count) {
  if (reduction == ScatterReduction::kNone) {
    if (count > 0) std::memcpy(target, update, static_cast<size_t>(count) * width_of(type));
    return;
  }
  auto typed = [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* t = reinterpret_cast<T*>(target);
    const T* u = reinterpret_cast<const T*>(update);
    for (int64_t i = 0; i < count; ++i) t[i] = combine(reduction, t[i], u[i]);
  };
  if (type == ElementType::kBool) {
    // add and max are or, mul and min are and: on 0 and 1 that is max and min.
    const bool is_or = reduction == ScatterReduction::kAdd || reduction == ScatterReduction::kMax;
    reduction = is_or ? ScatterReduction::kMax : ScatterReduction::kMin;
    return typed(TypeTag<uint8_t>{});
  }
  visit_numeric(type, typed);
}

}  // namespace plimsoll
