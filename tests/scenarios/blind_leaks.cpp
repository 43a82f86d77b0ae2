// Leaks written and labelled by somebody who had not seen how verdicts are reached.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <unordered_set>

#include "scenario.h"

extern char** environ;

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHeader = 16;  // glibc's, per block, with what rounding adds

Blocks& lost() {
  static auto* const blocks = new Blocks;
  return *blocks;
}

void lose(Run& run, size_t bytes) {
  lost().emplace_back(bytes);
  run.Kept(bytes + kHeader);
}

// Threads come and go; what each put into its own storage stays, for the key has no destructor.
void thread_locals(Run& run) {
  pthread_key_t key;
  if (pthread_key_create(&key, nullptr) != 0) throw std::runtime_error("pthread_key_create failed");
  const size_t bytes = run.Size(4e3, 3e4);
  const auto every = static_cast<int64_t>(run.Uniform(2, 6));
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    std::thread([key, bytes] {
      void* own = std::malloc(bytes);
      std::memset(own, 1, bytes);
      pthread_setspecific(key, own);
    }).join();
    run.Kept(bytes + kHeader);
  } while (run.Next());
}

// Client and session own each other.
void pointer_cycle(Run& run) {
  struct Session {
    std::shared_ptr<Session> peer;
    std::vector<char> body;
  };
  const double mean = run.LogUniform(400, 4000);
  do {
    run.Request();
    const auto one = std::make_shared<Session>(), other = std::make_shared<Session>();
    one->peer = other;
    other->peer = one;
    for (Session* session : {one.get(), other.get()}) {
      session->body.assign(static_cast<size_t>(run.Uniform(0.5, 1.5) * mean), 1);
      run.Kept(session->body.size() + kHeader + 64);
    }
  } while (run.Next());
}

// Every name that was ever seen; many come again.
void interned_names(Run& run) {
  const int per_request = static_cast<int>(run.Uniform(20, 60));
  const double novel = run.Uniform(0.2, 0.6);
  const std::string prefix(static_cast<size_t>(run.Uniform(60, 160)), 'n');
  std::unordered_set<std::string> names;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i) {
      const auto known = static_cast<double>(names.size());
      const auto number =
          static_cast<int64_t>(names.empty() || run.Chance(novel) ? known : run.Uniform(0, known - 1));
      const auto [name, added] = names.insert(prefix + std::to_string(number));
      if (added) run.Kept(name->size() + kHeader + 64 + 12);  // node and bucket
    }
  } while (run.Next());
}

// Only requests that fail leak, and they fail for a while at a time.
void outage_leak(Run& run) {
  const size_t bytes = run.Size(3e3, 2e4);
  double begin = run.Uniform(0, 0.05), end = begin;
  do {
    run.Request();
    const double now = run.Progress();
    if (now > end) {
      begin = now + run.Uniform(0.02, 0.08);
      end = begin + run.Uniform(0.005, 0.03);
    }
    if (now > begin) lose(run, bytes);
  } while (run.Next());
}

// Much memory follows the load, up and down; beneath it something stays.
void leak_under_waves(Run& run) {
  const size_t bytes = run.Size(2500, 8000);
  const double waves = run.Uniform(3, 6), phase = run.Uniform(0, 6.28), peak = run.LogUniform(5e6, 2e7);
  constexpr size_t kPiece = 1 << 16;
  std::vector<Mapping> load;
  do {
    run.Request();
    lose(run, bytes);
    const double goal = peak * (1 + std::sin(waves * 6.28 * run.Progress() + phase));
    for (; static_cast<double>(load.size() * kPiece) < goal; load.push_back(map_pages(kPiece))) {
    }
    for (; static_cast<double>(load.size() * kPiece) > goal + kPiece; load.pop_back()) unmap(load.back());
  } while (run.Next());
}

// All is well until somebody switches a feature on.
void late_leak(Run& run) {
  const double begin = run.Uniform(0.08, 0.25);
  const size_t bytes = run.Size(1500, 8000);
  Blocks base;
  for (size_t i = run.Size(500, 5000); i > 0; --i) base.emplace_back(4000);
  do {
    run.Request();
    if (run.Progress() > begin) lose(run, bytes);
  } while (run.Next());
}

void epoll_per_request(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(2, 8));
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const int group = checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    const int timer = checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), "timerfd_create");
    epoll_event event = {};
    event.events = EPOLLIN;
    checked(epoll_ctl(group, EPOLL_CTL_ADD, timer, &event), "epoll_ctl");
  } while (run.Next());
}

// Temporary files on tmpfs without a name, and never closed.
void unlinked_files(Run& run) {
  const std::string path = run.Folder("/dev/shm") + "/upload";
  const size_t bytes = run.Size(2e4, 2e5) / kPage * kPage + kPage;
  const auto every = static_cast<int64_t>(run.Uniform(5, 20));
  const std::string data(bytes, 'x');
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
    unlink(path.c_str());
    checked(write(file, data.data(), data.size()), "write");
    run.Kept(bytes);
  } while (run.Next());
}

// A helper of its own for some requests, which waits for more work for ever.
void helpers_left(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(40, 100));
  int ends[2];
  checked(pipe2(ends, O_CLOEXEC), "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  char name[] = "cat";
  char* const arguments[] = {name, nullptr};
  std::vector<pid_t> helpers;
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    pid_t helper = 0;
    checked(-posix_spawn(&helper, "/bin/cat", &actions, nullptr, arguments, environ), "posix_spawn");
    helpers.push_back(helper);
  } while (run.Next());
  close(ends[1]);
  for (const pid_t helper : helpers) waitpid(helper, nullptr, 0);
}

// Unmaps the payload and forgets the pages of its trailer.
void short_unmap(Run& run) {
  const auto trailer = static_cast<size_t>(run.Uniform(1, 4)) * kPage;
  const double mean = run.LogUniform(3e4, 3e5), chance = run.Uniform(0.3, 0.8);
  do {
    run.Request();
    if (!run.Chance(chance)) continue;
    const auto payload = static_cast<size_t>(run.Uniform(0.5, 1.5) * mean) / kPage * kPage + kPage;
    const Mapping mapping = map_pages(payload + trailer);
    unmap({mapping.data, payload});
    run.Kept(trailer);
  } while (run.Next());
}

// A queue whose consumer, a thread, manages only a part of what comes in.
void slow_consumer(Run& run) {
  const size_t bytes = run.Size(2e3, 1e4);
  const double share = run.Uniform(0.6, 0.9);
  std::mutex mutex;
  std::deque<std::string> queue;
  int64_t produced = 0;
  std::atomic<bool> done{false};
  std::thread consumer([&] {
    for (int64_t consumed = 0; !done; std::this_thread::sleep_for(std::chrono::milliseconds(3))) {
      const std::lock_guard lock(mutex);
      for (; static_cast<double>(consumed) < share * static_cast<double>(produced); ++consumed) {
        queue.pop_front();
      }
    }
  });
  do {
    run.Request();
    const std::lock_guard lock(mutex);
    for (int i = 0; i < 4; ++i, ++produced) queue.emplace_back(bytes, 'x');
    run.Kept(static_cast<size_t>(4 * (1 - share) * static_cast<double>(bytes + kHeader + 32)));
  } while (run.Next());
  done = true;
  consumer.join();
}

// A plugin that is compiled anew, loaded under a new name and never unloaded.
void plugin_copies(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(30, 80));
  Dl_info math{};
  void* const library = dlopen("libm.so.6", RTLD_NOW);
  if (library == nullptr || dladdr(dlsym(library, "cbrt"), &math) == 0) throw std::runtime_error("no libm");
  const std::string folder = run.Folder("/tmp");
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const std::string path = folder + "/plugin" + std::to_string(run.iteration()) + ".so";
    std::filesystem::copy_file(math.dli_fname, path);
    if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) throw std::runtime_error(dlerror());
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& blind_leaks() {
  static const std::vector<Family> families = {
      {"thread_locals", thread_locals},         {"pointer_cycle", pointer_cycle},
      {"interned_names", interned_names},       {"outage_leak", outage_leak},
      {"leak_under_waves", leak_under_waves},   {"late_leak", late_leak},
      {"epoll_per_request", epoll_per_request}, {"unlinked_files", unlinked_files},
      {"helpers_left", helpers_left},           {"short_unmap", short_unmap},
      {"slow_consumer", slow_consumer},         {"plugin_copies", plugin_copies},
  };
  return families;
}

}  // namespace plimsoll::scenarios
