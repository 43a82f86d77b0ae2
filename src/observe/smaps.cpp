#include "observe/smaps.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>

#include "base/descriptor.h"
#include "observe/file_reader.h"

namespace plimsoll {
namespace {

// A hexadecimal number at the front of `text`, cut off with the character behind it.
bool cut_hex(std::string_view& text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc()) return false;
  const auto used = static_cast<size_t>(end - text.data());
  text.remove_prefix(used < text.size() ? used + 1 : used);
  return true;
}

struct Field {
  std::string_view key;
  int64_t Vma::*member;
};

constexpr Field kFields[] = {
    {"Rss", &Vma::rss},
    {"Pss", &Vma::pss},
    {"Shared_Clean", &Vma::shared_clean},
    {"Shared_Dirty", &Vma::shared_dirty},
    {"Private_Clean", &Vma::private_clean},
    {"Private_Dirty", &Vma::private_dirty},
    {"Anonymous", &Vma::anonymous},
    {"AnonHugePages", &Vma::huge_pages},
    {"LazyFree", &Vma::lazily_freed},
    {"Swap", &Vma::swap},
    {"SwapPss", &Vma::swap_proportional},
};

void read_flags(std::string_view flags, Vma& vma) {
  for (std::string_view flag = next_word(flags); !flag.empty(); flag = next_word(flags)) {
    if (flag == "nr") vma.no_reserve = true;
    if (flag == "nh") vma.no_huge_page = true;
    if (flag == "gd") vma.grows_down = true;
  }
}

}  // namespace

NameTable::NameTable() {
  intern("");
}

uint32_t NameTable::intern(std::string_view name) {
  const auto [entry, added] = indices_.try_emplace(std::string(name), static_cast<uint32_t>(names_.size()));
  if (added) names_.push_back(&entry->first);
  return entry->second;
}

void SmapsParser::feed(std::string_view piece) {
  size_t end = piece.find('\n');
  if (!rest_.empty() && end != std::string_view::npos) {
    rest_.append(piece.substr(0, end));
    line(rest_);
    rest_.clear();
    piece.remove_prefix(end + 1);
    end = piece.find('\n');
  }
  for (; end != std::string_view::npos; end = piece.find('\n')) {
    line(piece.substr(0, end));
    piece.remove_prefix(end + 1);
  }
  rest_.append(piece);
}

void SmapsParser::finish() {
  if (!rest_.empty()) line(rest_);
  rest_.clear();
}

void SmapsParser::line(std::string_view line) {
  if (line.empty()) return;
  const bool is_field = line.front() >= 'A' && line.front() <= 'Z';
  if (is_field)
    field(line);
  else
    header(line);
}

// "7f00-7f10 rw-p 00000000 fe:00 247134        /usr/bin/cat (deleted)"
bool SmapsParser::header(std::string_view line) {
  Vma vma;
  if (!cut_hex(line, vma.start) || !cut_hex(line, vma.end) || line.size() < 5 || vma.end < vma.start)
    return false;
  vma.readable = line[0] == 'r';
  vma.writable = line[1] == 'w';
  vma.executable = line[2] == 'x';
  vma.shared = line[3] == 's';
  line.remove_prefix(5);
  uint64_t offset = 0, major = 0, minor = 0;
  if (!cut_hex(line, offset) || !cut_hex(line, major) || !cut_hex(line, minor)) return false;
  vma.device = major << 32 | minor;
  vma.inode = static_cast<uint64_t>(parse_number(next_word(line)).value_or(0));
  const size_t name = line.find_first_not_of(' ');
  if (name != std::string_view::npos) vma.name = names_.intern(line.substr(name));
  vmas_.push_back(vma);
  return true;
}

void SmapsParser::field(std::string_view line) {
  if (vmas_.empty()) return;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view key = line.substr(0, colon);
  line.remove_prefix(colon + 1);
  if (key == "VmFlags") return read_flags(line, vmas_.back());
  for (const Field& known : kFields) {
    if (key != known.key) continue;
    const size_t digits = line.find_first_not_of(' ');
    int64_t kib = 0;
    if (digits != std::string_view::npos)
      std::from_chars(line.data() + digits, line.data() + line.size(), kib);
    vmas_.back().*known.member = kib * 1024;
    return;
  }
}

bool read_smaps(int directory, const char* path, std::vector<Vma>& vmas, NameTable& names, int& error) {
  const Descriptor file(::openat(directory, path, O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    error = errno;
    return false;
  }
  constexpr size_t kPieceBytes = size_t{64} << 10;
  const auto piece = std::make_unique_for_overwrite<char[]>(kPieceBytes);
  SmapsParser parser(vmas, names);
  error = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.get(), kPieceBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    parser.feed({piece.get(), static_cast<size_t>(got)});
  }
  parser.finish();
  return error == 0;
}

}  // namespace plimsoll
