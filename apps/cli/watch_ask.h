// Asks the runtimes of a command that watch starts what their heaps hold, through what they load by
// themselves.
#pragma once

#include <plimsoll/observe.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "descriptor.h"

namespace plimsoll::cli {

// Owns a directory in which runtimes find what they load, and write what they hold. Where it cannot be made,
// nothing is asked. What a watch of ours left behind that was killed is removed with the next one, unless a
// process that it started still knows it.
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
  void remove();

  std::string directory_;
  std::unique_ptr<Descriptor> lock_;  // of the directory, for as long as we live
};

// What was told and asked, for people; empty: nothing.
std::string asked_text(std::span<const Sample> samples);

}  // namespace plimsoll::cli
