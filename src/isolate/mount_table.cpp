#include "isolate/mount_table.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <mutex>

#include "base/descriptor.h"
#include "observe/file_reader.h"

namespace plimsoll {
namespace {

// The kernel writes spaces and the like as \040.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      plain.push_back(
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

}  // namespace

// "36 35 98:0 /root /point options [shared:1 ...] - type source super_options"
std::vector<MountEntry> parse_mounts(std::string_view mountinfo) {
  std::vector<MountEntry> mounts;
  while (auto line = next_line(mountinfo)) {
    MountEntry mount;
    next_word(*line), next_word(*line);
    mount.device = next_word(*line);
    next_word(*line);
    mount.point = unescaped(next_word(*line));
    const std::string_view options = next_word(*line);
    mount.read_only = options == "ro" || options.starts_with("ro,");
    for (std::string_view word = next_word(*line); !word.empty() && word != "-";) word = next_word(*line);
    mount.type = next_word(*line);
    mount.source = unescaped(next_word(*line));
    if (!mount.type.empty()) mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::shared_ptr<const std::vector<MountEntry>> mount_table() {
  struct Known {
    std::mutex mutex;
    int owner = 0;  // a child of fork() shares the descriptor, and what it was told of
    Descriptor file;
    std::shared_ptr<const std::vector<MountEntry>> table;
  };
  static Known known;
  const std::lock_guard lock(known.mutex);
  if (known.owner != ::getpid()) {
    known.owner = ::getpid();
    known.table.reset();
    known.file.reset(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  }
  pollfd changed = {known.file.get(), POLLPRI, 0};
  const bool is_news =
      known.file && ::poll(&changed, 1, 0) > 0 && (changed.revents & (POLLPRI | POLLERR)) != 0;
  if (!known.table || is_news || !known.file) {
    FileReader reader;
    known.table = std::make_shared<const std::vector<MountEntry>>(
        parse_mounts(reader.read("/proc/self/mountinfo").value_or("")));
  }
  return known.table;
}

}  // namespace plimsoll
