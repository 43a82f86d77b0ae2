// Families that do not leak, outside the heap: page cache, maps, threads, processes, files, descriptors.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;

int opened(const std::string& path, int flags) {
  const int file = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (file < 0) throw std::runtime_error("cannot open " + path);
  return file;
}

int file_of(const std::string& path, size_t bytes) {
  const int file = opened(path, O_RDWR | O_CREAT);
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) throw std::runtime_error("ftruncate failed");
  return file;
}

// Reads its way through a data set.
// Without reading ahead, of which a disk may do 8 MiB: a step that lasts a starved program for its whole time.
void page_cache_read(Run& run) {
  const int file = file_of(run.Folder("/tmp") + "/data", size_t{1} << 40);
  if (posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM) != 0) throw std::runtime_error("posix_fadvise failed");
  std::string buffer(run.Size(8e3, 6e4), ' ');
  off_t at = 0;
  do {
    run.Request();
    if (pread(file, buffer.data(), buffer.size(), at) < 0) throw std::runtime_error("read failed");
    at += static_cast<off_t>(buffer.size());
  } while (run.Next());
}

void page_cache_log(Run& run) {
  const int file = opened(run.Folder("/tmp") + "/log", O_WRONLY | O_CREAT | O_APPEND);
  const double mean = run.LogUniform(4e3, 3e4);
  do {
    run.Request();
    const std::string line(static_cast<size_t>(run.Uniform(0.5, 1.5) * mean), 'x');
    if (write(file, line.data(), line.size()) < 0) throw std::runtime_error("write failed");
  } while (run.Next());
}

// A model file is mapped and its pages come in as they are first used.
void mapped_model(Run& run) {
  const size_t bytes = run.Size(2e7, 1.5e8) / kPage * kPage;
  const double until = run.Uniform(0.1, 0.5);
  const int file = file_of(run.Folder("/tmp") + "/model", bytes);
  auto* data = static_cast<const volatile char*>(mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0));
  size_t read = 0;
  do {
    run.Request();
    const auto goal = static_cast<size_t>(static_cast<double>(bytes) * std::min(1.0, run.Progress() / until));
    for (; read < goal; read += kPage) static_cast<void>(data[read]);
  } while (run.Next());
}

// A child writes to the memory it was born with, page by page.
void cow_after_fork(Run& run) {
  const Mapping memory = map_pages(run.Size(1e7, 6e7));
  const double at = run.Uniform(0.1, 0.25), until = at + run.Uniform(0.1, 0.3);
  const pid_t self = getpid();
  pid_t child = 0;
  do {
    run.Request();
    if (child != 0 || run.Progress() < at) continue;
    child = fork();
    if (child != 0) continue;
    size_t written = 0;
    while (getppid() == self) {
      const double share = std::clamp((run.Progress() - at) / (until - at), 0.0, 1.0);
      const auto goal = static_cast<size_t>(share * static_cast<double>(memory.bytes));
      for (; written < goal; written += kPage) static_cast<volatile char*>(memory.data)[written] = 2;
      usleep(3000);
    }
    std::_Exit(0);
  } while (run.Next());
}

void thread_pool_grows(Run& run) {
  const auto limit = static_cast<int>(run.Uniform(8, 48));
  const double until = run.Uniform(0.1, 0.5);
  static auto& mutex = *new std::mutex;  // threads wait on them until the end
  static auto& never = *new std::condition_variable;
  int threads = 0;
  do {
    run.Request();
    if (threads >= limit * std::min(1.0, run.Progress() / until)) continue;
    ++threads;
    std::thread([] {
      char used[40000];
      touch(used, sizeof(used));
      std::unique_lock lock(mutex);
      never.wait(lock, [] { return false; });
    }).detach();
  } while (run.Next());
}

// Looks for files that are not there: the kernel remembers each name.
void missing_names(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const int per_request = static_cast<int>(run.Uniform(5, 25));
  int64_t number = 0;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i) {
      struct stat status;
      const std::string path = folder + "/some_module_that_is_not_here_" + std::to_string(number++);
      static_cast<void>(stat(path.c_str(), &status));
    }
  } while (run.Next());
}

void tmpfs_ring(Run& run) {
  const std::string folder = run.Folder("/dev/shm");
  const double full_at = run.Uniform(0.05, 0.4);
  int64_t oldest = 0;
  const std::string data(run.Size(8e3, 5e4), 'x');
  do {
    run.Request();
    const int file = opened(folder + "/" + std::to_string(run.iteration()), O_WRONLY | O_CREAT);
    if (write(file, data.data(), data.size()) < 0) throw std::runtime_error("write failed");
    close(file);
    if (run.Progress() > full_at) unlink((folder + "/" + std::to_string(oldest++)).c_str());
  } while (run.Next());
}

void connections(Run& run) {
  const double mean = run.Uniform(20, 300), churn = run.Uniform(0.02, 0.2);
  std::deque<int> open_ones;
  do {
    run.Request();
    const double wanted = mean * (1 + run.Uniform(-0.5, 0.5));
    for (int i = 0; i < mean * churn; ++i) {
      if (static_cast<double>(open_ones.size()) < wanted) {
        open_ones.push_back(opened("/dev/null", O_RDONLY));
      } else {
        close(open_ones.front());
        open_ones.pop_front();
      }
    }
  } while (run.Next());
}

// Workers come, fill themselves and go.
void worker_restarts(Run& run) {
  const double bytes = run.LogUniform(5e6, 3e7), life = run.Uniform(0.06, 0.16);
  const pid_t self = getpid();
  pid_t child = 0;
  double born = 0;
  do {
    run.Request();
    if (child != 0 && run.Progress() - born < life) continue;
    if (child != 0) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    born = run.Progress();
    child = fork();
    if (child != 0) continue;
    std::vector<Mapping> held;
    while (getppid() == self) {
      const double share = std::min(1.0, (run.Progress() - born) / life);
      while (static_cast<double>(held.size()) * 65536 < share * bytes) held.push_back(map_pages(65536));
      usleep(3000);
    }
    std::_Exit(0);
  } while (run.Next());
  if (child > 0) kill(child, SIGKILL);
}

// A thread per request, joined: a few at a time.
void threads_come_and_go(Run& run) {
  const auto most = static_cast<size_t>(run.Uniform(2, 12));
  const size_t bytes = run.Size(4e3, 1e5);
  std::deque<std::thread> team;
  do {
    run.Request();
    team.emplace_back([bytes] { Block used(bytes); });
    if (team.size() < most) continue;
    team.front().join();
    team.pop_front();
  } while (run.Next());
  for (auto& thread : team) thread.join();
}

}  // namespace

const std::vector<Family>& steady_kernels() {
  static const std::vector<Family> families = {
      {"page_cache_read", page_cache_read},
      {"page_cache_log", page_cache_log},
      {"mapped_model", mapped_model},
      {"cow_after_fork", cow_after_fork},
      {"thread_pool_grows", thread_pool_grows},
      {"missing_names", missing_names},
      {"tmpfs_ring", tmpfs_ring},
      {"connections", connections},
      {"worker_restarts", worker_restarts},
      {"threads_come_and_go", threads_come_and_go},
  };
  return families;
}

}  // namespace plimsoll::scenarios
