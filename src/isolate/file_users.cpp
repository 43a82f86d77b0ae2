#include "isolate/file_users.h"

#include <dirent.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "observe/file_reader.h"

namespace plimsoll {
namespace {

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

}  // namespace

FileUsers::FileUsers() {
  FileReader reader;
  const Directory processes(::opendir("/proc"), ::closedir);
  while (const dirent* process = processes ? ::readdir(processes.get()) : nullptr) {
    if (process->d_name[0] < '1' || process->d_name[0] > '9') continue;
    const Directory opened(::opendir(fmt::format("/proc/{}/fd", process->d_name).c_str()), ::closedir);
    while (const dirent* entry = opened ? ::readdir(opened.get()) : nullptr) {
      struct stat file = {};
      if (::fstatat(::dirfd(opened.get()), entry->d_name, &file, 0) == 0 && S_ISREG(file.st_mode))
        files_.emplace(file.st_dev, file.st_ino);
    }
    // "start-end rw-p offset 00:1b 1234 /path"
    std::string_view maps = reader.read(fmt::format("/proc/{}/maps", process->d_name).c_str()).value_or("");
    while (auto line = next_line(maps)) {
      next_word(*line), next_word(*line), next_word(*line);
      const std::string device(next_word(*line));
      const int64_t file = parse_number(next_word(*line)).value_or(0);
      if (file == 0) continue;
      char* rest = nullptr;
      const unsigned long major = std::strtoul(device.c_str(), &rest, 16);
      const unsigned long minor = *rest == ':' ? std::strtoul(rest + 1, nullptr, 16) : 0;
      files_.emplace(makedev(major, minor), static_cast<ino_t>(file));
    }
  }
}

}  // namespace plimsoll
