#include "ops/scatter_reduction.h"

#include "ops/gradient_terms.h"

#include <cstring>

#include "kernels/storage.h"
#include "tensor/half_bits.h"

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

template <typename T>
void combine_all(ScatterReduction reduction, T* target, const T* update, int64_t count) {
  if constexpr (kernels::kIsHalf<T>) {
    constexpr int64_t kBlock = 256;
    if (count == 1) {  // ScatterElements: one at a time
      *target = store_inline<T>(combine(reduction, load_inline(*target), load_inline(*update)));
      return;
    }
    float a[kBlock], b[kBlock];
    for (int64_t start = 0; start < count; start += kBlock) {
      const int64_t size = std::min(kBlock, count - start);
      kernels::widen(target + start, a, size);
      kernels::widen(update + start, b, size);
      combine_all(reduction, a, b, size);
      kernels::narrow(a, target + start, size);
    }
  } else {
    // Sums are what is usually asked for: a loop of its own is one of vectors.
    if (reduction == ScatterReduction::kAdd) {
      for (int64_t i = 0; i < count; ++i) target[i] = combine(ScatterReduction::kAdd, target[i], update[i]);
    } else {
      for (int64_t i = 0; i < count; ++i) target[i] = combine(reduction, target[i], update[i]);
    }
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
    combine_all(reduction, reinterpret_cast<T*>(target), reinterpret_cast<const T*>(update), count);
  };
  if (type == ElementType::kBool) {
    // add and max are or, mul and min are and: on 0 and 1 that is max and min.
    const bool is_or = reduction == ScatterReduction::kAdd || reduction == ScatterReduction::kMax;
    reduction = is_or ? ScatterReduction::kMax : ScatterReduction::kMin;
    return typed(TypeTag<uint8_t>{});
  }
  visit_numeric(type, typed);
}

namespace {

// Those equal to the result share what arrives.
void gradient_of_extremes(GradientContext& c, const ScatterNodes& n) {
  const Term y = out(c), data = in(c, 0), updates = in(c, 2);
  const auto gathered = [&](const Term& x) { return Term(c, n.gather(x.edge())); };
  const Term of_data = data.binary("Equal", y).cast(data.type());
  const Term of_updates = updates.binary("Equal", gathered(y)).cast(data.type());
  const Term count(c, n.scatter(of_data.edge(), of_updates.edge(), "add"));
  const Term share = dy(c) / count;
  // What replaced everything it met has a count of at least 1, like everything else.
  c.set(0, (of_data * share).edge());
  if (c.wants(2)) c.set(2, (of_updates * gathered(share)).edge());
}

// The product of all the others: with zeros left out and counted, it is 0 where there is another one.
void gradient_of_products(GradientContext& c, const ScatterNodes& n) {
  const Term data = in(c, 0), updates = in(c, 2);
  const auto is_zero = [](const Term& x) { return x.binary("Equal", x.number(0)); };
  const auto or_one = [&](const Term& x) { return is_zero(x).choose(x.number(1), x); };
  const auto as_number = [&](const Term& x) { return is_zero(x).cast(data.type()); };
  const auto gathered = [&](const Term& x) { return Term(c, n.gather(x.edge())); };
  const Term rest(c, n.scatter(or_one(data).edge(), or_one(updates).edge(), "mul"));
  const Term zeros(c, n.scatter(as_number(data).edge(), as_number(updates).edge(), "add"));
  const auto others = [&](const Term& x, const Term& product, const Term& count) {
    const Term more = count - as_number(x);
    return (more > 0.5).choose(x.number(0), product / or_one(x));
  };
  c.set(0, (dy(c) * others(data, rest, zeros)).edge());
  if (!c.wants(2)) return;
  c.set(2, (gathered(dy(c)) * others(updates, gathered(rest), gathered(zeros))).edge());
}

}  // namespace

void gradient_reduced_scatter(GradientContext& c, ScatterReduction reduction, const ScatterNodes& nodes) {
  if (reduction == ScatterReduction::kMul) return gradient_of_products(c, nodes);
  gradient_of_extremes(c, nodes);
}

}  // namespace plimsoll
