// What a file is that is no ONNX model, by its first bytes.
#pragma once

#include <string_view>

namespace plimsoll::onnx {

// A sentence that says what it seems to be and what to do; "" for what is not recognized.
std::string_view advice_on(std::string_view file) noexcept;

}  // namespace plimsoll::onnx
