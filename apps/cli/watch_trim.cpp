#include "watch_trim.h"

#if defined(__x86_64__) && defined(__GLIBC__)

#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>
#include <malloc.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace plimsoll::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Where malloc_trim is in the other process: at the same offset in the same file as in ours. 0: it maps
// another libc, or none.
uint64_t find_trim(int pid) {
  Dl_info ours = {};
  if (::dladdr(reinterpret_cast<void*>(&::malloc_trim), &ours) == 0) return 0;
  struct stat libc = {};
  if (::stat(ours.dli_fname, &libc) != 0) return 0;
  const uint64_t offset =
      reinterpret_cast<uint64_t>(&::malloc_trim) - reinterpret_cast<uint64_t>(ours.dli_fbase);
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, at = 0, inode = 0;
    unsigned major_number = 0, minor_number = 0;
    char access[5];
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu", &begin, &end, access, &at, &major_number,
                    &minor_number, &inode) != 7)
      continue;
    if (inode == libc.st_ino && makedev(major_number, minor_number) == libc.st_dev && at == 0)
      return begin + offset;
  }
  return 0;
}

std::vector<int> thread_ids(int pid) {
  std::vector<int> ids;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid), error))
    ids.push_back(std::atoi(entry.path().filename().c_str()));
  std::sort(ids.begin(), ids.end());
  return ids;
}

// A thread inside malloc or free may hold its lock, and makes these calls.
bool allocator_makes(uint64_t call) {
  constexpr uint64_t kCalls[] = {SYS_brk,     SYS_mmap,     SYS_munmap, SYS_mremap,
                                 SYS_madvise, SYS_mprotect, SYS_futex,  SYS_sched_yield};
  return std::find(std::begin(kCalls), std::end(kCalls), call) != std::end(kCalls);
}

// An impatient Ctrl-C waits: if we ended while a thread runs what we gave it, its process would crash.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsWait() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_ = {};
};

// A thread that we hold; let go as it was found.
class HeldThread {
 public:
  explicit HeldThread(int id) : id_(id) {}
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;
  ~HeldThread() {
    if (held_) ::ptrace(PTRACE_DETACH, id_, nullptr, nullptr);
  }

  // False with errno.
  bool hold() {
    if (::ptrace(PTRACE_SEIZE, id_, nullptr, nullptr) != 0) return false;
    if (::ptrace(PTRACE_INTERRUPT, id_, nullptr, nullptr) != 0) return false;
    int status = 0;
    held_ = wait_stopped(status, std::chrono::seconds(5));
    state_.iov_base = area_.data();
    state_.iov_len = area_.size();
    return held_ && ::ptrace(PTRACE_GETREGS, id_, nullptr, &registers_) == 0 &&
           ::ptrace(PTRACE_GETREGSET, id_, NT_X86_XSTATE, &state_) == 0;
  }

  bool rests_outside_the_allocator() const {
    const auto call = static_cast<int64_t>(registers_.orig_rax);
    return call >= 0 && !allocator_makes(registers_.orig_rax);
  }

  // Runs function(0) on its stack, below what a leaf function may use there. The return address is 0: the
  // fault at 0 is the end.
  bool call(uint64_t function) {
    constexpr uint64_t kRedZone = 128;
    user_regs_struct changed = registers_;
    changed.rsp = ((registers_.rsp - kRedZone - 256) & ~uint64_t{15}) - 8;
    changed.rip = function;
    changed.rdi = 0;
    changed.rax = 0;
    changed.orig_rax = ~uint64_t{0};  // otherwise the kernel would restart the system call here
    changed.eflags &= ~uint64_t{0x400};
    if (::ptrace(PTRACE_POKEDATA, id_, changed.rsp, nullptr) != 0) return false;
    if (::ptrace(PTRACE_SETREGS, id_, nullptr, &changed) != 0) return false;
    const bool returned = run_to_zero();
    ::ptrace(PTRACE_SETREGSET, id_, NT_X86_XSTATE, &state_);
    ::ptrace(PTRACE_SETREGS, id_, nullptr, &registers_);
    return returned;
  }

 private:
  bool wait_stopped(int& status, Clock::duration limit) const {
    const auto end = Clock::now() + limit;
    while (Clock::now() < end) {
      const int got = ::waitpid(id_, &status, __WALL | WNOHANG);
      if (got == id_) return WIFSTOPPED(status);
      if (got < 0 && errno != EINTR) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  bool run_to_zero() {
    long signal = 0;
    for (;;) {
      if (::ptrace(PTRACE_CONT, id_, nullptr, signal) != 0) return false;
      int status = 0;
      if (!wait_stopped(status, std::chrono::seconds(30))) {
        // It waits for something: it is stopped where it is, and everything is put back.
        ::ptrace(PTRACE_INTERRUPT, id_, nullptr, nullptr);
        if (!wait_stopped(status, std::chrono::seconds(5))) held_ = false;
        return false;
      }
      user_regs_struct now = {};
      if (::ptrace(PTRACE_GETREGS, id_, nullptr, &now) != 0) return false;
      if (WSTOPSIG(status) == SIGSEGV && now.rip == 0) return true;
      // A signal of its own is delivered; a stop of ours is not.
      signal = (status >> 16) == 0 ? WSTOPSIG(status) : 0;
    }
  }

  const int id_;
  bool held_ = false;
  user_regs_struct registers_ = {};
  std::vector<char> area_ = std::vector<char>(65536);  // the kernel says how much of it is used
  struct iovec state_ = {};
};

}  // namespace

bool can_trim() {
  return true;
}

std::string trim_process(int pid) {
  if (!std::ifstream(fmt::format("/proc/{}/maps", pid)))
    return fmt::format("not done: its mappings may not be read: {} (ask as its owner or as root)",
                       std::strerror(errno));
  const uint64_t function = find_trim(pid);
  if (function == 0)
    return "not done: the process does not use this machine's glibc, so where its malloc_trim is cannot be "
           "told";
  constexpr int kAttempts = 40;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    for (const int id : thread_ids(pid)) {
      const SignalsWait wait;
      HeldThread thread(id);
      if (!thread.hold()) return fmt::format("not done: cannot stop thread {}: {}", id, std::strerror(errno));
      if (!thread.rests_outside_the_allocator()) continue;
      return thread.call(function) ? "" : "not done: malloc_trim did not return within 30 s";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return "not done: no thread of the process rested where it is safe to call the allocator";
}

}  // namespace plimsoll::cli

#else

namespace plimsoll::cli {

bool can_trim() {
  return false;
}

std::string trim_process(int) {
  return "not done: only on x86-64 with glibc";
}

}  // namespace plimsoll::cli

#endif
