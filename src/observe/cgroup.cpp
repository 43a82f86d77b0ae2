#include "observe/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace plimsoll {
namespace {

// One mounted hierarchy, from a line of mountinfo.
struct Mount {
  int version = 0;
  std::string root;  // the part of the hierarchy that is mounted
  std::string point;
  std::string options;  // version 1: the controllers are among them
};

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

// mountinfo writes spaces and the like as three octal digits.
std::string unescape(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size() &&
                       std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   text.begin() + static_cast<std::ptrdiff_t>(i) + 4,
                                   [](char c) { return c >= '0' && c <= '7'; });
    if (octal) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// "36 35 98:0 /root /point options optional... - type source superblock-options"
std::optional<Mount> parse_mount(std::string_view line) {
  Mount mount;
  for (int i = 0; i < 3; ++i) next_word(line);
  mount.root = unescape(next_word(line));
  mount.point = unescape(next_word(line));
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  line.remove_prefix(dash + 3);
  const std::string_view type = next_word(line);
  mount.version = type == "cgroup" ? 1 : type == "cgroup2" ? 2 : 0;
  if (mount.version == 0) return std::nullopt;
  next_word(line);
  mount.options = next_word(line);
  return mount;
}

std::vector<Mount> read_mounts(FileReader& reader, const CgroupRoots& roots) {
  std::vector<Mount> mounts;
  std::string_view text = reader.read((roots.proc + "/self/mountinfo").c_str()).value_or("");
  while (const auto line = next_line(text)) {
    if (auto mount = parse_mount(*line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

bool is_directory(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// The directory of `path` beneath a mount of the part `root` of its hierarchy; nothing if it is not in it.
std::optional<std::string> directory_of(const Mount& mount, const std::string& path,
                                        const std::string& tree) {
  std::string_view below = path;
  if (below.find("/..") != std::string_view::npos) return std::nullopt;  // outside our cgroup namespace
  if (mount.root != "/") {
    if (!below.starts_with(mount.root)) return std::nullopt;
    below.remove_prefix(mount.root.size());
    if (!below.empty() && below.front() != '/') return std::nullopt;
  }
  std::string directory = tree + mount.point;
  if (below != "/") directory += below;
  return is_directory(directory) ? std::optional(directory) : std::nullopt;
}

// "4:memory:/user/1" or "0::/user/1"
std::optional<CgroupPlace> parse_place(std::string_view line) {
  const size_t first = line.find(':');
  const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  CgroupPlace place;
  place.controllers = split(line.substr(first + 1, second - first - 1), ',');
  place.version = place.controllers.empty() ? 2 : 1;
  place.path = line.substr(second + 1);
  return place;
}

bool carries(const Mount& mount, const CgroupPlace& place) {
  if (mount.version != place.version) return false;
  if (place.version == 2) return true;
  const std::vector<std::string> options = split(mount.options, ',');
  return std::find(options.begin(), options.end(), place.controllers.front()) != options.end();
}

// Fills in where the place's files are.
bool locate(CgroupPlace& place, const std::vector<Mount>& mounts, const CgroupRoots& roots,
            FileReader& reader) {
  for (const Mount& mount : mounts) {
    if (!carries(mount, place)) continue;
    const auto directory = directory_of(mount, place.path, roots.tree);
    if (!directory) continue;
    place.directory = *directory;
    place.mount_point = roots.tree + mount.point;
    if (place.version == 2) {
      std::string_view text = reader.read((place.directory + "/cgroup.controllers").c_str()).value_or("");
      text = next_line(text).value_or("");
      place.controllers = split(text, ' ');
    }
    return true;
  }
  return false;
}

}  // namespace

bool CgroupPlace::has(std::string_view controller) const noexcept {
  return std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
}

std::vector<CgroupPlace> cgroup_places(int pid, const CgroupRoots& roots) {
  FileReader reader;
  const std::vector<Mount> mounts = read_mounts(reader, roots);
  const std::string process = pid == 0 ? "self" : std::to_string(pid);
  std::string_view view = reader.read((roots.proc + "/" + process + "/cgroup").c_str()).value_or("");
  const std::string copy(view);
  view = copy;
  std::vector<CgroupPlace> places;
  while (const auto line = next_line(view)) {
    auto place = parse_place(*line);
    if (place && locate(*place, mounts, roots, reader)) places.push_back(std::move(*place));
  }
  return places;
}

std::optional<CgroupPlace> find_controller(const std::vector<CgroupPlace>& places,
                                           std::string_view controller) {
  const CgroupPlace* found = nullptr;
  for (const CgroupPlace& place : places) {
    if (place.has(controller) && (found == nullptr || place.version == 1)) found = &place;
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<CgroupPlace> find_unified(const std::vector<CgroupPlace>& places) {
  const auto found = std::find_if(places.begin(), places.end(), [](const auto& p) { return p.version == 2; });
  return found == places.end() ? std::nullopt : std::optional(*found);
}

MemoryCgroup::MemoryCgroup(CgroupPlace place)
    : place_(std::move(place)),
      directory_(::open(place_.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

MemoryCgroup::MemoryCgroup(MemoryCgroup&& other) noexcept
    : place_(std::move(other.place_)),
      directory_(std::exchange(other.directory_, -1)),
      reader_(std::move(other.reader_)) {}

MemoryCgroup& MemoryCgroup::operator=(MemoryCgroup&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(directory_, other.directory_);
  std::swap(reader_, other.reader_);
  return *this;
}

MemoryCgroup::~MemoryCgroup() {
  if (directory_ >= 0) ::close(directory_);
}

std::optional<MemoryCgroup> MemoryCgroup::of_process(int pid, const CgroupRoots& roots) {
  auto place = find_controller(cgroup_places(pid, roots), "memory");
  if (!place) return std::nullopt;
  MemoryCgroup cgroup(std::move(*place));
  if (cgroup.directory_ < 0) return std::nullopt;
  return cgroup;
}

std::string_view MemoryCgroup::file(const char* name) const {
  if (directory_ < 0) return {};
  return reader_.read_at(directory_, name).value_or("");
}

std::optional<int64_t> MemoryCgroup::number(const char* version_1, const char* version_2) const {
  return parse_number(file(version() == 1 ? version_1 : version_2));
}

std::optional<int64_t> MemoryCgroup::usage_bytes() const {
  return number("memory.usage_in_bytes", "memory.current");
}

std::optional<int64_t> MemoryCgroup::peak_bytes() const {
  return number("memory.max_usage_in_bytes", "memory.peak");
}

std::optional<int64_t> MemoryCgroup::swap_bytes() const {
  if (version() == 1) return number_of(stat(), "total_swap");
  return parse_number(file("memory.swap.current"));
}

std::string_view MemoryCgroup::stat() const {
  return file("memory.stat");
}

std::optional<int64_t> MemoryCgroup::limit_bytes() const {
  if (version() == 1) {
    // The kernel walks up for us, beyond what is mounted here. "No limit" is the largest multiple of a page.
    constexpr int64_t kNoLimit = int64_t{1} << 62;
    const auto limit = number_of(stat(), "hierarchical_memory_limit");
    return limit && *limit < kNoLimit ? limit : std::nullopt;
  }
  std::optional<int64_t> tightest;
  for (std::string directory = place_.directory; directory.size() >= place_.mount_point.size();) {
    const auto limit = parse_number(reader_.read((directory + "/memory.max").c_str()).value_or(""));
    if (limit && (!tightest || *limit < *tightest)) tightest = limit;
    directory.resize(std::min(directory.size() - 1, directory.rfind('/')));
  }
  return tightest;
}

MemoryEvents MemoryCgroup::events() const {
  MemoryEvents events;
  if (version() == 1) {
    events.oom_kills = number_of(file("memory.oom_control"), "oom_kill").value_or(0);
    events.limit_failures = parse_number(file("memory.failcnt")).value_or(0);
  } else {
    events.oom_kills = number_of(file("memory.events"), "oom_kill").value_or(0);
    // The other file counts the limits of cgroups below too; before 5.2 there is no other.
    auto failures = number_of(file("memory.events.local"), "max");
    if (!failures) failures = number_of(file("memory.events"), "max");
    events.limit_failures = failures.value_or(0);
  }
  return events;
}

}  // namespace plimsoll
