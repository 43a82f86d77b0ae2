// Observe: what a process, a tree of processes and their container hold, and a verdict on how it grows.
//
// Reads /proc and the memory cgroup (version 1, 2 or hybrid) and touches nothing. All structs are plain data
// that belong to whoever asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

// One line of an account.
struct MemoryPart {
  std::string name;  // a stable identifier, such as "heap" or "page_cache"
  int64_t bytes = 0;
  int64_t returnable_bytes = 0;  // how much of it would come back ...
  std::string returns_by;  // ... and by which action, such as "memory.reclaim"; empty: by ending the process
};

// A process, or a process with all its descendants. A page that several of them map is counted once.
// Bytes by kind; their sum is `sum_bytes`; the kernel's own figure is `kernel_bytes`. Both are by Rss for one
// process; from the moment a second one is seen they are by Pss: a page that n processes map counts as one
// n-th in each, also where some of the n are not watched.
struct ProcessView {
  int64_t heap_bytes = 0;        // [heap]: brk
  int64_t allocator_bytes = 0;   // glibc's arenas of other threads and large anonymous maps of malloc's shape
  int64_t malloc_map_bytes = 0;  // part of allocator_bytes that only the shape of its maps tells: a guess
  int64_t stack_bytes = 0;       // main and threads'
  int64_t anonymous_bytes = 0;   // other private anonymous maps
  int64_t huge_page_bytes = 0;   // part of the above that is in huge pages: not added to the sum
  int64_t fork_shared_bytes =
      0;  // part of the above that several processes map since a fork, until one writes
  int64_t private_file_bytes = 0;   // private pages of mapped files: written copies
  int64_t shared_file_bytes = 0;    // clean pages of mapped files, libraries among them
  int64_t shared_memory_bytes = 0;  // shm, memfd, tmpfs that is mapped, shared anonymous
  int64_t swap_bytes = 0;           // not resident, not in the sum
  int64_t sum_bytes = 0;
  int64_t kernel_bytes = 0;
  int64_t rss_bytes = 0;         // sum of VmRSS, as people read it in top
  int64_t page_table_bytes = 0;  // VmPTE, kernel memory on the process's behalf, not in the sum
  int64_t processes = 0, threads = 0, descriptors = 0, mappings = 0;
  int64_t proportional = 0;  // 1: by Pss
};

// The memory controller's account of the cgroup that the process is in.
struct ContainerView {
  int version = 0;   // 1 or 2
  std::string path;  // of the cgroup, as /proc/PID/cgroup has it
  int64_t anonymous_bytes = 0;
  int64_t page_cache_bytes = 0;  // without shared memory
  int64_t shared_memory_bytes = 0;
  int64_t slab_bytes = 0;              // both kinds
  int64_t slab_reclaimable_bytes = 0;  // part of it
  int64_t page_table_bytes = 0;
  int64_t kernel_stack_bytes = 0;
  int64_t socket_bytes = 0;
  int64_t other_kernel_bytes = 0;  // per-CPU, vmalloc and what memory.kmem or memory.stat's `kernel` adds
  int64_t swap_bytes = 0;          // not in the sum
  int64_t sum_bytes = 0;
  int64_t kernel_bytes = 0;  // usage_in_bytes or memory.current
  int64_t peak_bytes = 0;    // 0: the kernel does not tell
  int64_t limit_bytes = 0;   // the tightest on the way to the root; 0: none
  // Version 1, which does not tell what slab can be reclaimed: names of files that the kernel remembers
  // though nobody uses them, in the whole machine. It can forget them.
  int64_t unused_names = 0;
  double pressure_some_avg10 = 0;  // PSI, percent; 0 where absent
};

// One process of a tree, with what is its own whoever else is there: its anonymous pages, by Rss.
struct TreeMember {
  int pid = 0;
  std::string command;  // the beginning of its command line, or the kernel's name for it
  int64_t bytes = 0;
  // What its runtime says was left at its last collection, and how many there were; -1: it does not tell.
  // A JVM does, and Node if it was asked.
  int64_t live_bytes = -1;
  int64_t collections = 0;
  // What the runtime's heap takes, if only full collections count above; -1: any may, so that what lives is
  // an upper bound.
  int64_t heap_bytes = -1;
  // What of the heap was in use at some time, and may be resident, where live_bytes is an upper bound: a
  // JVM's. What is beside it is native. -1: it does not tell.
  int64_t touched_bytes = -1;
  int64_t untold_heaps = 0;       // that the process has besides, or had: of V8's worker threads
  int64_t asked_collections = 0;  // of `collections`, that the watch asked for
  double asked_seconds = 0;       // of processor time, that these took
};

// What was read at one moment. `exact` is false for the cheap samples between two full ones: their parts of
// the process view are scaled from the last full one by the kernel's cheap figures.
struct Sample {
  double seconds = 0;      // on the monotonic clock, since the watch began
  int64_t iteration = -1;  // last iteration seen; -1: none is counted
  bool gap = false;        // the process was gone or stopped: nothing below was read
  std::string gap_reason;
  bool exact = true;
  ProcessView process;
  std::optional<ContainerView> container;
  std::vector<TreeMember> members;  // the largest eight, largest first
};

// A reconciled account with what would come back, for people and for JSON.
struct MemoryAccount {
  std::vector<MemoryPart> process;        // by kind
  std::vector<MemoryPart> libraries;      // by mapped file, largest first
  std::vector<MemoryPart> container;      // by kind
  std::vector<MemoryPart> cached_files;   // page cache by file, where mincore or the maps can tell
  int64_t process_unexplained_bytes = 0;  // kernel's figure minus our sum
  int64_t container_unexplained_bytes = 0;
  std::vector<std::string> notes;  // what could not be read, and why
  Sample sample;
};

struct ObserverOptions {
  bool tree = true;  // descendants too
  std::string proc_root = "/proc";
  std::string cgroup_root = "";     // empty: found through /proc/self/mountinfo; a recorded tree in tests
  double cost_limit = 0.004;        // share of a core at which full samples become rarer
  std::string told_directory = "";  // where runtimes that were asked write what they hold; empty: none was
};

// Watches one process. One thread at a time; owns a few descriptors and buffers it reuses.
class Observer {
 public:
  // Throws kInvalidArgument if there is no such process, it is a zombie, a thread or a kernel thread, kIo if
  // nothing of it may be read. Where only its mappings may not, samples are never exact: anonymous, file and
  // shared memory are all that is told apart.
  explicit Observer(int pid, const ObserverOptions& options = {});
  ~Observer();
  Observer(Observer&&) noexcept;
  Observer& operator=(Observer&&) noexcept;

  // Never throws for a process that ended, was replaced or stopped: that is a gap.
  Sample Read(int64_t iteration = -1);
  MemoryAccount Account();
  bool Ended() const noexcept;  // the process is gone for good (or its pid is another's now)
  double OwnCpuSeconds() const noexcept;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

enum class VerdictKind : uint8_t { kUndecided, kFlat, kWarmingUp, kPlateau, kLeak, kCache };
enum class Cause : uint8_t {
  kNone,
  kLiveHeap,            // objects that are still reachable, or were never freed
  kAllocatorRetention,  // freed, but kept by the allocator
  kMappedFiles,
  kAnonymousMaps,  // maps never unmapped
  kThreadStacks,
  kSharedMemory,
  kPageCache,
  kSlab,
  kCopyOnWrite,
  kDescriptors,
  kProcesses,  // started and never ended: each holds memory of its own
};
const char* verdict_name(VerdictKind kind) noexcept;  // "flat", "warming up", ...
const char* cause_name(Cause cause) noexcept;         // "live heap", ...

// Other explanations of a rise than a leak: a curve that levels off, a few stairs, chance.
struct GrowthRivals {
  double line = 0;        // the probability of a line, or what grows ever faster, where the rise was measured
  double line_whole = 0;  // the same from the beginning on, a warm-up before the line allowed
  double pieces = 0;      // so many equal stairs would have the same shares of the rise
  double margin = 1;      // half the rate's 95 % interval, of the rate
  double bytes = 0;       // the rise, by its rate, where it was measured; 0: of descriptors and the like
  double share = 0;       // the rise, of the private memory before it
  double recent = 1;      // the rate of the last quarter, of the mean rate
  double order = 0;       // how far beyond chance later is higher, in standard deviations (Mann and Kendall)
  double nurseries = 0;  // the rise, of what its runtime fills before it collects; 0: it was seen to collect,
                         // or needs not
  double stairs = 0;     // that are filled one after the other at a steady rate; 0: it did not come in stairs
  double turns = 0;      // collections, too few for a curve, after each of which more was left; 0: not used
};

// The process of a tree that grows most.
struct GrowingProcess {
  int pid = 0;
  std::string command;
  double bytes_per_second = 0;
  int64_t first_bytes = 0, last_bytes = 0;  // of its own private memory
};

struct FittedPoint {
  double seconds = 0;
  double bytes = 0;
  double low = 0, high = 0;  // 95 %
};

struct Verdict {
  VerdictKind kind = VerdictKind::kUndecided;
  Cause cause = Cause::kNone;
  double bytes_per_second = 0;                // of the growth that the verdict speaks of
  std::optional<double> bytes_per_iteration;  // where iterations are counted
  double low = 0, high = 0;                   // 95 % interval, in bytes per iteration or else per second
  double confidence = 0;                      // 0 to 1
  double seconds_needed = 0;                  // kUndecided: about how much longer; 0: unknown
  std::vector<std::string> evidence;          // sentences with figures
  std::string part;                           // that the verdict speaks of, such as "heap"; empty: none
  std::optional<GrowthRivals> rivals;         // where something rises
  std::optional<GrowingProcess> grower;       // a leak in a tree
  std::vector<FittedPoint> curve;             // fitted to `part`, from where it was measured to the end
};

struct JudgeOptions {
  double minimum_seconds = 5;
};

// A pure function: the same samples give the same verdict.
Verdict Judge(std::span<const Sample> samples, const JudgeOptions& options = {});

// What Judge looks at of a sample for a verdict's `part`, in bytes or in number; nothing where it is unknown.
std::optional<double> FigureOf(const Sample& sample, std::string_view part);

// A recording is lines of JSON: a header, one object per sample, perhaps an account and notes, and last, if
// the watch ended well, the verdict. Each ToJson is one line without its newline; what is not UTF-8 is
// replaced.
struct RecordingHeader {
  std::vector<std::string> command;  // empty: the process was already there
  int pid = 0;
  std::string name;     // of the process, as the kernel has it
  std::string started;  // UTC, "2026-11-16T00:30:00Z"
  double interval_seconds = 0;
  std::map<std::string, std::string> facts;  // of the host or the scenario, such as "kernel"
};
std::string ToJson(const RecordingHeader& header);
std::string ToJson(const Sample& sample);
std::string ToJson(const MemoryAccount& account);
std::string ToJson(const Verdict& verdict);
std::string NoteToJson(const std::string& note);  // what people should know besides

struct Recording {
  RecordingHeader header;
  std::vector<Sample> samples;  // in the order of time
  std::optional<MemoryAccount> account;
  std::vector<std::string> notes;
  std::optional<Verdict> verdict;  // absent: the recording was cut short, or the watch was
  std::string note;                // what is missing, for people; empty: nothing
};

// Reads what the above wrote and distrusts every byte. A last line that is incomplete is left out and noted;
// anything else that is wrong is kInvalidArgument with its line. Fields it does not know are skipped.
// `name` stands in messages.
Recording ParseRecording(std::string_view text, const std::string& name);
Sample SampleFromJson(std::string_view line);  // one line; throws kInvalidArgument

}  // namespace plimsoll
