#include "observe/jvm_counters.h"

#include <dirent.h>
#include <fcntl.h>

#include <bit>
#include <cstring>
#include <memory>

#include "observe/procfs.h"

namespace plimsoll {

namespace {

static_assert(std::endian::native == std::endian::little, "a JVM writes its counters in the machine's order");

template <typename Number>
std::optional<Number> number_at(std::string_view bytes, size_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Number)) return std::nullopt;
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(Number));
  return number;
}

// One entry: its length, and where its name and value are.
struct Entry {
  size_t length = 0;
  std::string_view name;
  int64_t value = 0;
  bool is_number = false;
};

std::optional<Entry> entry_at(std::string_view bytes, size_t offset) {
  constexpr int32_t kLeastLength = 20;
  const auto length = number_at<int32_t>(bytes, offset), name = number_at<int32_t>(bytes, offset + 4),
             vector = number_at<int32_t>(bytes, offset + 8), value = number_at<int32_t>(bytes, offset + 16);
  const auto type = number_at<char>(bytes, offset + 12);
  if (!length || !name || !vector || !type || !value || *length < kLeastLength || *name < 0 || *value < 0)
    return std::nullopt;
  if (static_cast<size_t>(*length) > bytes.size() - offset || *name >= *length) return std::nullopt;
  Entry entry;
  entry.length = static_cast<size_t>(*length);
  entry.name = bytes.substr(offset + static_cast<size_t>(*name), entry.length - static_cast<size_t>(*name));
  entry.name = entry.name.substr(0, entry.name.find('\0'));
  const auto number = number_at<int64_t>(bytes, offset + static_cast<size_t>(*value));
  entry.is_number = *type == 'J' && *vector == 0 && number;
  entry.value = number.value_or(0);
  return entry;
}

}  // namespace

std::optional<JvmCounters> parse_jvm_counters(std::string_view bytes) {
  constexpr std::string_view kMagic = "\xca\xfe\xc0\xc0\x01\x02";  // little-endian, version 2
  if (!bytes.starts_with(kMagic)) return std::nullopt;
  size_t offset = static_cast<size_t>(number_at<uint32_t>(bytes, 24).value_or(0));
  const int32_t count = number_at<int32_t>(bytes, 28).value_or(0);
  JvmCounters counters;
  bool has_old = false;
  for (int32_t i = 0; i < count; ++i) {
    const auto entry = entry_at(bytes, offset);
    if (!entry) break;
    offset += entry->length;
    if (!entry->is_number || entry->value < 0) continue;
    if (entry->name == "sun.gc.generation.1.space.0.used") {
      has_old = true;
      counters.live_bytes += entry->value;
    } else if (entry->name == "sun.gc.generation.0.space.1.used" ||
               entry->name == "sun.gc.generation.0.space.2.used") {
      counters.live_bytes += entry->value;
    } else if (entry->name.starts_with("sun.gc.collector.") && entry->name.ends_with(".invocations")) {
      counters.collections += entry->value;
    }
  }
  if (!has_old) return std::nullopt;
  return counters;
}

bool is_jvm(std::string_view name) {
  return name.starts_with("java");
}

std::string find_jvm_counters(int directory, FileReader& reader) {
  const std::string pid(own_number(reader.read_at(directory, "status").value_or("")));
  if (pid.empty()) return "";
  const int place = ::openat(directory, "root/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (place < 0) return "";
  const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(place), ::closedir);
  if (!names) return "";
  while (const dirent* name = ::readdir(names.get())) {
    if (!std::string_view(name->d_name).starts_with("hsperfdata_")) continue;
    std::string path = std::string("root/tmp/") + name->d_name + "/" + pid;
    if (reader.read_at(directory, path.c_str())) return path;
  }
  return "";
}

}  // namespace plimsoll
