// Families that grow for ever outside the heap: maps, stacks, shared memory, files, descriptors, kernel
// objects.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <alloca.h>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;

size_t whole_pages(double bytes) {
  return (static_cast<size_t>(bytes) + kPage - 1) / kPage * kPage;
}

void anonymous_maps(Run& run) {
  const double mean = run.LogUniform(8e3, 6e4);
  do {
    run.Request();
    run.Kept(map_pages(whole_pages(run.Uniform(0.5, 1.5) * mean)).bytes);
  } while (run.Next());
}

// Each map with a guard page, so that the kernel cannot merge them.
void guarded_maps(Run& run) {
  const double mean = run.LogUniform(1e4, 8e4);
  do {
    run.Request();
    if (!run.Chance(0.5)) continue;
    const Mapping mapping = map_pages(whole_pages(run.Uniform(0.5, 1.5) * mean));
    mprotect(mapping.data, kPage, PROT_NONE);
    run.Kept(mapping.bytes);
  } while (run.Next());
}

void mapped_files_leak(Run& run) {
  const size_t bytes = whole_pages(run.LogUniform(8e3, 4e4));
  const std::string path = run.Folder("/tmp") + "/data";
  const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
  checked(ftruncate(file, off_t{1} << 40), "ftruncate");  // with holes
  off_t at = 0;
  do {
    run.Request();
    auto* data = static_cast<char*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, at));
    if (data == MAP_FAILED) throw std::runtime_error("mmap of a file failed");
    for (size_t i = 0; i < bytes; i += kPage) static_cast<void>(static_cast<volatile char*>(data)[i]);
    at += static_cast<off_t>(bytes) * 2;
    run.Kept(bytes);
  } while (run.Next());
}

void use_stack(size_t bytes) {
  touch(static_cast<char*>(alloca(bytes)), bytes);
}

void threads_blocked(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(8, 25));
  const size_t stack = run.Size(8e3, 6e4);
  static auto& mutex = *new std::mutex;  // threads wait on them until the end
  static auto& never = *new std::condition_variable;
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    std::thread([stack] {
      use_stack(stack);
      std::unique_lock lock(mutex);
      never.wait(lock, [] { return false; });
    }).detach();
    run.Kept(whole_pages(static_cast<double>(stack)) + 2 * kPage);
  } while (run.Next());
}

// They end, but their stacks wait for somebody to join them.
void threads_unjoined(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(4, 12));
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    pthread_t thread;
    if (pthread_create(
            &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) != 0) {
      throw std::runtime_error("pthread_create failed");
    }
  } while (run.Next());
}

void memfd_grows(Run& run) {
  const size_t bytes = whole_pages(run.LogUniform(4e3, 3e4));
  const int file = checked(memfd_create("segment", MFD_CLOEXEC), "memfd_create");
  char* data = nullptr;
  size_t size = 0;
  do {
    run.Request();
    checked(ftruncate(file, static_cast<off_t>(size + bytes)), "ftruncate");
    if (data == nullptr) {
      data = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    } else {
      data = static_cast<char*>(mremap(data, size, size + bytes, MREMAP_MAYMOVE));
    }
    if (data == MAP_FAILED) throw std::runtime_error("mapping a memfd failed");
    touch(data + size, bytes);
    size += bytes;
    run.Kept(bytes);
  } while (run.Next());
}

// System V segments that are written, detached and never removed: no process maps them.
void sysv_segments(Run& run) {
  const size_t bytes = whole_pages(run.LogUniform(2e4, 2e5));
  std::vector<int> segments;
  do {
    run.Request();
    if (run.iteration() % 4 != 0) continue;
    const int segment = shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
    if (segment < 0) break;  // the system's limit
    segments.push_back(segment);
    auto* data = static_cast<char*>(shmat(segment, nullptr, 0));
    touch(data, bytes);
    shmdt(data);
    run.Kept(bytes);
  } while (run.Next());
  for (const int segment : segments) shmctl(segment, IPC_RMID, nullptr);
}

void tmpfs_files(Run& run) {
  const std::string folder = run.Folder("/dev/shm");
  const double mean = run.LogUniform(8e3, 5e4);
  do {
    run.Request();
    const std::string path = folder + "/" + std::to_string(run.iteration());
    const int file = checked(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open");
    const std::string data(whole_pages(run.Uniform(0.5, 1.5) * mean), 'x');
    checked(static_cast<int>(write(file, data.data(), data.size())), "write");
    close(file);
    run.Kept(data.size());
  } while (run.Next());
}

void descriptors(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(2, 8));
  do {
    run.Request();
    if (run.iteration() % every == 0) checked(open("/dev/null", O_RDONLY | O_CLOEXEC), "open");
  } while (run.Next());
}

// Pairs with a message that nobody reads.
void sockets(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(3, 10));
  const std::string message(run.Size(100, 4000), 'x');
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    int pair[2];
    checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
    checked(static_cast<int>(write(pair[0], message.data(), message.size())), "write");
  } while (run.Next());
}

void event_descriptors(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(2, 10));
  do {
    run.Request();
    if (run.iteration() % every == 0) checked(eventfd(0, EFD_CLOEXEC), "eventfd");
  } while (run.Next());
}

// Every second byte of a file is locked: a kernel object each, and no descriptor.
void file_locks(Run& run) {
  const std::string path = run.Folder("/tmp") + "/locked";
  const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
  const int per_request = static_cast<int>(run.Uniform(4, 12));
  off_t at = 0;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i, at += 2) {
      struct flock lock = {};
      lock.l_type = F_WRLCK;
      lock.l_whence = SEEK_SET;
      lock.l_start = -at + (off_t{1} << 40);  // downwards: the list is searched from its front
      lock.l_len = 1;
      checked(fcntl(file, F_SETLK, &lock), "lock");
    }
  } while (run.Next());
}

void posix_timers(Run& run) {
  const int per_request = static_cast<int>(run.Uniform(3, 9));
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i) {
      sigevent event = {};
      event.sigev_notify = SIGEV_NONE;
      timer_t timer;
      if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) break;
    }
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& kernel_leaks() {
  static const std::vector<Family> families = {
      {"anonymous_maps", anonymous_maps},
      {"guarded_maps", guarded_maps},
      {"mapped_files_leak", mapped_files_leak},
      {"threads_blocked", threads_blocked},
      {"threads_unjoined", threads_unjoined},
      {"memfd_grows", memfd_grows},
      {"sysv_segments", sysv_segments},
      {"tmpfs_files", tmpfs_files},
      {"descriptors", descriptors},
      {"event_descriptors", event_descriptors},
      {"sockets", sockets},
      {"file_locks", file_locks},
      {"posix_timers", posix_timers},
  };
  return families;
}

}  // namespace plimsoll::scenarios
