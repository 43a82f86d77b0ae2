#include "observe/tree.h"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "observe/procfs.h"

namespace plimsoll {

namespace {

constexpr int64_t kMostNewPids = 300;  // beyond, listing them all is cheaper than trying each
constexpr size_t kMostKnown = 20'000;

}  // namespace

ProcessTree::ProcessTree(std::string proc_root, int root)
    : proc_root_(std::move(proc_root)), root_(root), numbers_are_ours_(are_numbers_ours(proc_root_)) {}

// The kernel tells the last pid it gave away: without a new one there is no new process, and new ones have
// the numbers between.
ProcessTree::News ProcessTree::look_for_news(FileReader& reader) {
  if (!numbers_are_ours_) return News::kUnknown;
  const std::string_view text = reader.read((proc_root_ + "/loadavg").c_str()).value_or("");
  const size_t space = text.rfind(' ');
  const auto pid = space == std::string_view::npos ? std::nullopt : parse_number(text.substr(space));
  if (!pid) return News::kUnknown;
  pid_before_ = last_pid_;
  last_pid_ = *pid;
  if (last_pid_ == pid_before_) return News::kNone;
  const bool is_range = pid_before_ >= 0 && last_pid_ > pid_before_ &&
                        last_pid_ - pid_before_ <= kMostNewPids && known_.size() < kMostKnown;
  if (last_pid_ < pid_before_) known_.clear();  // given away again: who was no member may be one now
  return is_range ? News::kSome : News::kUnknown;
}

std::vector<int> ProcessTree::list_processes() const {
  std::vector<int> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(proc_root_.c_str()), ::closedir);
  if (!stream) return pids;
  while (const dirent* entry = ::readdir(stream.get())) {
    const auto pid =
        entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? parse_number(entry->d_name) : std::nullopt;
    if (pid) pids.push_back(static_cast<int>(*pid));
  }
  return pids;
}

void ProcessTree::forget(const std::vector<int>& living) {
  const std::unordered_set<int> set(living.begin(), living.end());
  std::erase_if(known_, [&](const auto& entry) { return !set.contains(entry.first); });
  std::erase_if(members_, [&](const Member& member) { return !set.contains(member.pid); });
}

void ProcessTree::drop(int pid) {
  if (pid == root_) return;
  known_.erase(pid);
  std::erase_if(members_, [&](const Member& member) { return member.pid == pid; });
}

void ProcessTree::learn(const std::vector<int>& pids, FileReader& reader) {
  for (const int pid : pids) {
    if (known_.contains(pid)) continue;
    const ProcessDirectory directory(proc_root_, pid);
    if (const auto stat = directory.stat(reader)) known_[pid] = {stat->parent, stat->start_ticks};
  }
}

// Makes members of those whose parents are.
void ProcessTree::adopt(const std::vector<int>& pids, FileReader& reader) {
  std::unordered_set<int> inside;
  for (const Member& member : members_) inside.insert(member.pid);
  // A child may have a lower pid than its parent: go on until nobody is added.
  for (bool added = true; added;) {
    added = false;
    for (const int pid : pids) {
      const auto entry = known_.find(pid);
      if (entry == known_.end() || inside.contains(pid) || !inside.contains(entry->second.parent)) continue;
      // Threads have numbers too, and their process's parent.
      const auto status = ProcessDirectory(proc_root_, pid).status(reader);
      if (!status || status->thread_group != pid) {
        known_.erase(entry);
        continue;
      }
      inside.insert(pid);
      members_.push_back({pid, entry->second.start_ticks});
      added = true;
    }
  }
}

const std::vector<ProcessTree::Member>& ProcessTree::update(FileReader& reader) {
  if (members_.empty()) members_.push_back({root_, 0});
  const News news = look_for_news(reader);
  if (news == News::kNone) return members_;
  std::vector<int> pids;
  if (news == News::kSome) {
    for (int64_t pid = pid_before_ + 1; pid <= last_pid_; ++pid) pids.push_back(static_cast<int>(pid));
  } else {
    pids = list_processes();
    forget(pids);
    if (members_.empty() || members_.front().pid != root_) members_.insert(members_.begin(), {root_, 0});
  }
  learn(pids, reader);
  adopt(pids, reader);
  return members_;
}

}  // namespace plimsoll
