// Whether an answer is the expected one, as ONNX's own test runner decides it.
#pragma once

#include <plimsoll/value.h>

#include <optional>
#include <string>

namespace plimsoll::cli {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

// What is wrong, or nothing. Types and shapes must be equal, and integers, bools and strings exactly; floats
// within absolute + relative * |expected|, where relative is never below the spacing of the type; NaN equals
// NaN, an infinity itself. Sequences and maps are compared element by element.
std::optional<std::string> difference(const Value& found, const Value& expected, const Tolerance& tolerance);

}  // namespace plimsoll::cli
