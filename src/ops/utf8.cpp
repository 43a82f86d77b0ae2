#include "ops/utf8.h"

#include <algorithm>
#include <iterator>

namespace plimsoll {

int32_t next_character(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  int32_t character = length <= 1 ? lead : lead & (0x7f >> length);
  bool valid = length != 0 && length <= text.size();
  for (size_t i = 1; valid && i < length; ++i) {
    valid = (byte(i) & 0xc0) == 0x80;
    character = (character << 6) | (byte(i) & 0x3f);
  }
  constexpr int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (!valid || character < kLeast[length] || (character >= 0xd800 && character < 0xe000) ||
      character > 0x10ffff) {
    text.remove_prefix(1);
    return -1;
  }
  text.remove_prefix(length);
  return character;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    if (next_character(text) < 0) return false;
  }
  return true;
}

size_t encode_character(int32_t character, char* to) {
  const auto c = static_cast<uint32_t>(character);
  if (c < 0x80) {
    to[0] = static_cast<char>(c);
    return 1;
  }
  const size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = length - 1; i > 0; --i)
    to[i] = static_cast<char>(0x80 | ((c >> (6 * (length - 1 - i))) & 0x3f));
  to[0] = static_cast<char>((0xf00u >> length & 0xff) | (c >> (6 * (length - 1))));
  return length;
}

namespace {

// Every step-th character from first to last is `distance` away from its other case.
struct CaseRun {
  int32_t first, last, step, distance;
};
#include "ops/letter_case_table.inc"

int32_t mapped(const CaseRun* begin, const CaseRun* end, int32_t character) {
  const CaseRun* run =
      std::lower_bound(begin, end, character, [](const CaseRun& r, int32_t c) { return r.last < c; });
  if (run == end || character < run->first || (character - run->first) % run->step != 0) return character;
  return character + run->distance;
}

}  // namespace

int32_t change_case(int32_t character, LetterCase to) {
  if (to == LetterCase::kLower) {
    if (character < 0x80) return character >= 'A' && character <= 'Z' ? character + 32 : character;
    return mapped(std::begin(kLowerRuns), std::end(kLowerRuns), character);
  }
  if (to == LetterCase::kUpper) {
    if (character < 0x80) return character >= 'a' && character <= 'z' ? character - 32 : character;
    return mapped(std::begin(kUpperRuns), std::end(kUpperRuns), character);
  }
  return character;
}

size_t changed_case_bytes(std::string_view text, LetterCase to) {
  size_t bytes = 0;
  char buffer[4];
  while (!text.empty()) bytes += encode_character(change_case(next_character(text), to), buffer);
  return bytes;
}

void write_changed_case(std::string_view text, LetterCase to, char* destination) {
  while (!text.empty()) destination += encode_character(change_case(next_character(text), to), destination);
}

int compare_changed_case(std::string_view text, LetterCase change, std::string_view other) {
  while (!text.empty() && !other.empty()) {
    const int32_t a = change_case(next_character(text), change), b = next_character(other);
    if (a != b) return a < b ? -1 : 1;
  }
  return static_cast<int>(!text.empty()) - static_cast<int>(!other.empty());
}

bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

}  // namespace plimsoll
