// Everything that holds the processes of one job together: its cgroups where there are any, otherwise what
// can be seen in /proc.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "isolate/enclosure.h"
#include "isolate/job_cgroup.h"
#include "isolate/process_tracker.h"
#include "isolate/spawn.h"
#include "isolate/surroundings.h"
#include "isolate/thrash_watch.h"

namespace plimsoll {

// One thread at a time. Its cgroups are removed with it, if they are empty by then.
class Group {
 public:
  // Makes the cgroups and writes the limits into them; falls back to resource limits and sampling.
  Group(const Limits& limits, std::shared_ptr<const Surroundings> surroundings);

  // How the job is shut in, if no cgroup lists its members. Before enlist().
  void shut_in(const Confinement* confinement, const EnclosureOptions* enclosure);
  // Adds to the request what makes the child a member.
  void enlist(SpawnRequest& request);
  void started(int pid);

  std::string mechanism() const;
  std::vector<std::string> cannot_promise() const;
  std::string memory_directory() const { return memory_ ? memory_->directory() : std::string(); }
  // True: the kernel holds the memory limit. False: whoever waits has to look, with sample().
  bool limits_memory() const noexcept { return memory_.has_value(); }
  bool limits_processes() const noexcept { return pids_descriptor() >= 0 || tasks_are_limited_; }
  // What the kernel does not hold, in sentences. After shut_in().
  std::vector<std::string> unheld() const;
  // Version 1 counts what TCP holds apart from the rest.
  bool has_sockets_apart() const noexcept { return memory_ && memory_->version() == 1; }
  // Nobody leaves it: a cgroup lists its members, or they are in a PID namespace.
  bool is_closed() const noexcept { return roster() != nullptr || ends_with_init_; }

  // No cgroup lists the members.
  bool is_scattered() const noexcept { return roster() == nullptr; }

  // Looks at the processes again, where that is the only way to know anything.
  void sample();
  int64_t memory_bytes() const;
  int64_t peak_bytes() const;  // since the start
  int64_t peak_since_reset_bytes() const;
  void reset_peak();
  std::optional<double> cpu_ms() const;  // nothing: only the parent of the dead knows
  int64_t tasks() const;
  // TCP and the like, now; in memory_bytes() already on version 2.
  int64_t socket_bytes() const;
  int64_t socket_peak_bytes() const noexcept { return socket_peak_bytes_; }
  void sample_sockets();
  // Whether the kernel killed a member for want of memory: at the job's own limit, or at another one, that of
  // a cgroup above or the machine's.
  bool killed_at_limit() const;
  bool killed_above_limit() const;
  // Nothing: the kernel holds no memory limit, or does not tell one of the figures.
  std::optional<ThrashFigures> thrash_figures() const;
  // Readable when the limit, or one above, was met and somebody is about to be killed; -1: look now and then.
  int oom_descriptor() const noexcept { return oom_event_.get(); }
  void heed_oom() noexcept;  // makes it unreadable

  void signal(int signal) noexcept;
  // SIGKILL to all, those that are being born included. Returns how many there were, as far as it can be
  // told.
  int64_t kill() noexcept;
  bool empty();
  std::vector<int> members();
  void thaw() noexcept;  // who is frozen does not die
  // What was done to the limits, in sentences.
  std::vector<std::string> changes() const;
  // Whether `pid` is where it was put.
  bool is_in_place(int pid) const;
  // Those that were killed and became our children, because their parents died and we are process 1 or a
  // subreaper: nobody else waits for them. Call when empty.
  void reap_orphans() noexcept;
  // Page cache and slab of the dead. Call when empty.
  void reclaim();
  // False: something is still in it.
  bool remove() noexcept;
  // In a child of fork(): forget it all, without touching it.
  void abandon() noexcept;

 private:
  const JobCgroup* roster() const noexcept;  // the cgroup that lists the members
  const JobCgroup* clock() const noexcept;   // the cgroup that counts CPU time
  int pids_descriptor() const noexcept;
  bool met_limit(const MemoryEvents& events) const;
  bool set_memory_limit(const JobCgroup& cgroup);
  const JobCgroup* pids_cgroup() const noexcept;
  void watch_oom();
  void make_memory(const std::string& name);
  void make_unified(const std::string& name);
  void make_pids(const std::string& name);

  Limits limits_;
  const std::string name_;
  std::shared_ptr<const Surroundings> surroundings_;
  // Where unified tree and memory controller are one, only `memory_` is there.
  std::optional<JobCgroup> memory_, unified_, pids_, cpuacct_;
  std::optional<MemoryCgroup> figures_;
  std::vector<Descriptor> join_;
  Descriptor oom_event_, peak_file_;
  std::optional<ProcessTracker> tracker_;
  std::vector<std::string> doubts_;
  std::vector<int> killed_;
  int64_t highest_sample_bytes_ = 0, peak_before_reset_bytes_ = 0, socket_peak_bytes_ = 0;
  bool ends_with_init_ = false, tasks_are_limited_ = false;
  std::string why_open_ = "no namespaces";
};

}  // namespace plimsoll
