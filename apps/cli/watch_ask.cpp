#include "watch_ask.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace plimsoll::cli {
namespace {

#include "kAskNodeJs.inc"

constexpr const char* kNodeFile = "/node.js";

// Node's permissions and policies refuse what they do not list, and end the program over it.
bool forbids_loading(const std::string& option) {
  return option.find("--permission") != std::string::npos ||
         option.find("--experimental-permission") != std::string::npos ||
         option.find("policy") != std::string::npos;
}

}  // namespace

// In /tmp, where another user's processes of the command can read it too: what Node is told to load and
// cannot, ends it.
AskedRuntimes::AskedRuntimes() {
  constexpr mode_t kReadable = 0755;
  std::string name = "/tmp/plimsoll-asked-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return;
  std::ofstream file(name + kNodeFile);
  file << kAskNodeJs;
  file.close();
  const bool is_there =
      !file.fail() && ::chmod(name.c_str(), kReadable) == 0 && ::chmod((name + kNodeFile).c_str(), 0644) == 0;
  directory_ = name;
  if (is_there) return;
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
  directory_.clear();
}

AskedRuntimes::~AskedRuntimes() {
  if (directory_.empty()) return;
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

void AskedRuntimes::ask(const std::vector<std::string>& command,
                        std::map<std::string, std::string>& environment) const {
  if (directory_.empty()) return;
  std::string& options = environment["NODE_OPTIONS"];
  if (std::any_of(command.begin(), command.end(), forbids_loading) || forbids_loading(options)) {
    if (options.empty()) environment.erase("NODE_OPTIONS");
    return;
  }
  options += (options.empty() ? "--require " : " --require ") + directory_ + kNodeFile;
}

std::string asked_text(std::span<const Sample> samples) {
  std::map<int, TreeMember> told;
  double seconds = 0;
  for (const Sample& sample : samples) {
    seconds = std::max(seconds, sample.seconds);
    for (const TreeMember& member : sample.members) {
      if (member.heap_bytes >= 0) told.insert_or_assign(member.pid, member);
    }
  }
  if (told.empty()) return "";
  int64_t asked = 0, collections = 0;
  double took = 0;
  for (const auto& [pid, member] : told) {
    asked += member.asked_collections;
    collections += member.collections;
    took += member.asked_seconds;
  }
  return fmt::format(
      "Node told what its heap holds ({} process(es)): {} full collections, of which {} were asked for and "
      "took "
      "{:.0f} ms of processor time, {:.2f} % of a core; --no-ask leaves it alone",
      told.size(), collections, asked, 1e3 * took, seconds > 0 ? 100 * took / seconds : 0);
}

}  // namespace plimsoll::cli
