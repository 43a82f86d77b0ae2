// What the operators on strings share.
#pragma once

#include <cstring>
#include <string_view>

#include "graph/op_def.h"

namespace plimsoll {

inline constexpr TypeSet kStringType = types(ElementType::kString);

// Element i; infer may see data at any address.
inline std::string_view text_at(const TensorView& view, int64_t i) {
  StringRef text;
  std::memcpy(static_cast<void*>(&text), view.data + i * static_cast<int64_t>(sizeof(StringRef)),
              sizeof(StringRef));
  return text.view();
}
inline StringRef text_ref(std::string_view text) {
  return {text.data(), text.size()};
}
// Throws unless element i is UTF-8.
std::string_view utf8_at(const Node& node, const TensorView& view, int64_t i);
// Memory for the characters of one output, one piece for all elements.
char* allocate_text(const RunContext& c, int64_t bytes);
// A view as Errors show it: printable, and not too long.
std::string shown(std::string_view text);

}  // namespace plimsoll
