#include "ops/text_elements.h"

#include "ops/utf8.h"

namespace plimsoll {

std::string shown(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, 40)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f)
      result += c;
    else
      result += fmt::format("\\x{:02x}", byte);
  }
  return text.size() > 40 ? result + "..." : result;
}

std::string_view utf8_at(const Node& node, const TensorView& view, int64_t i) {
  const std::string_view text = text_at(view, i);
  if (!is_utf8(text))
    fail(ErrorCode::kInvalidArgument, "{}: element {}: expected UTF-8, found \"{}\"", node.label(), i,
         shown(text));
  return text;
}

char* allocate_text(const RunContext& c, int64_t bytes) {
  return bytes == 0 ? nullptr : c.text->allocate(static_cast<size_t>(bytes));
}

}  // namespace plimsoll
