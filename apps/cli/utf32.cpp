#include "utf32.h"

#include <cstdint>
#include <cstring>

namespace plimsoll::cli {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

bool is_scalar(uint32_t point) {
  return point < 0x110000 && (point < 0xd800 || point > 0xdfff);
}

void append_utf8(std::string& out, uint32_t point) {
  const int more = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  out += static_cast<char>(kLead[more] | (point >> (6 * more)));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | ((point >> (6 * i)) & 0x3f));
}

// The code point at the front of `text`, which gets shorter.
uint32_t take_utf8(std::string_view& text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const size_t size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  uint32_t point = size == 1 ? lead : lead & (0x7fu >> size);
  bool valid = size > 0 && size <= text.size() && lead < 0xf5;
  for (size_t i = 1; valid && i < size; ++i) {
    valid = (static_cast<uint8_t>(text[i]) & 0xc0) == 0x80;
    point = point << 6 | (static_cast<uint8_t>(text[i]) & 0x3f);
  }
  text.remove_prefix(valid ? size : 1);
  return valid && is_scalar(point) ? point : kReplacement;
}

}  // namespace

std::string utf8_from_utf32(std::string_view bytes) {
  std::string text;
  for (; bytes.size() >= 4; bytes.remove_prefix(4)) {
    uint32_t point;
    std::memcpy(&point, bytes.data(), sizeof point);
    append_utf8(text, is_scalar(point) ? point : kReplacement);
  }
  return text;
}

std::string utf32_from_utf8(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const uint32_t point = take_utf8(text);
    bytes.append(reinterpret_cast<const char*>(&point), sizeof point);
  }
  return bytes;
}

}  // namespace plimsoll::cli
