#include "isolate/guard.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string>

#include "isolate/job_cgroup.h"
#include "isolate/output.h"
#include "isolate/spawn.h"

namespace plimsoll {
namespace {

// $1: our pid and start time, as they stand in the names of our cgroups. On stdin: "d DIRECTORY", where they
// are; "o DIRECTORY", our own, if we took a seat beneath it (seat.h); "s SESSION" and "e SESSION", a session
// began and ended.
constexpr const char* kScript = R"sh(trap '' HUP INT QUIT TERM PIPE
directories= own= sessions=' '
while read -r verb what; do
  case $verb in
    d) directories="$directories
$what" ;;
    o) own=$what ;;
    s) sessions="$sessions$what " ;;
    e) case $sessions in *" $what "*) sessions="${sessions%% $what *} ${sessions#* $what }" ;; esac ;;
  esac
done
for session in $sessions; do kill -9 "-$session"; done
clear() ( # whatever the job made below, to any depth
  while read -r process; do kill -9 "$process"; done <"$1/cgroup.procs"
  for below in "$1"/*/; do [ -d "$below" ] && clear "${below%/}" && rmdir "$below"; done
  true
)
remove() {
  n=0
  while [ -d "$1" ] && [ $n -lt 500 ]; do
    [ -w "$1/cgroup.kill" ] && echo 1 >"$1/cgroup.kill"
    clear "$1"
    [ -w "$1/memory.force_empty" ] && echo 0 >"$1/memory.force_empty"
    [ -w "$1/memory.reclaim" ] && read -r held <"$1/memory.current" && echo "$held" >"$1/memory.reclaim"
    rmdir "$1" && return
    n=$((n + 1))
    sleep 0.01
  done
}
IFS='
'
for directory in $directories; do
  for group in "$directory/plimsoll-$1-"*; do remove "$group"; done
done
[ "$own" ] || exit
alone() {
  while read -r process; do [ "$process" = $$ ] || return 1; done <"$own/plimsoll-seat/cgroup.procs"
}
# Whoever is the last in the seat gives it back. The dead close the pipe a moment before they leave.
n=0
until alone; do
  [ $n -lt 300 ] || exit
  n=$((n + 1))
  sleep 0.01
done
echo '-memory' >"$own/cgroup.subtree_control"
echo '-pids' >"$own/cgroup.subtree_control"
echo $$ >"$own/cgroup.procs"
rmdir "$own/plimsoll-seat"
)sh";

struct State {
  std::mutex mutex;
  std::atomic<int> pipe{-1};
  std::shared_ptr<const Surroundings> told;
};

State& state() {
  static State the_state;
  return the_state;
}

// A child of fork() is not us: if it kept the pipe open, our end would go unnoticed.
void forget_guard_in_child() {
  const int pipe = state().pipe.exchange(-1);
  if (pipe >= 0) ::close(pipe);
}

bool is_listening(int pipe) {
  pollfd polled = {pipe, 0, 0};
  return pipe >= 0 && ::poll(&polled, 1, 0) == 0;  // POLLERR: nobody reads any more
}

void tell(int pipe, const std::string& line) noexcept {
  write_without_signal(pipe, line.data(), line.size());
}

Descriptor start_guard(const Surroundings& around) {
  Pipe pipe = make_pipe();
  ::fcntl(pipe.read_end.get(), F_SETFL, 0);  // a shell expects to wait
  const Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) return Descriptor();
  const int pid = ::getpid();
  SpawnRequest request;
  request.programs = {"/bin/sh"};
  request.argv = {"sh", "-c", kScript, "plimsoll-guard",
                  fmt::format("{}-{}", pid, process_start_time(pid).value_or(0))};
  request.environment = {"PATH=/usr/bin:/bin"};
  request.working_directory.push_back('/');
  request.descriptors = {{pipe.read_end.get(), 0}, {null.get(), 1}, {null.get(), 2}};
  for (const auto& opened : around.opened) request.descriptors.emplace_back(opened->get(), opened->get());
  request.dies_with_thread = false;
  request.detached = true;
  spawn(request);
  return std::move(pipe.write_end);
}

}  // namespace

bool ensure_guard(const std::shared_ptr<const Surroundings>& around) noexcept try {
  State& guard = state();
  const std::lock_guard lock(guard.mutex);
  if (!is_listening(guard.pipe)) {
    static std::once_flag registered;
    std::call_once(registered, [] { ::pthread_atfork(nullptr, nullptr, forget_guard_in_child); });
    forget_guard_in_child();
    guard.pipe = start_guard(*around).release();
    guard.told.reset();
  }
  if (guard.pipe >= 0 && guard.told != around) {
    for (const auto* place : {&around->memory, &around->unified, &around->pids, &around->cpuacct}) {
      if (*place) tell(guard.pipe, fmt::format("d {}\n", (*place)->directory));
    }
    if (!around->seated_beneath.empty()) tell(guard.pipe, fmt::format("o {}\n", around->seated_beneath));
    guard.told = around;
  }
  return guard.pipe >= 0;
} catch (...) {
  return false;
}

void tell_guard_of_session(int session, bool runs) noexcept try {
  if (const int pipe = state().pipe; pipe >= 0) tell(pipe, fmt::format("{} {}\n", runs ? 's' : 'e', session));
} catch (...) {  // no memory for a line: the next start cleans up
}

}  // namespace plimsoll
