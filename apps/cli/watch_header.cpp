#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <fstream>

#include "watch_loop.h"

namespace plimsoll::cli {

RecordingHeader recording_header(const WatchOptions& options, int pid) {
  RecordingHeader header;
  header.command = options.command;
  header.pid = pid;
  std::ifstream comm("/proc/" + std::to_string(pid) + "/comm");
  std::getline(comm, header.name);
  if (header.name.empty() && !options.command.empty()) header.name = options.command[0];
  const std::time_t now = std::time(nullptr);
  struct tm utc = {};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
  header.started = text;
  header.interval_seconds = options.interval_seconds;
  struct utsname system = {};
  if (::uname(&system) == 0) header.facts["kernel"] = std::string(system.sysname) + " " + system.release;
  header.facts["cpus"] = std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
  header.facts["page_bytes"] = std::to_string(::sysconf(_SC_PAGESIZE));
  struct sysinfo memory = {};
  if (::sysinfo(&memory) == 0)
    header.facts["memory_bytes"] = std::to_string(uint64_t{memory.totalram} * memory.mem_unit);
  return header;
}

}  // namespace plimsoll::cli
