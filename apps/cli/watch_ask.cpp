#include "watch_ask.h"

#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace plimsoll::cli {
namespace {

#include "kAskNodeJs.inc"

namespace fs = std::filesystem;

constexpr const char* kDirectories = "/tmp";
constexpr const char* kPrefix = "plimsoll-asked-";
constexpr const char* kNodeFile = "/node.js";

// Node's permissions and policies refuse what they do not list, and end the program over it.
bool forbids_loading(const std::string& option) {
  return option.find("--permission") != std::string::npos ||
         option.find("--experimental-permission") != std::string::npos ||
         option.find("policy") != std::string::npos;
}

// Whether a process that we may look at was started with it: it would miss what it is told to load.
bool is_known_to_a_process(const std::string& directory) {
  std::error_code error;
  for (fs::directory_iterator process("/proc", error), end; !error && process != end;
       process.increment(error)) {
    std::ifstream file(process->path() / "environ", std::ios::binary);
    const std::string environment(std::istreambuf_iterator<char>(file), {});
    if (environment.find(directory) != std::string::npos) return true;
  }
  return false;
}

// Ours, complete, and of a watch that has gone: a living one holds its lock before it writes the file.
bool is_left_behind(const std::string& directory) {
  struct stat status = {};
  const bool is_ours = ::lstat(directory.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                       status.st_uid == ::geteuid() && ::access((directory + kNodeFile).c_str(), F_OK) == 0;
  if (!is_ours) return false;
  const Descriptor lock(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  return lock.get() >= 0 && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && !is_known_to_a_process(directory);
}

void remove_left_behind() {
  std::error_code error;
  for (fs::directory_iterator entry(kDirectories, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path();
    if (!entry->path().filename().string().starts_with(kPrefix) || !is_left_behind(path)) continue;
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

}  // namespace

// In /tmp, where another user's processes of the command can read it too: what Node is told to load and
// cannot, ends it.
AskedRuntimes::AskedRuntimes() {
  constexpr mode_t kReadable = 0755;
  remove_left_behind();
  std::string name = std::string(kDirectories) + "/" + kPrefix + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return;
  directory_ = name;
  lock_ = std::make_unique<Descriptor>(directory_, O_RDONLY | O_DIRECTORY);
  const bool is_locked = lock_->get() >= 0 && ::flock(lock_->get(), LOCK_EX | LOCK_NB) == 0;
  std::ofstream file(name + kNodeFile);
  file << kAskNodeJs;
  file.close();
  const bool is_there = is_locked && !file.fail() && ::chmod(name.c_str(), kReadable) == 0 &&
                        ::chmod((name + kNodeFile).c_str(), 0644) == 0;
  if (!is_there) remove();
}

AskedRuntimes::~AskedRuntimes() {
  remove();
}

void AskedRuntimes::remove() {
  if (directory_.empty()) return;
  std::error_code error;
  fs::remove_all(directory_, error);
  directory_.clear();
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
