#include "symbols.h"

#include <algorithm>
#include <cctype>

namespace plimsoll::cli {
namespace {

struct Term {
  int64_t sign = 1;
  std::vector<std::string> factors;
};

std::vector<Term> split(const std::string& expression) {
  if (expression.find_first_of("(),") != std::string::npos) return {{1, {expression}}};
  std::vector<Term> terms(1);
  std::string name;
  const auto finish = [&] {
    if (!name.empty()) terms.back().factors.push_back(name);
    name.clear();
  };
  // Operators stand between spaces, but for products: a name may well have a minus in it.
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression.compare(i, 3, " + ") == 0 || expression.compare(i, 3, " - ") == 0) {
      finish();
      terms.push_back({expression[i + 1] == '-' ? -1 : 1, {}});
      i += 2;
    } else if (expression[i] == '*') {
      finish();
    } else {
      name += expression[i];
    }
  }
  finish();
  return terms;
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 18 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::vector<std::string> symbols_in(const std::string& expression) {
  std::vector<std::string> names;
  for (const Term& term : split(expression)) {
    for (const std::string& factor : term.factors) {
      if (!is_number(factor)) names.push_back(factor);
    }
  }
  return names;
}

std::optional<int64_t> evaluate(const std::string& expression, const Sizes& sizes) {
  if (const auto known = sizes.find(expression); known != sizes.end()) return known->second;
  int64_t sum = 0;
  for (const Term& term : split(expression)) {
    int64_t product = term.sign;
    if (term.factors.empty()) return std::nullopt;
    for (const std::string& factor : term.factors) {
      const auto known = sizes.find(factor);
      if (!is_number(factor) && known == sizes.end()) return std::nullopt;
      const int64_t value = is_number(factor) ? std::stoll(factor) : known->second;
      if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  if (sum < 0) return std::nullopt;
  return sum;
}

}  // namespace plimsoll::cli
