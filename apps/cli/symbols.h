// Sizes that a model writes as expressions, such as "past_sequence_length + sequence_length".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::cli {

using Sizes = std::map<std::string, int64_t>;

// The names in sums and differences of products; an expression with more in it counts as one name.
std::vector<std::string> symbols_in(const std::string& expression);
// Its value, if `sizes` has the expression itself or all names in it.
std::optional<int64_t> evaluate(const std::string& expression, const Sizes& sizes);

}  // namespace plimsoll::cli
