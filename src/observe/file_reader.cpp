#include "observe/file_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>

namespace plimsoll {

constexpr size_t kFirstCapacity = 8192;

bool FileReader::grow(size_t used) noexcept {
  const size_t larger = capacity_ == 0 ? kFirstCapacity : capacity_ * 4;
  std::unique_ptr<char[]> buffer(new (std::nothrow) char[larger]);
  if (!buffer) return false;
  if (used > 0) std::memcpy(buffer.get(), buffer_.get(), used);
  buffer_ = std::move(buffer);
  capacity_ = larger;
  return true;
}

std::optional<std::string_view> FileReader::read(const char* path) noexcept {
  return read_at(AT_FDCWD, path);
}

std::optional<std::string_view> FileReader::read_at(int directory, const char* path) noexcept {
  const int descriptor = ::openat(directory, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) {
    error_ = errno;
    return std::nullopt;
  }
  const auto text = read_descriptor(descriptor);
  ::close(descriptor);
  return text;
}

std::optional<std::string_view> FileReader::read_descriptor(int descriptor) noexcept {
  if (!buffer_) capacity_ = 0;  // moved from
  size_t used = 0;
  for (;;) {
    if (used == capacity_ && !grow(used)) {
      error_ = ENOMEM;
      return std::nullopt;
    }
    const ssize_t got = ::pread(descriptor, buffer_.get() + used, capacity_ - used, static_cast<off_t>(used));
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      error_ = errno;
      return std::nullopt;
    }
    used += static_cast<size_t>(got);
  }
  error_ = 0;
  return std::string_view(buffer_.get(), used);
}

std::optional<std::string_view> next_line(std::string_view& text) noexcept {
  if (text.empty()) return std::nullopt;
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view next_word(std::string_view& text) noexcept {
  const size_t start = text.find_first_not_of(" \t");
  if (start == std::string_view::npos) return text = {};
  text.remove_prefix(start);
  const std::string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

std::optional<int64_t> parse_number(std::string_view text) noexcept {
  const size_t start = text.find_first_not_of(" \t\n");
  if (start == std::string_view::npos) return std::nullopt;
  text = text.substr(start, text.find_last_not_of(" \t\n") + 1 - start);
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> number_of(std::string_view text, std::string_view key) noexcept {
  while (auto line = next_line(text)) {
    if (!line->starts_with(key)) continue;
    std::string_view rest = line->substr(key.size());
    if (rest.empty() || (rest.front() != ' ' && rest.front() != ':' && rest.front() != '\t')) continue;
    if (rest.front() == ':') rest.remove_prefix(1);
    return parse_number(next_word(rest));
  }
  return std::nullopt;
}

}  // namespace plimsoll
