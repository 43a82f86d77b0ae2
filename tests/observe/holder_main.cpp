// holder: takes memory of a known kind and amount on command and keeps it, for somebody to look at.
//   Reads lines "KIND AMOUNT [PATH]" on standard input, answers each with "ok" or "no: WHY", ends with its
//   input. AMOUNT is in bytes, or a count.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <semaphore>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr size_t kPage = 4096;

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

void touch(void* memory, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(memory)[at] = 1;
}

size_t read_all(const void* memory, size_t bytes) {
  size_t sum = 0;
  for (size_t at = 0; at < bytes; at += kPage)
    sum += static_cast<size_t>(static_cast<const volatile char*>(memory)[at]);
  return sum;
}

char* map(size_t bytes, int flags, int file = -1, int protection = PROT_READ | PROT_WRITE) {
  void* memory = ::mmap(nullptr, bytes, protection, flags, file, 0);
  require(memory != MAP_FAILED, "mmap");
  return static_cast<char*>(memory);
}

void hold_small_blocks(size_t bytes) {
  constexpr size_t kBlock = 1000;
  for (size_t held = 0; held < bytes; held += kBlock + 8) std::memset(std::malloc(kBlock), 1, kBlock);
}

// Runs `work` in a thread that then waits for ever.
void hold_in_thread(std::function<void()> work, size_t stack_bytes = size_t{8} << 20) {
  struct Job {
    std::function<void()> work;
    std::binary_semaphore done{0};
  };
  auto* job = new Job{std::move(work)};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const int error = pthread_create(
      &thread, &attributes,
      [](void* argument) -> void* {
        auto* mine = static_cast<Job*>(argument);
        mine->work();
        mine->done.release();
        for (;;) ::pause();
      },
      job);
  pthread_attr_destroy(&attributes);
  if (error != 0) throw std::runtime_error(std::string("pthread_create: ") + std::strerror(error));
  job->done.acquire();
}

__attribute__((noinline)) void use_stack(size_t bytes) {
  char* block = static_cast<char*>(__builtin_alloca(bytes));
  touch(block, bytes);
}

int open_file(const std::string& path, size_t bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  require(file >= 0, path.c_str());
  require(::ftruncate(file, static_cast<off_t>(bytes)) == 0, "ftruncate");
  return file;
}

// A file whose pages are in the page cache, written through a descriptor.
int write_file(const std::string& path, size_t bytes) {
  const int file = open_file(path, 0);
  const std::string block(1 << 20, 'x');
  for (size_t done = 0; done < bytes;) {
    const ssize_t count = ::write(file, block.data(), std::min(block.size(), bytes - done));
    require(count > 0, "write");
    done += static_cast<size_t>(count);
  }
  return file;
}

char* last_map = nullptr;  // for "write": who forked writes what it shares
size_t last_map_bytes = 0;

void fork_children(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const pid_t child = ::fork();
    require(child >= 0, "fork");
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
  }
}

void map_many(size_t count) {
  // Every second page has other rights: no two neighbours can be merged.
  char* memory = map(2 * count * kPage, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  for (size_t i = 0; i < count; ++i) {
    memory[2 * i * kPage] = 1;
    require(::mprotect(memory + (2 * i + 1) * kPage, kPage, PROT_READ) == 0, "mprotect");
  }
}

void hold_huge_pages(size_t bytes) {
  constexpr size_t kHuge = size_t{2} << 20;
  char* memory = map(bytes + kHuge, MAP_PRIVATE | MAP_ANONYMOUS);
  auto address = reinterpret_cast<uintptr_t>(memory);
  char* aligned = memory + (kHuge - address % kHuge) % kHuge;
  require(::madvise(aligned, bytes, MADV_HUGEPAGE) == 0, "madvise");
  touch(aligned, bytes);
}

using Command = std::function<void(size_t, const std::string&)>;

const std::map<std::string, Command>& commands() {
  static const std::map<std::string, Command> table = {
      {"heap", [](size_t n, const std::string&) { hold_small_blocks(n); }},
      {"arena", [](size_t n, const std::string&) { hold_in_thread([n] { hold_small_blocks(n); }); }},
      {"malloc", [](size_t n, const std::string&) { touch(std::malloc(n), n); }},
      // The page above stays free: with a map of the dynamic linker's there the kernel would make one of
      // both, of a size that looks like malloc's.
      {"map",
       [](size_t n, const std::string&) {
         last_map = map(n + kPage, MAP_PRIVATE | MAP_ANONYMOUS);
         require(::munmap(last_map + n, kPage) == 0, "munmap");
         touch(last_map, n);
         last_map_bytes = n;
       }},
      {"write", [](size_t n, const std::string&) { touch(last_map, std::min(n, last_map_bytes)); }},
      {"stack", [](size_t n, const std::string&) { hold_in_thread([n] { use_stack(n); }, n + (1 << 20)); }},
      {"threads",
       [](size_t n, const std::string&) {
         for (size_t i = 0; i < n; ++i) hold_in_thread([] {}, size_t{64} << 10);
       }},
      {"maps", [](size_t n, const std::string&) { map_many(n); }},
      {"sparse",  // one page in each 2 MiB: as many page tables
       [](size_t n, const std::string&) {
         constexpr size_t kStep = size_t{2} << 20;
         char* memory = map(n * kStep, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
         ::madvise(memory, n * kStep, MADV_NOHUGEPAGE);
         for (size_t i = 0; i < n; ++i) memory[i * kStep] = 1;
       }},
      {"huge", [](size_t n, const std::string&) { hold_huge_pages(n); }},
      {"shared", [](size_t n, const std::string&) { touch(map(n, MAP_SHARED | MAP_ANONYMOUS), n); }},
      {"memfd",
       [](size_t n, const std::string&) {
         const int file = ::memfd_create("holder", MFD_CLOEXEC);
         require(file >= 0 && ::ftruncate(file, static_cast<off_t>(n)) == 0, "memfd_create");
         touch(map(n, MAP_SHARED, file), n);
       }},
      {"sysv",
       [](size_t n, const std::string&) {
         const int segment = ::shmget(IPC_PRIVATE, n, IPC_CREAT | 0600);
         require(segment >= 0, "shmget");
         void* memory = ::shmat(segment, nullptr, 0);
         ::shmctl(segment, IPC_RMID, nullptr);
         require(memory != reinterpret_cast<void*>(-1), "shmat");
         touch(memory, n);
       }},
      {"tmpfs", [](size_t n, const std::string& path) { touch(map(n, MAP_SHARED, open_file(path, n)), n); }},
      {"private_file",
       [](size_t n, const std::string& path) { touch(map(n, MAP_PRIVATE, write_file(path, n)), n); }},
      {"shared_file",
       [](size_t n, const std::string& path) {
         const char* memory = map(n, MAP_SHARED, write_file(path, n), PROT_READ);
         if (read_all(memory, n) == 0) throw std::runtime_error("the file is empty");
       }},
      {"cache", [](size_t n, const std::string& path) { write_file(path, n); }},
      {"descriptors",
       [](size_t n, const std::string&) {
         for (size_t i = 0; i < n; ++i) require(::dup(0) >= 0, "dup");
       }},
      {"fork", [](size_t n, const std::string&) { fork_children(n); }},
      {"name", [](size_t, const std::string& name) { ::prctl(PR_SET_NAME, name.c_str()); }},
      {"newline", [](size_t, const std::string&) { ::prctl(PR_SET_NAME, "a)\n(b R 1 ("); }},
      {"delete", [](size_t, const std::string& path) { require(::unlink(path.c_str()) == 0, "unlink"); }},
      {"exec",
       [](size_t, const std::string& path) {
         std::cout << "ok" << std::endl;
         ::execl(path.c_str(), path.c_str(), "1000", nullptr);
         require(false, "execl");
       }},
      {"leave",  // the first thread ends, another goes on
       [](size_t, const std::string&) {
         hold_in_thread([] {});
         std::cout << "ok" << std::endl;
         ::pthread_exit(nullptr);
       }},
      {"child",  // ends at once and is not waited for
       [](size_t, const std::string&) {
         const pid_t child = ::fork();
         if (child == 0) ::_exit(0);
         siginfo_t info;
         ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
         std::cout << child << std::endl;
       }},
  };
  return table;
}

}  // namespace

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string kind, path;
    size_t amount = 0;
    words >> kind >> amount >> path;
    try {
      commands().at(kind)(amount, path);
      std::cout << "ok" << std::endl;
    } catch (const std::exception& error) {
      std::cout << "no: " << error.what() << std::endl;
    }
  }
}
