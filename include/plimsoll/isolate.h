// Isolate: jobs run in fresh processes, under limits, and a receipt shows that their memory came back.
//
// Nothing here needs the engine. A job is started with clone3 or posix_spawn and then exec, never with a
// bare fork, in a session and process group of its own and, where the machine allows, in a memory cgroup
// of its own beneath the caller's. When it ends, however it ends, everything in its group is killed, what
// it left in the page cache and slab is reclaimed, and its cgroup is removed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plimsoll/error.h"

namespace plimsoll {

// 0 means no limit. What is wrong (negative, too small for a process to start) is kInvalidArgument.
struct Limits {
  int64_t memory_bytes = 0;                // of the whole group, kernel memory and page cache included
  std::chrono::milliseconds wall_time{0};  // then TERM, then KILL after `grace`
  std::chrono::milliseconds cpu_time{0};   // user and system time of the whole group
  int64_t processes = 0;                   // processes and threads alive at the same time
  int64_t output_bytes = 0;                // captured or passed on, stdout and stderr together
  std::chrono::milliseconds grace{2000};   // between TERM and KILL
  // kNotImplemented before anything is started, if the kernel cannot hold memory, processes or the end of the
  // group here: what Unheld() tells.
  bool require_hold = false;
};

enum class SandboxLevel : uint8_t {
  kNone,
  kBestEffort,  // what the kernel supports; the receipt says what that was
  kStrict,      // all of it, or kNotImplemented before anything is started
};

struct SandboxOptions {
  SandboxLevel level = SandboxLevel::kNone;
  std::vector<std::string> readable;  // paths visible read-only besides the system's libraries and programs
  std::vector<std::string>
      writable;  // paths the job may change; a private temporary directory is always there
  bool network = false;
};

// What happens to stdout and stderr.
// kToError, for stdout alone: wherever stderr goes.
enum class Output : uint8_t { kInherit, kCapture, kDiscard, kToError };

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up in PATH
  // Absent: the caller's; of a sandboxed job HarmlessEnvironment().
  std::optional<std::map<std::string, std::string>> environment;
  std::string working_directory;  // empty: the caller's
  std::string input;              // given on stdin; empty: /dev/null
  bool inherit_input = false;     // stdin is the caller's
  Output standard_output = Output::kInherit;
  Output standard_error = Output::kInherit;
  // Descriptors the job gets: (the caller's, the job's). One for 1 or 2 takes the place of standard_output or
  // standard_error. All others are closed.
  std::vector<std::pair<int, int>> descriptors;
  SandboxOptions sandbox;
  // Without namespaces of its own: for commands that need setuid programs, mount for others, or change their
  // own cgroups. Where there is no cgroup, the job is then held by what can be seen of it.
  bool bare = false;
  bool clean_leftovers = false;  // what it leaves (Receipt::leftovers) is removed
};

// Something that outlived the job.
struct Leftover {
  std::string kind;    // "System V memory", "semaphores", "message queue", "file", "mount"
  std::string name;    // its number and key, or its path
  int64_t owner = -1;  // a user's number; -1: unknown
  int64_t bytes = 0;
  bool removed = false;
};

// Why a job ended.
enum class Ending : uint8_t {
  kExited,     // by itself: exit_code
  kSignalled,  // by a signal that was not ours: signal
  kMemoryLimit,
  kWallTime,
  kCpuTime,
  kOutputLimit,
  kCancelled,     // by Job::Kill, a closed Pool, Ctrl-C
  kProcessLimit,  // only where no pids controller refuses the process instead
};
const char* ending_name(Ending ending) noexcept;  // "exited", "signalled", "memory limit", ...

struct Receipt {
  Ending ending = Ending::kExited;
  int exit_code = 0;  // of the job; 128 + signal if it ended by one
  int signal = 0;     // 0: none
  double wall_ms = 0;
  double cpu_ms = 0;        // of the whole group
  int64_t peak_bytes = 0;   // by the kernel's own figure for the group
  int64_t limit_bytes = 0;  // 0: none
  bool limit_hit = false;   // the memory limit
  // The kernel killed nobody at the limit, but for seconds the job did little else than read its own program
  // again, and was ended for it.
  bool thrashing = false;
  double byte_seconds = 0;     // memory over time: what a platform bills
  int64_t returned_bytes = 0;  // what the group still held when it ended and gave back until it was removed
  int64_t residue_bytes = 0;   // what was still charged to the job's own cgroup when it was removed
  bool residue_known = false;  // false: it had no memory cgroup of its own, and it cannot be told
  int64_t socket_peak_bytes = 0;  // of TCP and the like, in peak_bytes on version 2, beside it on version 1
  int64_t processes_killed = 0;   // processes of the group that were still alive when the job ended
  double kill_to_report_ms = 0;   // from the decision to kill to the receipt; 0: nothing was killed
  std::string mechanism;          // "cgroup v2", "cgroup v1" or "rlimit and sampling"
  std::vector<std::string> cannot_promise;  // what this mechanism cannot promise on this machine
  std::vector<std::string> sandbox;         // the layers that were in force, such as "seccomp", "landlock 6"
  // What it did to its limits, who left its cgroup: in sentences.
  std::vector<std::string> noticed;
  std::vector<int> alive;           // processes of the group that could not be ended; empty: nobody is left
  std::vector<Leftover> leftovers;  // what appeared while it ran and outlived it
};

struct Completed {
  Receipt receipt;
  std::string output;  // captured stdout
  std::string error;   // captured stderr
};

// A command that could not be started.
class StartError : public Error {
 public:
  enum Reason : uint8_t { kNotFound, kNotExecutable, kOther };
  StartError(ErrorCode code, std::string message, Reason reason)
      : Error(code, std::move(message)), reason_(reason) {}
  Reason reason() const noexcept { return reason_; }

 private:
  Reason reason_;
};

// One running job. Movable, owned by its creator; one thread at a time, except Kill, Cancel and Signal, which
// any may call.
class Job {
 public:
  // Throws kInvalidArgument for limits or descriptors that make no sense, StartError if the command does not
  // exist or cannot be executed, kNotImplemented if a strict sandbox cannot be had. If it throws, nothing is
  // left behind. Limits other than memory hold while somebody is in Wait or WaitFor.
  static Job Start(const Command& command, const Limits& limits = {});
  Job(Job&&) noexcept;
  Job& operator=(Job&&) noexcept;
  ~Job();  // kills and waits

  int pid() const noexcept;    // with a PID namespace: of its init (docs/sandbox.md)
  int pidfd() const noexcept;  // a descriptor that is readable when the job's first process has ended
  // Waits for the end of the whole group, cleans up and reports. Call once.
  Completed Wait();
  // As Wait, but gives up after `timeout` and returns nothing; the job goes on.
  std::optional<Completed> WaitFor(std::chrono::milliseconds timeout);
  void Kill() noexcept;  // at once, idempotent; Wait still reports, with Ending::kCancelled
  // TERM now, KILL after `grace` or when called again, if somebody waits. Safe to call from a signal handler.
  void Cancel() noexcept;
  // Sends a signal to every member, such as SIGSTOP and SIGCONT. From any thread, not from a signal handler.
  void Signal(int signal) noexcept;
  // The group's memory now and its peak since the start or the last ResetPeak, by the kernel's figures.
  int64_t MemoryBytes() const;
  int64_t PeakBytes() const;
  void ResetPeak();
  double CpuMs() const;  // user and system time of the whole group so far
  // The directory of the job's own memory cgroup; empty: it has none.
  std::string CgroupDirectory() const;
  // The receipt as far as it is known now: times, peak, byte-seconds, limit, mechanism, sandbox. Cheap.
  Receipt Snapshot() const;

  struct Impl;

 private:
  explicit Job(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What a stranger may know of the caller's environment: PATH, language, time zone, numbers of threads. No
// tokens.
std::map<std::string, std::string> HarmlessEnvironment();

// What the kernel cannot hold of such a job in this place, in sentences; known before it is started. Empty:
// all of it is held. With Limits::require_hold that is an error.
std::vector<std::string> Unheld(const Command& command, const Limits& limits);

// Runs a command to its end.
Completed Exec(const Command& command, const Limits& limits = {});

// The shell's exit codes for an Error from Start: 127 not found, 126 not executable, 125 anything else.
int start_failure_exit_code(const std::exception& error) noexcept;

// Removes what killed predecessors left: cgroups, temporary directories. Start does it once per process.
void CleanUpLeftovers();

// A fixed number of workers, spawned ahead, that answer requests one after the other.
//
// A worker is a command that reads frames from descriptor 3 and writes frames to it (a stream socket): each
// frame is a 64-bit little-endian length and that many bytes. First it writes one frame: "ready" when it is
// warm, or else why it cannot be; then one answer per request. At end of file it exits. Worker programs may
// be in any language. Of captured stdout and stderr a pool keeps the end, for its messages. Its own limits
// are enforced by killing a worker without grace.
struct PoolOptions {
  Command worker;  // what a worker is; stdout and stderr as given there
  Limits limits;   // of each worker; wall_time and cpu_time hold for one job
  int workers = 2;
  int64_t queue_capacity = 0;       // jobs waiting before Submit blocks; 0: four for each worker
  int64_t recycle_after_jobs = 0;   // 0: never
  int64_t recycle_above_bytes = 0;  // worker's memory after a job, by the kernel's figure; 0: never
  std::chrono::milliseconds idle_timeout{
      0};  // an idle worker is ended; a new one starts with the next job; 0: never
  std::chrono::milliseconds start_timeout{60000};  // until "ready"
  int64_t result_bytes = int64_t{1} << 30;         // the longest answer
};

// Descriptors that travel with a frame (SCM_RIGHTS with its first byte), such as files in memory that hold
// what is too large for it; closed with the last owner.
class Attachment {
 public:
  explicit Attachment(std::vector<int> descriptors) noexcept : descriptors_(std::move(descriptors)) {}
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;
  ~Attachment();
  const std::vector<int>& descriptors() const noexcept { return descriptors_; }

  static constexpr size_t kMost = 128;  // of one frame

 private:
  std::vector<int> descriptors_;
};

struct JobOptions {
  bool repeatable = false;                                 // may run again, once, if its worker died under it
  std::chrono::milliseconds wall_time{0};                  // 0: the pool's
  std::shared_ptr<const Attachment> attachment = nullptr;  // with the request
};

// Exactly one of these for every job that was submitted.
struct Outcome {
  enum class Kind : uint8_t {
    kAnswer,
    kWorkerDied,
    kMemoryLimit,
    kTimeout,
    kCancelled,
    kStartFailed,
    kTooLarge
  };
  Kind kind = Kind::kAnswer;
  std::string answer;   // kAnswer: the frame
  std::string message;  // otherwise: what happened, for people
  Receipt receipt;      // of the worker during this job: peak, time, limit; of its end if it ended
  int attempts = 0;     // 0: never reached a worker
  std::shared_ptr<const Attachment> attachment = nullptr;  // kAnswer: what came with it; null: nothing
};

// One request to a worker program, as a Pool's, in a process of its own that ends with it.
struct CallOptions {
  int64_t result_bytes = int64_t{1} << 30;  // the longest answer
  int64_t output_bytes =
      int64_t{1} << 20;  // of captured stdout, and of stderr, are kept; the rest is dropped
  std::shared_ptr<const Attachment> attachment = nullptr;  // with the request
};

struct Called {
  Outcome outcome;  // its receipt is that of the whole process
  std::string output, error;
  bool truncated = false;  // there was more output than is kept
};

// Movable, owned by its creator; one thread at a time, except Kill. Runs a thread of its own.
class Call {
 public:
  // Throws what Job::Start throws. limits.output_bytes, unlike options.output_bytes, ends the job.
  static Call Start(Command worker, const Limits& limits, std::string request, CallOptions options = {});
  Call(Call&&) noexcept;
  Call& operator=(Call&&) noexcept;
  ~Call();  // kills and waits
  // Nothing: it is not over within `timeout`. After it was over, do not call again.
  std::optional<Called> WaitFor(std::chrono::milliseconds timeout);
  void Kill() noexcept;

  struct Impl;

 private:
  explicit Call(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct PoolStatistics {
  int64_t submitted = 0, answered = 0, failed = 0, repeated = 0;
  int64_t workers_started = 0, workers_died = 0, recycled_by_jobs = 0, recycled_by_bytes = 0,
          recycled_by_idleness = 0;
  int workers_now = 0;
  int64_t waiting_now = 0;
};

// Thread-safe. Runs one thread of its own, which starts the workers: they die with it. The destructor is
// Close(). In a child of fork() the object is inert: the parent's workers are not touched.
class Pool {
 public:
  explicit Pool(PoolOptions options);  // throws what Job::Start does for the first worker
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Blocks while the queue is full; throws kCancelled after Close. `done` is called exactly once, on the
  // pool's thread, and must not block, throw or close the pool; if it submits, that never blocks (kBusy).
  int64_t Submit(std::string request, JobOptions options, std::function<void(Outcome)> done);
  // As above, but throws kBusy instead of blocking.
  int64_t TrySubmit(std::string request, JobOptions options, std::function<void(Outcome)> done);
  // As above, but waits for room no longer than `timeout`: then returns nothing and leaves `request` as it
  // is.
  std::optional<int64_t> SubmitFor(std::chrono::milliseconds timeout, std::string& request,
                                   JobOptions options, std::function<void(Outcome)> done);
  std::future<Outcome> Submit(std::string request, JobOptions options = {});
  // A job that waits is dropped, one that runs is killed with its worker; its outcome is kCancelled.
  void Cancel(int64_t id);
  // Waits until a worker is warm; false: not within `timeout`. Throws kCancelled after Close, kIo if workers
  // cannot start; jobs that are submitted all the same end with kStartFailed until one can.
  bool WaitReady(std::chrono::milliseconds timeout);
  PoolStatistics Statistics() const;
  std::vector<int> WorkerPids() const;
  // Jobs that wait or run are cancelled, workers ended, everything given back. Idempotent.
  void Close();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll
