// Families written after the held half had been looked at once: a second half that nothing was tuned on.
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <thread>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;

void linked_list(Run& run) {
  struct Node {
    Node* next;
    char body[1];
  };
  const double mean = run.LogUniform(400, 4000);
  Node* head = nullptr;
  do {
    run.Request();
    const auto bytes = static_cast<size_t>(run.Uniform(0.5, 1.5) * mean) + sizeof(Node);
    auto* node = static_cast<Node*>(std::malloc(bytes));
    std::memset(node->body, 1, bytes - sizeof(Node));
    node->next = head;
    head = node;
    run.Kept(bytes + 8);
  } while (run.Next());
}

// Blocks that malloc maps one by one.
void large_blocks(Run& run) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  const size_t bytes = run.Size(15e4, 4e5);
  const auto every = static_cast<int64_t>(run.Uniform(20, 60));
  static auto& kept = *new Blocks;
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    kept.emplace_back(bytes);
    run.Kept((bytes + 2 * kPage) / kPage * kPage);
  } while (run.Next());
}

// One buffer to which every request appends.
void appended_buffer(Run& run) {
  const size_t bytes = run.Size(1500, 9000);
  std::string all;
  do {
    run.Request();
    all.append(bytes, 'x');
    run.Kept(bytes);
  } while (run.Next());
}

void pipes_unread(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(4, 12));
  const std::string text(run.Size(100, 4000), 'x');
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    int ends[2];
    checked(pipe2(ends, O_CLOEXEC), "pipe");
    checked(write(ends[1], text.data(), text.size()), "write");
  } while (run.Next());
}

// System V messages that nobody receives: kernel memory without a descriptor. A queue that is full gets a
// successor.
void messages_unread(Run& run) {
  struct Message {
    long type = 1;
    char text[4000] = {};
  } message;
  const size_t bytes = run.Size(1000, 4000);
  std::vector<int> queues;
  do {
    run.Request();
    if (queues.empty() || msgsnd(queues.back(), &message, bytes, IPC_NOWAIT) != 0) {
      queues.push_back(checked(msgget(IPC_PRIVATE, IPC_CREAT | 0600), "msgget"));
    }
  } while (run.Next());
  for (const int queue : queues) msgctl(queue, IPC_RMID, nullptr);
}

// The parent serves, a child leaks.
void leaking_child(Run& run) {
  const size_t bytes = run.Size(2e4, 1e5);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) {
    while (getppid() == self) {
      auto* block = static_cast<char*>(std::malloc(bytes));
      std::memset(block, 1, bytes);
      usleep(20000);
    }
    std::_Exit(0);
  }
  do run.Request();
  while (run.Next());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

// A private mapping of a large file that is written page by page.
void written_file_map(Run& run) {
  const std::string path = run.Folder("/tmp") + "/data";
  const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
  const size_t all = size_t{1} << 36;
  checked(ftruncate(file, static_cast<off_t>(all)), "ftruncate");
  auto* data =
      static_cast<char*>(mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0));
  if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
  const size_t bytes = run.Size(4e3, 2e4) / kPage * kPage + kPage;
  size_t at = 0;
  do {
    run.Request();
    touch(data + at, bytes);
    at += bytes;
    run.Kept(bytes);
  } while (run.Next());
}

void mapped_tmpfs_file(Run& run) {
  const std::string folder = run.Folder("/dev/shm");
  const size_t bytes = run.Size(1e5, 4e5) / kPage * kPage;
  const auto every = static_cast<int64_t>(run.Uniform(10, 30));
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const std::string path = folder + "/" + std::to_string(run.iteration());
    const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
    checked(ftruncate(file, static_cast<off_t>(bytes)), "ftruncate");
    auto* data = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
    touch(data, bytes);
    close(file);
    run.Kept(bytes);
  } while (run.Next());
}

// A tree of sessions of which one in ten is never taken out.
void stale_sessions(Run& run) {
  const size_t bytes = run.Size(3000, 20000);
  static auto& sessions = *new std::map<int64_t, Block>;
  do {
    run.Request();
    sessions.emplace(run.iteration(), Block(bytes));
    const int64_t old = run.iteration() - 50;
    if (old % 10 != 0) {
      sessions.erase(old);
    } else if (old >= 0) {
      run.Kept(bytes + 80);
    }
  } while (run.Next());
}

void ring_buffer(Run& run) {
  const size_t bytes = run.Size(5e6, 6e7);
  const double full_at = run.Uniform(0.1, 0.5);
  auto* ring = static_cast<char*>(std::malloc(bytes));
  size_t written = 0;
  do {
    run.Request();
    const auto goal =
        static_cast<size_t>(std::min(1.0, run.Progress() / full_at) * static_cast<double>(bytes));
    for (; written < goal; written += kPage) ring[written] = 1;
  } while (run.Next());
  std::free(ring);
}

// Small collections often, large ones now and then.
void two_generations(Run& run) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  const double minor = run.Uniform(0.015, 0.03), major = run.Uniform(0.09, 0.16);
  const double young_bytes = run.LogUniform(4e6, 1e7), old_bytes = run.LogUniform(1e7, 4e7);
  Blocks young, old;
  const auto fill = [](Blocks& blocks, double bytes) {
    while (static_cast<double>(blocks.size()) * 2e5 < bytes) blocks.emplace_back(200000);
  };
  double last_young = 0, last_old = 0;
  do {
    run.Request();
    const double now = run.Progress();
    if (now - last_young > minor) young = Blocks(), last_young = now;
    if (now - last_old > major * run.Uniform(0.9, 1.1)) old = Blocks(), last_old = now;
    fill(young, young_bytes * (now - last_young) / minor);
    fill(old, old_bytes * (now - last_old) / major);
  } while (run.Next());
}

// Bursts come when they like and are over soon.
void bursts(Run& run) {
  std::deque<std::pair<double, Mapping>> held;
  const double often = run.Uniform(0.003, 0.02), longest = run.Uniform(0.01, 0.05);
  do {
    run.Request();
    if (run.Chance(often)) {
      held.emplace_back(run.Progress() + run.Uniform(0.002, longest), map_pages(run.Size(5e5, 1e7)));
    }
    for (auto it = held.begin(); it != held.end();) {
      if (run.Progress() < it->first) {
        ++it;
        continue;
      }
      unmap(it->second);
      it = held.erase(it);
    }
  } while (run.Next());
}

// A log that starts anew when it is large enough.
void rotated_log(Run& run) {
  const std::string path = run.Folder("/tmp") + "/log";
  const std::string line(run.Size(4e3, 3e4), 'x');
  const double rotations = run.Uniform(6, 20);
  int file = checked(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open");
  double last = 0;
  do {
    run.Request();
    checked(write(file, line.data(), line.size()), "write");
    if (run.Progress() - last < 1 / rotations) continue;
    last = run.Progress();
    checked(ftruncate(file, 0), "ftruncate");
    checked(lseek(file, 0, SEEK_SET), "lseek");
  } while (run.Next());
  close(file);
}

void connection_pool(Run& run) {
  const auto limit = static_cast<size_t>(run.Uniform(50, 400));
  const double full_at = run.Uniform(0.1, 0.5);
  std::vector<int> sockets;
  do {
    run.Request();
    const double share = std::min(1.0, run.Progress() / full_at);
    while (static_cast<double>(sockets.size()) < share * static_cast<double>(limit)) {
      sockets.push_back(checked(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    }
  } while (run.Next());
}

// Maps file after file, reads it and unmaps it.
void file_scan(Run& run) {
  const std::string path = run.Folder("/tmp") + "/data";
  const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
  checked(ftruncate(file, off_t{1} << 40), "ftruncate");
  const size_t bytes = run.Size(1e4, 6e4) / kPage * kPage + kPage;
  off_t at = 0;
  do {
    run.Request();
    void* data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, at);
    if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
    for (size_t i = 0; i < bytes; i += kPage) static_cast<void>(static_cast<volatile char*>(data)[i]);
    munmap(data, bytes);
    at += static_cast<off_t>(bytes);
  } while (run.Next());
}

void small_files(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const std::string text(run.Size(2e3, 1.5e4), 'x');
  do {
    run.Request();
    const std::string path = folder + "/" + std::to_string(run.iteration());
    const int file = checked(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open");
    checked(write(file, text.data(), text.size()), "write");
    close(file);
  } while (run.Next());
}

// Two workers, forked at the start, that do as much as their parent does.
void prefork(Run& run) {
  const Mapping model = map_pages(run.Size(1e7, 5e7));
  const pid_t self = getpid();
  std::array<pid_t, 2> workers{};
  for (pid_t& worker : workers) {
    worker = fork();
    if (worker != 0) continue;
    while (getppid() == self) {
      Block block(20000);
      usleep(5000);
    }
    std::_Exit(0);
  }
  do run.Request();
  while (run.Next());
  for (const pid_t worker : workers) kill(worker, SIGKILL), waitpid(worker, nullptr, 0);
  unmap(model);
}

// A report that is built up over a while and given back as a whole.
void report_job(Run& run) {
  const double begin = run.Uniform(0.15, 0.5), end = begin + run.Uniform(0.1, 0.3);
  const double bytes = run.LogUniform(1e7, 6e7);
  std::vector<Mapping> pages;
  do {
    run.Request();
    const double now = run.Progress();
    while (now > begin && now < end &&
           static_cast<double>(pages.size()) * 65536 < bytes * (now - begin) / (end - begin)) {
      pages.push_back(map_pages(65536));
    }
    if (now < end) continue;
    for (const Mapping& page : pages) unmap(page);
    pages.clear();
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& fresh_families() {
  static const std::vector<Family> families = {
      {"linked_list", linked_list},
      {"large_blocks", large_blocks},
      {"appended_buffer", appended_buffer},
      {"pipes_unread", pipes_unread},
      {"messages_unread", messages_unread},
      {"leaking_child", leaking_child},
      {"written_file_map", written_file_map},
      {"mapped_tmpfs_file", mapped_tmpfs_file},
      {"stale_sessions", stale_sessions},
      {"ring_buffer", ring_buffer},
      {"two_generations", two_generations},
      {"bursts", bursts},
      {"rotated_log", rotated_log},
      {"connection_pool", connection_pool},
      {"file_scan", file_scan},
      {"small_files", small_files},
      {"prefork", prefork},
      {"report_job", report_job},
  };
  return families;
}

}  // namespace plimsoll::scenarios
