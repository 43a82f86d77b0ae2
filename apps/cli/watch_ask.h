// Asks the runtimes of a command that watch starts what their heaps hold, through what they load by
// themselves.
#pragma once

#include <plimsoll/observe.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace plimsoll::cli {

// Owns a directory in which runtimes find what they load, and write what they hold. Where it cannot be made,
// nothing is asked.
class AskedRuntimes {
 public:
  AskedRuntimes();
  ~AskedRuntimes();
  AskedRuntimes(const AskedRuntimes&) = delete;
  AskedRuntimes& operator=(const AskedRuntimes&) = delete;

  const std::string& directory() const noexcept { return directory_; }  // empty: there is none
  // Changes the environment that the command gets, unless it was started in a way that forbids to load
  // anything.
  void ask(const std::vector<std::string>& command, std::map<std::string, std::string>& environment) const;

 private:
  std::string directory_;
};

// What was told and asked, for people; empty: nothing.
std::string asked_text(std::span<const Sample> samples);

}  // namespace plimsoll::cli
