// What a process has around it: a test that leaves something behind sees a difference.
#pragma once

#include <dirent.h>
#include <plimsoll/isolate.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <set>
#include <string>

#include "observe/cgroup.h"

namespace plimsoll {

// Made after a first job. Our open descriptors, our children (zombies too), the cgroups beneath ours with our
// name, and our files in the temporary directory and in /dev/shm.
struct Residents {
  std::set<std::string> descriptors, children, cgroups, files;

  Residents() {
    static const bool warm = [] {  // the first job starts the guard, which stays as long as we do
      Command command;
      command.argv = {"/bin/true"};
      return Exec(command).receipt.exit_code == 0;
    }();
    (void)warm;
    const std::string self = std::to_string(::getpid());
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const auto target = std::filesystem::read_symlink(entry.path(), error);
      if (!error && target != "/proc/" + self + "/fd") descriptors.insert(entry.path().filename());
    }
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream file(entry.path() / "children");
      for (std::string pid; file >> pid;) children.insert(pid);
    }
    for (const CgroupPlace& place : cgroup_places(0)) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(place.directory, error)) {
        if (entry.path().filename().string().starts_with("plimsoll-" + self + "-"))
          cgroups.insert(entry.path());
      }
    }
    for (const char* directory : {"/tmp", "/dev/shm"}) {
      std::error_code error;
      for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("plimsoll-" + self)) files.insert(entry.path());
      }
    }
  }

  bool operator==(const Residents&) const = default;

  friend std::ostream& operator<<(std::ostream& out, const Residents& residents) {
    for (const auto* names :
         {&residents.descriptors, &residents.children, &residents.cgroups, &residents.files}) {
      out << "{";
      for (const std::string& name : *names) out << " " << name;
      out << " } ";
    }
    return out;
  }
};

}  // namespace plimsoll
