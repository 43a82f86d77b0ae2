// Small files of /proc and /sys, read again and again without allocating, and their usual forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace plimsoll {

// Owns one buffer that grows to the largest file seen and is reused. One thread at a time.
class FileReader {
 public:
  // The whole file, valid until the next call, or nothing: then error() is the errno. `directory` is a
  // descriptor that a relative path starts from (AT_FDCWD: the current directory).
  std::optional<std::string_view> read(const char* path) noexcept;
  std::optional<std::string_view> read_at(int directory, const char* path) noexcept;
  // The same for an open descriptor, from the file's start.
  std::optional<std::string_view> read_descriptor(int descriptor) noexcept;
  int error() const noexcept { return error_; }

 private:
  bool grow(size_t used) noexcept;

  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  int error_ = 0;
};

// Cuts the first line off `text`, without its newline; nothing when the text is at its end.
std::optional<std::string_view> next_line(std::string_view& text) noexcept;
// Cuts the first word off `text`; words are separated by spaces and tabs. Empty at the end.
std::string_view next_word(std::string_view& text) noexcept;
// A decimal number, spaces around it allowed; nothing for anything else ("max" among them).
std::optional<int64_t> parse_number(std::string_view text) noexcept;
// The number in the line "KEY NUMBER ..." or "KEY: NUMBER ...".
std::optional<int64_t> number_of(std::string_view text, std::string_view key) noexcept;

}  // namespace plimsoll
