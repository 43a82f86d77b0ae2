#include "observe/jvm_counters.h"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
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

constexpr int64_t kMostBytes = int64_t{1} << 50;  // what is more is no heap's

// Generation 0 is the young one, with eden as space 0 and the survivors as 1 and 2.
void add_space(std::string_view name, int64_t value, JvmCounters& counters, bool& has_old) {
  constexpr std::string_view kYoung = "sun.gc.generation.0.space.", kOld = "sun.gc.generation.1.space.0.used";
  constexpr int64_t kNoSpace = 4096;
  size_t space = JvmCounters::kSpaces;
  if (name == kOld) {
    has_old = true;
    space = JvmCounters::kOld;
  } else if (name.size() > kYoung.size() && name.starts_with(kYoung) && name.ends_with(".used")) {
    space = static_cast<size_t>(name[kYoung.size()]) - '0';
  } else if (name == "sun.gc.generation.0.capacity") {
    counters.young_capacity_bytes = value;
  } else if (name == "sun.gc.generation.1.capacity") {
    counters.old_capacity_bytes = value;
  } else if (name == "sun.gc.generation.0.space.1.maxCapacity") {
    counters.has_regions = value < kNoSpace;
  }
  if (space >= JvmCounters::kSpaces) return;
  counters.used_bytes[space] = value;
  if (space != JvmCounters::kEden) counters.live_bytes += value;
}

}  // namespace

// What was in use between two looks is not seen. The figure is too small by that until it is seen, so that
// what is beside the heap may seem to fall, and does not seem to rise. G1 takes young regions from the end of
// the heap: what was committed just now is in use next, and what was before stays resident without use.
int64_t TouchedHeap::update(const JvmCounters& now) {
  const int64_t capacity = now.young_capacity_bytes + now.old_capacity_bytes;
  if (now.has_regions && capacity_bytes_ > 0 && capacity > capacity_bytes_)
    most_[JvmCounters::kEden] += std::min(capacity - capacity_bytes_, now.young_capacity_bytes);
  capacity_bytes_ = capacity;
  int64_t young = 0;
  for (const auto space : {JvmCounters::kEden, JvmCounters::kSurvivors, JvmCounters::kOtherSurvivors}) {
    const int64_t room = (now.has_regions ? capacity : now.young_capacity_bytes) - young;
    most_[space] = std::min(std::max(most_[space], now.used_bytes[space]), room);
    young += most_[space];
  }
  int64_t& old = most_[JvmCounters::kOld];
  old = std::min(std::max(old, now.used_bytes[JvmCounters::kOld]),
                 now.has_regions ? capacity - young : now.old_capacity_bytes);
  return young + old;
}

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
    if (entry->name.starts_with("sun.gc.collector.") && entry->name.ends_with(".invocations")) {
      counters.collections += std::min(entry->value, kMostBytes);
    } else if (entry->name.starts_with("sun.gc.generation.")) {
      add_space(entry->name, std::min(entry->value, kMostBytes), counters, has_old);
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
