#include "observe/process_reader.h"

#include <algorithm>
#include <cerrno>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "observe/thread_stacks.h"
#include "observe/told_heap.h"

namespace plimsoll {
namespace {

constexpr int kReadingsPerContext = 60;  // file systems are mounted rarely
constexpr size_t kMostNames = 100'000;   // then the table starts anew
constexpr size_t kMostMembers = 8;       // of a tree, that a sample tells apart
constexpr size_t kLongestCommand = 80;
constexpr double kShareOfShares = 0.1;  // of what all readings may cost
constexpr int64_t kLeastShared = 256 << 10,
                  kLeastChange = 1 << 20;  // bytes that are worth asking for a share

int64_t common_bytes(const ProcessStatus& status) {
  return std::max<int64_t>(status.rss_file_bytes, 0) + std::max<int64_t>(status.rss_shared_memory_bytes, 0);
}

// So much that what was found then in proportion says little.
bool has_changed(const ProcessStatus& then, const ProcessStatus& now) {
  const int64_t before = common_bytes(then);
  return std::abs(common_bytes(now) - before) > std::max(kLeastChange, before / 8);
}

void keep_largest(std::vector<TreeMember>& members) {
  std::stable_sort(members.begin(), members.end(),
                   [](const TreeMember& a, const TreeMember& b) { return a.bytes > b.bytes; });
  if (members.size() > kMostMembers) members.resize(kMostMembers);
}

void add_files(const FileShares& some, FileShares& all) {
  for (const auto& [name, share] : some) {
    all[name].rss_bytes += share.rss_bytes;
    all[name].pss_bytes += share.pss_bytes;
    all[name].written_bytes += share.written_bytes;
  }
}

}  // namespace

ProcessReader::ProcessReader(std::string proc_root, int pid, bool tree, double cost_limit,
                             std::string told_directory)
    : proc_root_(std::move(proc_root)),
      with_tree_(tree),
      told_directory_(std::move(told_directory)),
      numbers_are_ours_(are_numbers_ours(proc_root_)),
      tree_(proc_root_, pid),
      members_{{pid, 0}},
      share_budget_(kShareOfShares * cost_limit) {}

void ProcessReader::forget() {
  memories_.clear();
  full_readings_ = 0;
}

void ProcessReader::refresh_context(const ProcessDirectory& root, const ProcessStat& stat) {
  if (full_readings_++ % kReadingsPerContext != 0) return;
  const auto text = reader_.read_at(root.descriptor(), (root.living_prefix(stat) + "mountinfo").c_str());
  context_.tmpfs_devices = find_tmpfs_devices(text.value_or(""));
  const auto release = reader_.read((proc_root_ + "/sys/kernel/osrelease").c_str());
  context_.stacks_are_marked = marks_stacks(release.value_or(""));
}

ProcessReader::Result ProcessReader::read(const ProcessDirectory& root, const ProcessStat& stat, bool full,
                                          FileShares* files) {
  if (full) refresh_context(root, stat);
  if (with_tree_) members_ = tree_.update(reader_);
  proportional_ |= members_.size() > 1;
  relatives_.clear();
  share_budget_.begin_reading();
  has_changed_ = false;
  Result result;
  result.exact = full;
  for (const ProcessTree::Member& member : members_) {
    bool lives = false;
    if (member.pid == members_.front().pid) {
      lives = read_living(root, stat, full, files, result);
    } else {
      const ProcessDirectory directory(proc_root_, member.pid);
      const auto member_stat = directory.stat(reader_);
      if (!member_stat && is_our_trouble(directory.error() != 0 ? directory.error() : reader_.error())) {
        result.exact = false;  // it may be there again with the next sample
        ++result.gaps.denied;
        continue;
      }
      const bool is_same = member_stat && member_stat->start_ticks == member.start_ticks;
      lives = is_same && read_living(directory, *member_stat, full, files, result);
    }
    if (lives) continue;
    has_changed_ = true;
    memories_.erase(member.pid);
    tree_.drop(member.pid);
    ++result.gaps.vanished;
  }
  std::unordered_set<int> inside;
  for (const ProcessTree::Member& member : members_) inside.insert(member.pid);
  has_changed_ |= std::erase_if(memories_, [&](const auto& e) { return !inside.contains(e.first); }) > 0;
  if (has_changed_) ++generation_;
  result.view.proportional = proportional_ ? 1 : 0;
  keep_largest(result.members);
  return result;
}

// A leader may go before its threads, also between two of our looks: then one of them is asked.
bool ProcessReader::read_living(const ProcessDirectory& directory, const ProcessStat& stat, bool full,
                                FileShares* files, Result& result) {
  if (read_member(directory, stat, full, files, result)) return true;
  if (stat.threads <= 1 || stat.leader_is_leaving()) return false;
  ProcessStat headless = stat;
  headless.state = 'Z';
  return read_member(directory, headless, full, files, result);
}

// False: the process is gone.
bool ProcessReader::read_member(const ProcessDirectory& directory, const ProcessStat& stat, bool full,
                                FileShares* files, Result& result) {
  if (stat.has_ended()) return false;
  const std::string prefix = directory.living_prefix(stat);
  const auto status_text = reader_.read_at(directory.descriptor(), (prefix + "status").c_str());
  if (!status_text) return false;
  const ProcessStatus status = parse_status(*status_text);
  const std::string number = told_directory_.empty() ? std::string() : std::string(own_number(*status_text));
  if (status.rss_bytes == 0 && status.rss_anonymous_bytes < 0) return false;  // it has given its memory up

  Memory& memory = memories_[stat.pid];
  const uint64_t program = stat.program_identity().value_or(memory.program);
  if (memory.start_ticks != stat.start_ticks || memory.program != program) {
    memory = Memory{};
    memory.start_ticks = stat.start_ticks;
    memory.program = program;
    memory.command = command_of(directory, prefix, stat);
    has_changed_ = true;
  }
  FullReading reading;
  reading.status = status;
  FileShares found;
  const int error = full ? read_full(directory, prefix, reading, files != nullptr ? &found : nullptr) : 0;
  if (error == ESRCH) return false;
  const int64_t descriptors = directory.count_descriptors(prefix);
  if (directory.is_leaving(reader_, directory.living_thread(stat))) return false;
  const bool was_full = full && error == 0;
  if (was_full) {
    memory.before = memory.has_full ? memory.full : reading;
    memory.full = reading;
    memory.has_full = true;
    memory.share = {};
    memory.was_asked = false;
    if (files != nullptr) add_files(found, *files);
  }
  if (error != 0) ++result.gaps.denied;
  ProcessView view = was_full          ? (proportional_ ? memory.full.by_pss : memory.full.by_rss)
                     : memory.has_full ? scale_view(&memory.full, &memory.before, status, proportional_)
                                       : scale_view(nullptr, nullptr, own_part(stat, status), proportional_);
  if (!was_full && proportional_) settle_share(directory, prefix, status, memory, view);
  relatives_.emplace(program, status);
  result.exact &= was_full;
  view.rss_bytes = status.rss_bytes;
  view.page_table_bytes = status.page_table_bytes;
  view.processes = 1;
  view.threads = status.threads;
  view.descriptors = std::max<int64_t>(descriptors, 0);
  add_view(result.view, view);
  TreeMember& told = result.members.emplace_back();
  told.pid = stat.pid;
  told.command = memory.command;
  told.bytes = std::max<int64_t>(status.rss_anonymous_bytes, 0);
  if (is_jvm(stat.name)) ask_jvm(directory, memory, told);
  if (!number.empty()) read_told(number, stat, told);
  result.gaps.lazily_freed_bytes += memory.full.lazily_freed_bytes;
  result.gaps.huge_tlb_bytes += status.huge_tlb_bytes;
  return true;
}

void ProcessReader::ask_jvm(const ProcessDirectory& directory, Memory& memory, TreeMember& told) {
  if (memory.counters.empty()) memory.counters = find_jvm_counters(directory.descriptor(), reader_);
  if (memory.counters.empty()) return;
  const auto bytes = reader_.read_at(directory.descriptor(), memory.counters.c_str());
  const auto counters = parse_jvm_counters(bytes.value_or(""));
  if (!counters) return;
  told.live_bytes = counters->live_bytes;
  told.collections = counters->collections;
  told.touched_bytes = memory.touched.update(*counters);
}

void ProcessReader::read_told(const std::string& number, const ProcessStat& stat, TreeMember& told) {
  constexpr double kMicrosecond = 1e-6;
  const auto bytes = reader_.read((told_directory_ + "/" + number).c_str());
  const auto heap = parse_told_heap(bytes.value_or(""));
  if (!heap || heap->start_ticks != stat.start_ticks) return;
  told.live_bytes = heap->live_bytes;
  told.collections = heap->collections;
  told.heap_bytes = heap->heap_bytes;
  told.untold_heaps = heap->untold_heaps;
  told.asked_collections = heap->asked_collections;
  told.asked_seconds = kMicrosecond * static_cast<double>(heap->asked_microseconds);
}

std::string ProcessReader::command_of(const ProcessDirectory& directory, const std::string& prefix,
                                      const ProcessStat& stat) {
  std::string words(reader_.read_at(directory.descriptor(), (prefix + "cmdline").c_str()).value_or(""));
  words = words.substr(0, kLongestCommand);
  std::replace(words.begin(), words.end(), '\0', ' ');
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return printable(words.empty() ? stat.name : words);
}

void ProcessReader::settle_share(const ProcessDirectory& directory, const std::string& prefix,
                                 const ProcessStatus& status, Memory& memory, ProcessView& view) {
  const bool has_base = memory.was_asked || memory.has_full;
  const bool is_first = has_base
                            ? has_changed(memory.was_asked ? memory.share.status : memory.full.status, status)
                            : view.shared_file_bytes + view.shared_memory_bytes >= kLeastShared;
  const bool is_outdated =
      memory.share.known && memory.generation != generation_ && common_bytes(status) >= kLeastChange;
  if ((is_first || is_outdated) && share_budget_.affords(is_first)) {
    const auto rollup = share_budget_.spend([&] {
      return parse_rollup(
          reader_.read_at(directory.descriptor(), (prefix + "smaps_rollup").c_str()).value_or(""));
    });
    memory.share = rollup ? share_of(*rollup, status) : Share{false, status, 0, 0};
    memory.generation = generation_;
    memory.was_asked = true;
  }
  if (memory.share.known) apply_share(memory.share, status, view);
}

// A child that was forked maps its parent's pages: until its mappings are read, only what it has more counts.
ProcessStatus ProcessReader::own_part(const ProcessStat& stat, const ProcessStatus& status) const {
  const auto program = stat.program_identity();
  const bool is_known = program && stat.start_stack != 0;  // without permission all look the same
  const auto relative = is_known && proportional_ ? relatives_.find(*program) : relatives_.end();
  return relative == relatives_.end() ? status : beyond(status, relative->second);
}

int ProcessReader::read_full(const ProcessDirectory& directory, const std::string& prefix, FullReading& full,
                             FileShares* files) {
  if (names_.size() > kMostNames) names_ = {};
  vmas_.clear();
  int error = 0;
  if (!read_smaps(directory.descriptor(), (prefix + "smaps").c_str(), vmas_, names_, error)) return error;
  if (vmas_.empty()) return ESRCH;  // it has given its memory up and is about to end
  const auto mappings = static_cast<int64_t>(vmas_.size());
  if (!context_.stacks_are_marked && numbers_are_ours_ && has_guarded_maps(vmas_)) {
    const std::string pagemap = prefix + "pagemap";
    const auto resident_bytes = [&](uint64_t start, uint64_t end) {
      return count_resident_bytes(directory.descriptor(), pagemap.c_str(), start, end);
    };
    cut_merged_stacks(find_thread_records(directory), resident_bytes, vmas_);
  }
  add_mappings(vmas_, names_, context_, full, files);
  full.by_rss.mappings = full.by_pss.mappings = mappings;
  // The counter may lag: then the kernel's own walk is asked.
  const bool agrees = is_small_rest(full.status.rss_bytes - full.by_rss.sum_bytes, full.status.rss_bytes);
  std::optional<Rollup> rollup;
  if (files != nullptr || !agrees) {
    const auto text = reader_.read_at(directory.descriptor(), (prefix + "smaps_rollup").c_str());
    rollup = parse_rollup(text.value_or(""));
  }
  // The counter knows no Pss: what it lacks of Rss, it lacks of Pss in proportion.
  full.by_rss.kernel_bytes = rollup ? rollup->rss_bytes : full.status.rss_bytes;
  full.by_pss.kernel_bytes =
      rollup ? rollup->pss_bytes
             : scaled(full.by_pss.sum_bytes, full.by_rss.kernel_bytes, full.by_rss.sum_bytes);
  return 0;
}

}  // namespace plimsoll
