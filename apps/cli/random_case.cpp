#include "random_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "elements.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kBernoulli[] = {"test_bernoulli",        "test_bernoulli_expanded",
                                      "test_bernoulli_double", "test_bernoulli_double_expanded",
                                      "test_bernoulli_seed",   "test_bernoulli_seed_expanded"};
constexpr const char* kDropout[] = {"test_training_dropout", "test_training_dropout_mask",
                                    "test_training_dropout_default", "test_training_dropout_default_mask"};

template <size_t kCount>
bool is_among(const char* const (&names)[kCount], const std::string& name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

constexpr double kSigmas = 5;

std::optional<std::string> share_difference(double found, double expected, double variance) {
  if (std::fabs(found - expected) <= kSigmas * std::sqrt(variance)) return std::nullopt;
  return fmt::format("{} are there; expected {} within {} standard deviations of {}", found, expected,
                     kSigmas, std::sqrt(variance));
}

// Ones with the probabilities that the input names, zeros otherwise.
std::optional<std::string> bernoulli_difference(const Value& probabilities, const Value& found) {
  double ones = 0, expected = 0, variance = 0;
  for (size_t i = 0; i < found.GetElementCount(); ++i) {
    const double value = real_element(found, i), p = real_element(probabilities, i);
    if (value != 0 && value != 1) return fmt::format("element {} is {}, neither 0 nor 1", i, value);
    ones += value;
    expected += p;
    variance += p * (1 - p);
  }
  return share_difference(ones, expected, variance);
}

// Elements of x, grown by 1 / (1 - ratio), or zeros; the mask says which.
std::optional<std::string> dropout_difference(const std::vector<Value>& inputs,
                                              const std::vector<Value>& found) {
  const double ratio = real_element(inputs[1], 0);
  double kept = 0;
  const size_t count = found[0].GetElementCount();
  for (size_t i = 0; i < count; ++i) {
    const double value = real_element(found[0], i), whole = real_element(inputs[0], i) / (1 - ratio);
    const bool is_kept = value != 0;
    if (is_kept && std::fabs(value - whole) > 1e-5 * std::fabs(whole))
      return fmt::format("element {} is {}, neither 0 nor {}", i, value, whole);
    if (found.size() > 1 && (real_element(found[1], i) != 0) != is_kept)
      return fmt::format("the mask at {} does not agree with the element {}", i, value);
    kept += is_kept ? 1 : 0;
  }
  const auto n = static_cast<double>(count);
  return share_difference(kept, n * (1 - ratio), n * ratio * (1 - ratio));
}

}  // namespace

bool is_random_case(const std::string& name) {
  return is_among(kBernoulli, name) || is_among(kDropout, name);
}

std::optional<std::string> random_difference(const std::string& name, const std::vector<Value>& inputs,
                                             const std::vector<Value>& found,
                                             const std::vector<Value>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i].GetElementType() != expected[i].GetElementType() ||
        found[i].GetShape() != expected[i].GetShape())
      return fmt::format("output {}: expected type {} and shape {}, found type {} and shape {}", i,
                         static_cast<int>(expected[i].GetElementType()), shape_text(expected[i].GetShape()),
                         static_cast<int>(found[i].GetElementType()), shape_text(found[i].GetShape()));
  }
  const bool dropout = is_among(kDropout, name);
  if (inputs.size() < (dropout ? 2u : 1u) || found.empty() || inputs[0].GetShape() != found[0].GetShape())
    return "the case has not the inputs and outputs of its name";
  return dropout ? dropout_difference(inputs, found) : bernoulli_difference(inputs[0], found[0]);
}

}  // namespace plimsoll::cli
