#include "isolate/group.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "isolate/clone.h"
#include "isolate/freezer.h"
#include "observe/procfs.h"

namespace plimsoll {
namespace {

// Its CPU time in all, or what of it was spent in the program and not in the kernel.
std::optional<double> read_cpu_ms(const JobCgroup& cgroup, bool of_program) {
  FileReader reader;
  const bool second = cgroup.version() == 2;
  const char* file = second ? "cpu.stat" : of_program ? "cpuacct.usage_user" : "cpuacct.usage";
  const std::string_view text = reader.read_at(cgroup.descriptor(), file).value_or("");
  const auto time = second ? number_of(text, of_program ? "user_usec" : "usage_usec") : parse_number(text);
  return time ? std::optional(static_cast<double>(*time) / (second ? 1e3 : 1e6)) : std::nullopt;
}

}  // namespace

Group::Group(const Limits& limits, std::shared_ptr<const Surroundings> around)
    : limits_(limits), name_(job_cgroup_name()), surroundings_(std::move(around)) {
  const std::string& name = name_;
  make_memory(name);
  make_unified(name);
  make_pids(name);
  int error = 0;
  if (surroundings_->cpuacct) cpuacct_ = JobCgroup::create(*surroundings_->cpuacct, name, error);
  if (!memory_ || roster() == nullptr) tracker_.emplace("PLIMSOLL_JOB=" + name);
}

void Group::make_memory(const std::string& name) {
  if (!surroundings_->memory) {
    doubts_ = surroundings_->obstacles;
    return;
  }
  int error = 0;
  memory_ = JobCgroup::create(*surroundings_->memory, name, error);
  if (!memory_) {
    doubts_.push_back(fmt::format("no memory cgroup could be made in {}: {}",
                                  surroundings_->memory->directory, std::strerror(error)));
    return;
  }
  if (!set_memory_limit(*memory_)) {
    memory_.reset();
    return;
  }
  CgroupPlace place = *surroundings_->memory;
  place.directory = memory_->directory();
  figures_.emplace(std::move(place));
  if (memory_->version() == 1) watch_oom();
}

bool Group::set_memory_limit(const JobCgroup& cgroup) {
  if (limits_.memory_bytes == 0) return true;
  const std::string bytes = std::to_string(limits_.memory_bytes);
  const bool first = cgroup.version() == 1;
  if (const int error = cgroup.write(first ? "memory.limit_in_bytes" : "memory.max", bytes)) {
    doubts_.push_back(fmt::format("{} did not take a limit of {} bytes: {}", cgroup.directory(), bytes,
                                  std::strerror(error)));
    return false;
  }
  const int swap =
      first ? cgroup.write("memory.memsw.limit_in_bytes", bytes) : cgroup.write("memory.swap.max", "0");
  if (swap != 0) doubts_.push_back("swap is not limited here: a job may hold more than its limit, on disk");
  if (!first) cgroup.write("memory.oom.group", "1");
  // Version 1 counts what TCP holds apart from everything else.
  if (first) cgroup.write("memory.kmem.tcp.limit_in_bytes", bytes);
  return true;
}

// Version 1 tells through an eventfd when the limit is met and nothing can be reclaimed.
void Group::watch_oom() {
  if (limits_.memory_bytes == 0) return;
  Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const Descriptor control = memory_->open("memory.oom_control", O_RDONLY);
  if (!event || !control) return;
  if (memory_->write("cgroup.event_control", fmt::format("{} {}", event.get(), control.get())) == 0)
    oom_event_ = std::move(event);
}

void Group::make_unified(const std::string& name) {
  if (!surroundings_->unified || (memory_ && memory_->version() == 2)) return;
  int error = 0;
  unified_ = JobCgroup::create(*surroundings_->unified, name, error);
}

void Group::make_pids(const std::string& name) {
  if (limits_.processes == 0) return;
  int error = ENOENT;
  if (surroundings_->pids && surroundings_->pids->version == 1)
    pids_ = JobCgroup::create(*surroundings_->pids, name, error);
  const JobCgroup* cgroup = pids_ ? &*pids_ : memory_ && memory_->version() == 2 ? &*memory_ : roster();
  if (surroundings_->pids && cgroup != nullptr &&
      (error = cgroup->write("pids.max", std::to_string(limits_.processes))) == 0)
    return;
  pids_.reset();
}

const JobCgroup* Group::pids_cgroup() const noexcept {
  if (pids_) return &*pids_;
  const JobCgroup* list = roster();
  return list != nullptr && list->version() == 2 && list->has("pids.max") ? list : nullptr;
}

int Group::pids_descriptor() const noexcept {
  const JobCgroup* cgroup = pids_cgroup();
  return cgroup != nullptr ? cgroup->descriptor() : -1;
}

void Group::shut_in(const Confinement* confinement, const EnclosureOptions* enclosure) {
  const bool has_init = confinement != nullptr && confinement->has_pid_namespace();
  const bool has_keeper = enclosure != nullptr && enclosure->keeper;
  ends_with_init_ = has_init;
  if (!has_init && is_scattered())
    why_open_ = has_keeper && !enclosure->wanted_bare ? "no namespaces (" + enclosure_support().why_not + ")"
                                                      : "no namespaces were asked for";
  tasks_are_limited_ = enclosure != nullptr && enclosure->tasks > 0 && !has_keeper;
  if (has_init && enclosure != nullptr && limits_.processes > 0) {
    ++limits_.processes;  // the init is no process of the job's
    if (const JobCgroup* cgroup = pids_cgroup()) cgroup->write("pids.max", std::to_string(limits_.processes));
  }
  if (!tracker_) return;
  if (has_init || has_keeper) tracker_->beneath(has_init);
  if (!memory_)
    tracker_->watch_limit(limits_.memory_bytes, enclosure != nullptr && enclosure->memory_bytes > 0);
}

const JobCgroup* Group::roster() const noexcept {
  if (unified_) return &*unified_;
  if (memory_) return &*memory_;
  return pids_ ? &*pids_ : nullptr;
}

void Group::enlist(SpawnRequest& request) {
  const JobCgroup* unified = unified_ ? &*unified_ : memory_ && memory_->version() == 2 ? &*memory_ : nullptr;
  const bool born_inside = unified != nullptr && clone_into_cgroup_supported();
  if (born_inside) request.cgroup_directory = unified->descriptor();
  for (const auto* cgroup : {&memory_, &unified_, &pids_, &cpuacct_}) {
    if (!*cgroup || (born_inside && (*cgroup)->descriptor() == unified->descriptor())) continue;
    join_.push_back((*cgroup)->open("cgroup.procs", O_WRONLY));
    if (!join_.back())
      throw StartError(ErrorCode::kIo,
                       fmt::format("{}/cgroup.procs: {}", (*cgroup)->directory(), std::strerror(errno)),
                       StartError::kOther);
    request.join.push_back(join_.back().get());
  }
  if (tracker_ && !ends_with_init_) request.environment.push_back(tracker_->mark());
  if (!memory_ && limits_.memory_bytes > 0) {
    const auto bytes = static_cast<rlim_t>(limits_.memory_bytes);
    request.resources.emplace_back(RLIMIT_DATA, rlimit{bytes, bytes});
  }
}

void Group::started(int pid) {
  join_.clear();
  if (!tracker_) return;
  tracker_->started(pid);
  if (!memory_) highest_sample_bytes_ = tracker_->memory_bytes();
}

std::string Group::mechanism() const {
  if (memory_) return fmt::format("cgroup v{}", memory_->version());
  return ends_with_init_ ? "namespaces and sampling" : "rlimit and sampling";
}

std::vector<std::string> Group::cannot_promise() const {
  std::vector<std::string> doubts = doubts_;
  if (limits_.processes > 0 && !limits_processes())
    doubts.push_back("the number of processes is counted now and then, not held");
  if (!memory_) {
    if (limits_.memory_bytes > 0)
      doubts.push_back(
          "each process may have its private writable memory up to the limit (RLIMIT_DATA); the group as a "
          "whole is stopped only when a sample sees it above; page cache, pipes and sockets are not counted");
    if (!is_closed() && tracker_->is_beneath())
      doubts.push_back(
          "a process that kills its keeper, and leaves the session and its environment behind, escapes");
    else if (!is_closed())
      doubts.push_back(
          "a process that leaves the session, its parent and its environment behind between two samples "
          "escapes");
  } else {
    doubts.push_back(
        "pages that somebody else brought in first, such as cached files, are not charged to the job");
    if (memory_->version() == 1 && limits_.memory_bytes > 0)
      doubts.push_back(
          "at the limit the kernel kills one process of the group; the others are killed when we are told");
  }
  return doubts;
}

void Group::sample() {
  if (!tracker_) return;
  tracker_->scan(false);
  if (!memory_) highest_sample_bytes_ = std::max(highest_sample_bytes_, tracker_->memory_bytes());
}

int64_t Group::memory_bytes() const {
  if (figures_) return figures_->usage_bytes().value_or(0);
  return tracker_->memory_bytes();
}

int64_t Group::peak_since_reset_bytes() const {
  if (!figures_) return highest_sample_bytes_;
  if (peak_file_) {
    FileReader reader;
    return parse_number(reader.read_descriptor(peak_file_.get()).value_or("")).value_or(0);
  }
  return std::max(figures_->peak_bytes().value_or(0), highest_sample_bytes_);
}

int64_t Group::peak_bytes() const {
  return std::max(peak_since_reset_bytes(), peak_before_reset_bytes_);
}

void Group::reset_peak() {
  peak_before_reset_bytes_ = peak_bytes();
  highest_sample_bytes_ = 0;
  if (!memory_) return;
  if (memory_->version() == 1) {
    memory_->write("memory.max_usage_in_bytes", "0");
    return;
  }
  // Version 2 resets for readers of the same open file, since 6.12.
  if (!peak_file_) peak_file_ = memory_->open("memory.peak", O_RDWR);
  if (peak_file_ && ::pwrite(peak_file_.get(), "0", 1, 0) < 0) peak_file_.reset();
}

std::optional<double> Group::cpu_ms() const {
  if (const JobCgroup* cgroup = clock()) return read_cpu_ms(*cgroup, false);
  return tracker_ ? std::optional(tracker_->cpu_ms()) : std::nullopt;
}

const JobCgroup* Group::clock() const noexcept {
  if (cpuacct_) return &*cpuacct_;
  if (unified_) return &*unified_;
  return memory_ && memory_->version() == 2 ? &*memory_ : nullptr;
}

int64_t Group::tasks() const {
  return tracker_ ? tracker_->tasks() : 0;
}

int64_t Group::socket_bytes() const {
  if (!figures_) return 0;
  if (figures_->version() == 1)
    return parse_number(figures_->file("memory.kmem.tcp.usage_in_bytes")).value_or(0);
  return number_of(figures_->stat(), "sock").value_or(0);
}

void Group::sample_sockets() {
  if (!figures_) return;
  const int64_t bytes = figures_->version() == 1
                            ? parse_number(figures_->file("memory.kmem.tcp.max_usage_in_bytes")).value_or(0)
                            : socket_bytes();
  socket_peak_bytes_ = std::max(socket_peak_bytes_, bytes);
}

std::vector<std::string> Group::unheld() const {
  std::vector<std::string> found;
  if (!is_closed())
    found.push_back(fmt::format(
        "its processes: {}, and {}; one that hides well enough outlives the job",
        surroundings_->obstacles.empty() ? "no cgroup" : surroundings_->obstacles.front(), why_open_));
  if (limits_.memory_bytes > 0 && !memory_)
    found.push_back(
        fmt::format("its memory: {}; it is sampled, and ended when a sample sees more than the limit",
                    doubts_.empty() ? "no memory cgroup" : doubts_.front()));
  if (limits_.processes > 0 && !limits_processes())
    found.push_back("the number of its processes: it is counted now and then");
  return found;
}

std::vector<std::string> Group::changes() const {
  std::vector<std::string> found;
  FileReader reader;
  const auto look = [&](const JobCgroup* cgroup, const char* file, int64_t set, const char* what) {
    if (cgroup == nullptr || set == 0) return;
    const std::string_view text = reader.read_at(cgroup->descriptor(), file).value_or("");
    const auto now = parse_number(text);
    if (text.empty() || now == set) return;
    found.push_back(fmt::format("{} was changed while it ran: {} was set, {} is there now", what, set,
                                now ? std::to_string(*now) : std::string("none")));
  };
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t bytes = limits_.memory_bytes / page * page;
  if (memory_) {
    look(&*memory_, memory_->version() == 1 ? "memory.limit_in_bytes" : "memory.max", bytes,
         "the job's memory limit");
    if (bytes > 0 && found.empty() && figures_->peak_bytes().value_or(0) > limits_.memory_bytes)
      found.push_back("the job held more than its memory limit: somebody raised it meanwhile");
  }
  look(pids_cgroup(), "pids.max", limits_.processes, "the job's limit on processes");
  return found;
}

// Every hierarchy in which we made a cgroup must show its name.
bool Group::is_in_place(int pid) const {
  FileReader reader;
  const auto text = reader.read(fmt::format("/proc/{}/cgroup", pid).c_str());
  if (!text) return true;
  int expected = 0, found = 0;
  for (const auto* cgroup : {&memory_, &unified_, &pids_, &cpuacct_}) expected += cgroup->has_value() ? 1 : 0;
  for (size_t at = text->find(name_); at != std::string_view::npos; at = text->find(name_, at + 1)) ++found;
  if (found >= expected) return true;
  // Of one that is about to end, version 1 tells no place any more.
  const auto stat = parse_stat(reader.read(fmt::format("/proc/{}/stat", pid).c_str()).value_or(""));
  return !stat || stat->leader_has_ended() || stat->leader_is_leaving();
}

std::vector<int> Group::members() {
  if (const JobCgroup* list = roster()) return members_of(list->descriptor());
  tracker_->scan(true);
  std::vector<int> pids = tracker_->pids();
  return pids;
}

void Group::thaw() noexcept try {
  for (const int pid : members()) plimsoll::thaw(pid);
} catch (const std::bad_alloc&) {  // the next round may have it
}

// Version 1 counts no failures where swap is limited too, but a limit that was met is where the peak is.
bool Group::met_limit(const MemoryEvents& events) const {
  constexpr int64_t kNearBytes = 1 << 20;  // more than the kernel asks for at once
  return limits_.memory_bytes > 0 &&
         (events.limit_failures > 0 || peak_bytes() >= limits_.memory_bytes - kNearBytes);
}

bool Group::killed_at_limit() const {
  if (!figures_ || limits_.memory_bytes == 0) return false;
  const MemoryEvents events = figures_->events();
  if (!met_limit(events)) return false;
  return events.oom_kills > 0 || (figures_->version() == 1 && oom_kills_below(memory_->descriptor()) > 0);
}

bool Group::killed_above_limit() const {
  if (!figures_) return false;
  const MemoryEvents events = figures_->events();
  return events.oom_kills > 0 && !met_limit(events);
}

void Group::heed_oom() noexcept {
  uint64_t count = 0;
  if (::read(oom_event_.get(), &count, sizeof(count)) < 0) return;  // somebody was faster
}

std::optional<ThrashFigures> Group::thrash_figures() const {
  const JobCgroup* cgroup = clock();
  if (!figures_ || limits_.memory_bytes == 0 || cgroup == nullptr) return std::nullopt;
  const auto user_ms = read_cpu_ms(*cgroup, true), cpu_ms = read_cpu_ms(*cgroup, false);
  const int64_t usage_bytes = memory_bytes();
  const std::string_view stat = figures_->stat();
  const bool first = figures_->version() == 1;
  const auto faults = number_of(stat, first ? "total_pgmajfault" : "pgmajfault");
  const auto inactive = number_of(stat, first ? "total_inactive_file" : "inactive_file");
  const auto active = number_of(stat, first ? "total_active_file" : "active_file");
  if (!user_ms || !cpu_ms || !faults || !inactive || !active) return std::nullopt;
  return ThrashFigures{.usage_bytes = usage_bytes,
                       .file_bytes = *inactive + *active,
                       .major_faults = *faults,
                       .user_ms = *user_ms,
                       .cpu_ms = *cpu_ms};
}

void Group::signal(int signal) noexcept {
  if (const JobCgroup* list = roster()) {
    signal_members(list->descriptor(), signal);
  } else {
    tracker_->scan(true);
    tracker_->signal(signal);
  }
}

int64_t Group::kill() noexcept {
  const JobCgroup* list = roster();
  if (list == nullptr) {
    tracker_->scan(true);
    tracker_->signal(SIGKILL);
    if (ends_with_init_ && !tracker_->first_is_alive()) return 0;
    const std::vector<int> members = tracker_->pids();
    killed_.insert(killed_.end(), members.begin(), members.end());
    return static_cast<int64_t>(members.size());
  }
  if (empty()) return 0;
  const std::vector<int> members = members_of(list->descriptor());
  killed_.insert(killed_.end(), members.begin(), members.end());
  if (list->version() == 2 && list->write("cgroup.kill", "1") == 0)
    return static_cast<int64_t>(members.size());
  if (pids_) pids_->write("pids.max", "0");  // nobody is born any more
  return signal_members(list->descriptor(), SIGKILL);
}

bool Group::empty() {
  if (const JobCgroup* list = roster()) {
    FileReader reader;
    const auto events =
        list->version() == 2 ? reader.read_at(list->descriptor(), "cgroup.events") : std::nullopt;
    if (events) return number_of(*events, "populated").value_or(0) == 0;  // cgroups below it count
    return members_of(list->descriptor()).empty();
  }
  if (ends_with_init_) return !tracker_->first_is_alive();
  tracker_->scan(true);
  return tracker_->processes() == 0;
}

void Group::reap_orphans() noexcept {
  for (const int pid : killed_) {
    constexpr int kAttempts = 50;  // the dead leave their cgroup a moment before they can be waited for
    for (int attempt = 0; attempt < kAttempts && ::waitpid(pid, nullptr, WNOHANG) == 0; ++attempt)
      ::usleep(100);
  }
  killed_.clear();
}

void Group::reclaim() {
  constexpr int64_t kNotWorthIt = int64_t{64} << 10;
  constexpr int kPasses = 4;
  for (int pass = 0; memory_ && pass < kPasses; ++pass) {
    const int64_t before = memory_bytes();
    if (before < kNotWorthIt) return;
    if (memory_->version() == 1) {
      memory_->write("memory.force_empty", "0");
    } else if (memory_->write("memory.reclaim", std::to_string(before)) == ENOENT) {
      memory_->write("memory.high", "0");  // kernels before 5.19: what is above is reclaimed
    }
    if (before - memory_bytes() < kNotWorthIt) return;
  }
}

bool Group::remove() noexcept {
  oom_event_.reset();
  peak_file_.reset();
  bool all = true;
  for (auto* cgroup : {&memory_, &unified_, &pids_, &cpuacct_}) {
    if (*cgroup && (*cgroup)->remove() != 0) all = false;
  }
  return all;
}

void Group::abandon() noexcept {
  for (auto* cgroup : {&memory_, &unified_, &pids_, &cpuacct_}) {
    if (*cgroup) (*cgroup)->abandon();
  }
}

}  // namespace plimsoll
