#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>

#include "base/descriptor.h"
#include "plimsoll/memory_report.h"

namespace plimsoll {
namespace {

// Of a line such as "VmRSS:	    1234 kB"; 0 if there is none.
int64_t bytes_of(std::string_view status, std::string_view key) {
  size_t at = status.find(key);
  if (at == std::string_view::npos) return 0;
  at = status.find_first_not_of(" \t", at + key.size());
  int64_t kib = 0;
  if (at != std::string_view::npos) std::from_chars(status.data() + at, status.data() + status.size(), kib);
  return kib * 1024;
}

}  // namespace

ProcessMemory read_process_memory() {
  ProcessMemory memory;
  const Descriptor file(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  if (!file) return memory;
  std::array<char, 8192> text;  // the system writes all of it at once
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return memory;
  const std::string_view status(text.data(), static_cast<size_t>(size));
  memory.rss_bytes = bytes_of(status, "\nVmRSS:");
  memory.peak_rss_bytes = bytes_of(status, "\nVmHWM:");
  memory.anonymous_bytes = bytes_of(status, "\nRssAnon:");
  memory.file_bytes = bytes_of(status, "\nRssFile:") + bytes_of(status, "\nRssShmem:");
  return memory;
}

}  // namespace plimsoll
