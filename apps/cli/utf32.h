// numpy keeps strings as UTF-32, ONNX as UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::cli {

// Bytes of little-endian code points; what is not valid becomes U+FFFD.
std::string utf8_from_utf32(std::string_view bytes);
std::string utf32_from_utf8(std::string_view text);

}  // namespace plimsoll::cli
