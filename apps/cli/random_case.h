// ONNX's cases whose expected outputs are numpy's random numbers, which no other generator gives.
#pragma once

#include <plimsoll/value.h>

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::cli {

// One of the ten, by the name of its directory.
bool is_random_case(const std::string& name);

// What is wrong with the outputs of such a case, or nothing. Types and shapes are those of the data; what was
// drawn is possible, and as frequent as it should be, within five standard deviations.
std::optional<std::string> random_difference(const std::string& name, const std::vector<Value>& inputs,
                                             const std::vector<Value>& found,
                                             const std::vector<Value>& expected);

}  // namespace plimsoll::cli
