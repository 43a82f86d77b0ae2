// Elements of any type, one at a time: to print and to compare.
#pragma once

#include <plimsoll/value.h>

#include <optional>

#include "json.h"

namespace plimsoll::cli {

// Bits of one element; 0 for an undefined type, 128 for a string's handle.
int element_bits(ElementType type);
bool is_float(ElementType type);
// Elements and bytes of a shape; nothing if a size is negative or the product overflows.
std::optional<int64_t> count_elements(const std::vector<int64_t>& shape);
std::optional<int64_t> count_bytes(ElementType type, const std::vector<int64_t>& shape);

// A real number of any type up to 64 bits, as a double: exact but for 64-bit integers above 2^53.
double real_element(const Value& value, size_t index);
int64_t integer_element(const Value& value, size_t index);
Json json_element(const Value& value, size_t index);

// "[1, 3, 224, 224]"
std::string shape_text(const std::vector<int64_t>& shape);

}  // namespace plimsoll::cli
