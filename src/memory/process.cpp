#include <cstdio>
#include <cstring>

#include "plimsoll/memory_report.h"

namespace plimsoll {

ProcessMemory read_process_memory() {
  ProcessMemory memory;
  std::FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return memory;
  char line[256];
  auto read = [&](const char* key, int64_t& bytes) {
    const size_t length = std::strlen(key);
    long long kib = 0;
    if (std::strncmp(line, key, length) == 0 && std::sscanf(line + length, "%lld", &kib) == 1)
      bytes = kib * 1024;
  };
  int64_t shared = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    read("VmRSS:", memory.rss_bytes);
    read("VmHWM:", memory.peak_rss_bytes);
    read("RssAnon:", memory.anonymous_bytes);
    read("RssFile:", memory.file_bytes);
    read("RssShmem:", shared);
  }
  memory.file_bytes += shared;
  std::fclose(file);
  return memory;
}

}  // namespace plimsoll
