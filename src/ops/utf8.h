// UTF-8 and the case of letters, the same on every machine: no locale takes part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plimsoll {

// Takes one character off the front of `text`, which must not be empty. Returns -1, and takes one byte, where
// the bytes are not UTF-8: overlong, a surrogate, beyond U+10FFFF, cut short.
int32_t next_character(std::string_view& text);
bool is_utf8(std::string_view text);
// Writes at most 4 bytes; returns how many.
size_t encode_character(int32_t character, char* to);

enum class LetterCase : uint8_t { kKeep, kLower, kUpper };

// Unicode's simple mapping, one character to one: the sharp s has no capital, a final sigma is like any
// other.
int32_t change_case(int32_t character, LetterCase to);
// Both expect UTF-8. `write` writes as many bytes as the first tells.
size_t changed_case_bytes(std::string_view text, LetterCase to);
void write_changed_case(std::string_view text, LetterCase to, char* destination);
// -1, 0 or 1: `text`, whose case is changed on the fly, against `other`, by characters. Expects UTF-8.
int compare_changed_case(std::string_view text, LetterCase change, std::string_view other);

// What Python's str.isspace says.
bool is_space(int32_t character);

}  // namespace plimsoll
