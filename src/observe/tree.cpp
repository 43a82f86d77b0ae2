#include "observe/tree.h"

#include <dirent.h>

#include <algorithm>
#include <memory>

#include "observe/procfs.h"

namespace plimsoll {

// The kernel tells the last pid it gave away; without a new one there is no new process.
bool ProcessTree::anything_new(FileReader& reader) {
  const std::string_view text = reader.read((proc_root_ + "/loadavg").c_str()).value_or("");
  const size_t space = text.rfind(' ');
  const auto pid = space == std::string_view::npos ? std::nullopt : parse_number(text.substr(space));
  if (!pid) return true;
  const bool wrapped = *pid < last_pid_;
  if (wrapped) known_.clear();  // pids are given away again: who was no member may be one now
  const bool changed = *pid != last_pid_;
  last_pid_ = *pid;
  return changed;
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

const std::vector<ProcessTree::Member>& ProcessTree::update(FileReader& reader) {
  if (members_.empty()) members_.push_back({root_, 0});
  if (!anything_new(reader)) return members_;
  std::vector<int> living = list_processes();
  forget(living);
  if (members_.empty() || members_.front().pid != root_) members_.insert(members_.begin(), {root_, 0});
  for (const int pid : living) {
    if (known_.contains(pid)) continue;
    const ProcessDirectory directory(proc_root_, pid);
    if (const auto stat = directory.stat(reader)) known_[pid] = {stat->parent, stat->start_ticks};
  }
  // A child may have a lower pid than its parent: go on until nobody is added.
  std::unordered_set<int> inside;
  for (const Member& member : members_) inside.insert(member.pid);
  for (bool added = true; added;) {
    added = false;
    for (const int pid : living) {
      const auto entry = known_.find(pid);
      if (entry == known_.end() || inside.contains(pid) || !inside.contains(entry->second.parent)) continue;
      inside.insert(pid);
      members_.push_back({pid, entry->second.start_ticks});
      added = true;
    }
  }
  return members_;
}

}  // namespace plimsoll
