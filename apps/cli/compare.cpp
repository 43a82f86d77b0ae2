#include "compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "elements.h"

namespace plimsoll::cli {
namespace {

std::string position(size_t index, const std::vector<int64_t>& shape) {
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = static_cast<int64_t>(index) % shape[d];
    index /= static_cast<size_t>(shape[d]);
  }
  return shape_text(at);
}

bool close(double found, double expected, const Tolerance& tolerance) {
  if (std::isnan(found) || std::isnan(expected)) return std::isnan(found) && std::isnan(expected);
  if (std::isinf(found) || std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

// Counts the elements that differ and keeps the worst.
class Mismatches {
 public:
  void add(size_t index, double error) {
    // NaN where none should be is worse than any distance.
    const double weight = std::isnan(error) ? HUGE_VAL : error;
    if (count_++ == 0 || weight > worst_) worst_ = weight, index_ = index;
  }
  size_t count() const { return count_; }
  size_t index() const { return index_; }

 private:
  size_t count_ = 0, index_ = 0;
  double worst_ = 0;
};

// The distance between neighbours, relative to them: two correct answers may differ by so much.
double spacing(ElementType type) {
  switch (type) {
    case ElementType::kBFloat16:
      return 0x1p-7;
    case ElementType::kFloat16:
      return 0x1p-10;
    default:
      return 0;  // floats and doubles: far below any tolerance; smaller ones: exactly
  }
}

Mismatches compare_reals(const Value& found, const Value& expected, Tolerance tolerance) {
  Mismatches wrong;
  tolerance.relative = std::max(tolerance.relative, spacing(expected.GetElementType()));
  const size_t count = expected.GetElementCount();
  for (size_t i = 0; i < count; ++i) {
    const double f = real_element(found, i), e = real_element(expected, i);
    if (!close(f, e, tolerance)) wrong.add(i, std::abs(f - e));
  }
  return wrong;
}

// Complex numbers as twice as many reals.
Value as_reals(const Value& value) {
  const bool narrow = value.GetElementType() == ElementType::kComplex64;
  return Value::CreateTensor(narrow ? ElementType::kFloat : ElementType::kDouble,
                             {static_cast<int64_t>(2 * value.GetElementCount())},
                             const_cast<void*>(value.GetData()), value.GetByteCount());
}

Mismatches compare_exactly(const Value& found, const Value& expected) {
  Mismatches wrong;
  const bool strings = expected.GetElementType() == ElementType::kString;
  for (size_t i = 0; i < expected.GetElementCount(); ++i) {
    const bool same = strings ? found.GetString(i) == expected.GetString(i)
                              : integer_element(found, i) == integer_element(expected, i);
    if (!same) wrong.add(i, strings ? 1 : std::abs(real_element(found, i) - real_element(expected, i)));
  }
  return wrong;
}

std::string text(const Value& value, size_t index) {
  if (is_float(value.GetElementType())) return fmt::format("{:.9g}", real_element(value, index));
  return json_element(value, index).dump();
}

// Sequences and maps: element by element.
std::optional<std::string> list_difference(const Value& found, const Value& expected,
                                           const Tolerance& tolerance) {
  if (found.GetCount() != expected.GetCount())
    return fmt::format("expected {}, found {}", expected.GetTypeInfo(), found.GetTypeInfo());
  const bool is_map = expected.IsMap();
  for (size_t i = 0; i < expected.GetCount(); ++i) {
    if (const auto wrong = difference(found.GetValue(i), expected.GetValue(i), tolerance))
      return fmt::format("{}: {}",
                         !is_map  ? fmt::format("element {}", i)
                         : i == 0 ? "keys"
                                  : "values",
                         *wrong);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> difference(const Value& found, const Value& expected, const Tolerance& tolerance) {
  if (found.GetKind() != expected.GetKind())
    return fmt::format("expected {}, found {}", expected.GetTypeInfo(), found.GetTypeInfo());
  if (!expected.HasValue()) return std::nullopt;
  if (!expected.IsTensor()) return list_difference(found, expected, tolerance);
  const ElementType type = expected.GetElementType();
  if (found.GetElementType() != type)
    return fmt::format("expected type {}, found {}", element_type_name(type),
                       element_type_name(found.GetElementType()));
  if (found.GetShape() != expected.GetShape())
    return fmt::format("expected shape {}, found {}", shape_text(expected.GetShape()),
                       shape_text(found.GetShape()));
  const bool is_complex = type == ElementType::kComplex64 || type == ElementType::kComplex128;
  const Mismatches wrong = is_complex       ? compare_reals(as_reals(found), as_reals(expected), tolerance)
                           : is_float(type) ? compare_reals(found, expected, tolerance)
                                            : compare_exactly(found, expected);
  if (wrong.count() == 0) return std::nullopt;
  const size_t worst = is_complex ? wrong.index() / 2 : wrong.index();
  return fmt::format("{} of {} elements differ, worst at {}: expected {}, found {}", wrong.count(),
                     expected.GetElementCount(), position(worst, expected.GetShape()), text(expected, worst),
                     text(found, worst));
}

}  // namespace plimsoll::cli
