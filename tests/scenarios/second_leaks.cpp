// Leaks of the second blind half: written and labelled by somebody who had not seen how verdicts are reached.
#include <arpa/inet.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <alloca.h>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHeader = 8;  // of glibc, besides what malloc_usable_size() tells

// What the containers below hold, with what malloc adds to it.
size_t& held_bytes() {
  static size_t held = 0;
  return held;
}

// Tells a run what was added since the last time; what was taken away wraps around, as the run's sum does.
class Told {
 public:
  void Tell(Run& run) {
    run.Kept(held_bytes() - told_);
    told_ = held_bytes();
  }

 private:
  size_t told_ = 0;
};

template <typename T>
struct Counted {
  using value_type = T;
  Counted() = default;
  template <typename U>
  Counted(const Counted<U>&) {}  // NOLINT: as an allocator has to
  T* allocate(size_t count) {
    void* data = std::malloc(count * sizeof(T));
    if (data == nullptr) throw std::bad_alloc();
    held_bytes() += malloc_usable_size(data) + kHeader;
    return static_cast<T*>(data);
  }
  void deallocate(T* data, size_t) {
    held_bytes() -= malloc_usable_size(data) + kHeader;
    std::free(data);
  }
  bool operator==(const Counted&) const { return true; }
};
using Text = std::basic_string<char, std::char_traits<char>, Counted<char>>;
template <typename T>
using List = std::vector<T, Counted<T>>;
struct Hash {
  size_t operator()(const Text& text) const { return std::hash<std::string_view>()(text); }
};
template <typename T>
using Table = std::unordered_map<Text, T, Hash, std::equal_to<Text>, Counted<std::pair<const Text, T>>>;
template <typename K, typename T>
using Tree = std::map<K, T, std::less<K>, Counted<std::pair<const K, T>>>;

Text named(const char* prefix, int64_t number) {
  const std::string text = prefix + std::to_string(number * 2654435761);
  return Text(text.data(), text.size());
}

// A session per cookie, with what its visitor looked at lately; many come again, none is ever forgotten.
void cookie_sessions(Run& run) {
  const double newcomers = run.Uniform(0.25, 0.6);
  const double mean = run.LogUniform(800, 4000);
  static auto& sessions = *new Table<List<Text>>;
  Told told;
  do {
    run.Request();
    const auto known = static_cast<double>(sessions.size());
    const double visitor = sessions.empty() || run.Chance(newcomers) ? known : run.Uniform(0, known - 1);
    List<Text>& seen =
        sessions[named("session=0123456789abcdef0123456789; id=", static_cast<int64_t>(visitor))];
    if (seen.size() >= 8) seen.erase(seen.begin());
    seen.emplace_back(static_cast<size_t>(run.Uniform(0.5, 1.5) * mean), 'p');
    told.Tell(run);
  } while (run.Next());
}

// A histogram for every combination of labels, and one of the labels is what users send.
void metric_labels(Run& run) {
  const int fresh = static_cast<int>(run.Uniform(3, 12)), known = static_cast<int>(run.Uniform(10, 60));
  static auto& series = *new Tree<Text, std::array<double, 24>>;
  Told told;
  int64_t users = 0;
  do {
    run.Request();
    for (int i = 0; i < fresh; ++i) {
      ++series[named("http_request_seconds{path=\"/v1/items\",method=\"GET\",user=", users++)][i];
    }
    for (int i = 0; i < known; ++i) {
      const auto user = static_cast<int64_t>(run.Uniform(0, static_cast<double>(users)));
      ++series[named("http_request_seconds{path=\"/v1/items\",method=\"GET\",user=", user)][i % 24];
    }
    told.Tell(run);
  } while (run.Next());
}

// The parser of each request resets its own arena; that of the symbols is never reset.
void parse_arena(Run& run) {
  const auto chunk = static_cast<size_t>(1) << static_cast<int>(run.Uniform(15, 20));
  const int symbols = static_cast<int>(run.Uniform(15, 50));
  std::vector<char> own(run.Size(2e4, 3e5));
  char* at = nullptr;
  size_t left = 0;
  do {
    run.Request();
    std::memset(own.data(), 1, static_cast<size_t>(run.Uniform(0, 1) * static_cast<double>(own.size())));
    for (int i = 0; i < symbols; ++i) {
      const size_t bytes = static_cast<size_t>(run.Uniform(24, 220)) / 8 * 8;
      if (bytes > left) at = static_cast<char*>(std::malloc(chunk)), left = chunk;
      std::memset(at, 's', bytes);
      at += bytes;
      left -= bytes;
      run.Kept(bytes);
    }
  } while (run.Next());
}

// Clients come over TCP, ask, and close; the server never closes its end, and keeps that client's buffer.
void half_closed_connections(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(4, 10));
  const size_t bytes = run.Size(1e4, 6e4);
  const int server = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  checked(bind(server, where, length), "bind");
  checked(listen(server, 16), "listen");
  checked(getsockname(server, where, &length), "getsockname");
  static auto& clients = *new std::unordered_map<int, Block>;
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const int client = checked(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    checked(connect(client, where, length), "connect");
    const int accepted = checked(accept4(server, nullptr, nullptr, SOCK_CLOEXEC), "accept");
    char question[] = "GET / HTTP/1.0\r\n\r\n";
    checked(write(client, question, sizeof(question)), "write");
    checked(read(accepted, question, sizeof(question)), "read");
    clients.emplace(accepted, Block(bytes));
    close(client);
  } while (run.Next());
}

// A trace that is appended to, in a folder that happens to be memory.
void trace_on_tmpfs(Run& run) {
  const std::string path = run.Folder("/dev/shm") + "/trace";
  const int file = checked(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), "open");
  const double mean = run.LogUniform(1500, 12000);
  do {
    run.Request();
    const std::string events(static_cast<size_t>(run.Uniform(0.2, 1.8) * mean), 'e');
    checked(write(file, events.data(), events.size()), "write");
    run.Kept(events.size());
  } while (run.Next());
}

// What was uploaded is read through a mapping; the file is removed, the mapping is forgotten.
void forgotten_uploads(Run& run) {
  const std::string path = run.Folder("/tmp") + "/upload";
  const double mean = run.LogUniform(1e4, 6e4);
  const auto every = static_cast<int64_t>(run.Uniform(1, 4));
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const std::string body(static_cast<size_t>(run.Uniform(0.5, 1.5) * mean), 'u');
    const int file = checked(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), "open");
    checked(write(file, body.data(), body.size()), "write");
    void* const data = mmap(nullptr, body.size(), PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
    close(file);
    unlink(path.c_str());
    for (size_t i = 0; i < body.size(); i += kPage) static_cast<void>(static_cast<volatile char*>(data)[i]);
    run.Kept((body.size() + kPage - 1) / kPage * kPage);
  } while (run.Next());
}

// A worker for a client that never says goodbye: it waits, with the buffers it works with.
void zombie_workers(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(10, 30));
  const size_t bytes = run.Size(3e4, 1e5);
  static auto& mutex = *new std::mutex;  // threads wait on them until the end
  static auto& never = *new std::condition_variable;
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    std::thread([bytes] {
      Block in(bytes / 3), out(bytes * 2 / 3);
      touch(static_cast<char*>(alloca(8000)), 8000);
      std::unique_lock lock(mutex);
      never.wait(lock, [] { return false; });
    }).detach();
  } while (run.Next());
}

// Results of work done in other threads: all futures are kept, also when their results were used.
void kept_futures(Run& run) {
  using Result = std::vector<float>;
  const auto every = static_cast<int64_t>(run.Uniform(2, 7));
  const double mean = run.LogUniform(1500, 8000);
  static auto& futures = *new std::vector<std::shared_future<Result>>;
  do {
    run.Request();
    if (run.iteration() % every != 0) continue;
    const auto cells = static_cast<size_t>(run.Uniform(0.5, 1.5) * mean);
    futures.push_back(std::async(std::launch::async, [cells] { return Result(cells, 1.0f); }).share());
    run.Kept(cells * sizeof(float) + 2 * kHeader + 240);         // result, thread's state and entry
    if (futures.size() > 1) futures[futures.size() - 2].wait();  // its thread is joined, its result was used
  } while (run.Next());
}

// What failed is tried again later, and more fails anew than succeeds then.
void retry_list(Run& run) {
  const int failures = static_cast<int>(run.Uniform(3, 7));
  const double success = run.Uniform(0.3, 0.7), mean = run.LogUniform(500, 4000);
  static auto& waiting = *new std::deque<Text, Counted<Text>>;
  Told told;
  do {
    run.Request();
    for (int i = 0; i < failures; ++i) {
      waiting.emplace_back(static_cast<size_t>(run.Uniform(0.5, 1.5) * mean), 'r');
    }
    for (int i = 1; i < failures; ++i) {
      if (!run.Chance(success)) waiting.push_back(std::move(waiting.front()));
      waiting.pop_front();
    }
    told.Tell(run);
  } while (run.Next());
}

// Messages that arrive in pieces; one whose last piece was lost waits for it for ever.
void reassembly_buffers(Run& run) {
  struct Message {
    size_t expected = 0;
    List<Text> pieces;
  };
  const double lost = run.Uniform(0.15, 0.5);
  const int per_request = static_cast<int>(run.Uniform(6, 20));
  static auto& messages = *new Tree<int64_t, Message>;
  Told told;
  std::deque<int64_t> arriving;
  int64_t number = 0;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i) {
      if (arriving.size() < 20) {
        arriving.push_back(number);
        messages[number++].expected = static_cast<size_t>(run.Uniform(3, 9));
      }
      const int64_t id = arriving.front();
      arriving.pop_front();
      Message& message = messages[id];
      if (message.pieces.size() + 1 == message.expected && run.Chance(lost)) continue;
      message.pieces.emplace_back(static_cast<size_t>(run.Uniform(500, 1400)), 'm');
      if (message.pieces.size() == message.expected) {
        messages.erase(id);
      } else {
        arriving.push_back(id);
      }
    }
    told.Tell(run);
  } while (run.Next());
}

// With every new configuration come new workers; the old ones wait for connections that do not end.
void old_generations(Run& run) {
  const double every = run.Uniform(0.03, 0.07);
  const size_t blocks = run.Size(400, 1200);
  const pid_t self = getpid();
  std::vector<pid_t> workers;
  double next = 0;
  do {
    run.Request();
    if (run.Progress() < next) continue;
    next = run.Progress() + every * run.Uniform(0.8, 1.2);
    const pid_t worker = fork();
    if (worker != 0) {
      workers.push_back(static_cast<pid_t>(checked(worker, "fork")));
      continue;
    }
    Blocks own;
    while (getppid() == self) {
      for (int i = 0; i < 40 && own.size() < blocks; ++i) own.emplace_back(4000);
      usleep(20000);
    }
    std::_Exit(0);
  } while (run.Next());
  for (const pid_t worker : workers) kill(worker, SIGKILL), waitpid(worker, nullptr, 0);
}

}  // namespace

const std::vector<Family>& second_leaks() {
  static const std::vector<Family> families = {
      {"cookie_sessions", cookie_sessions}, {"metric_labels", metric_labels},
      {"parse_arena", parse_arena},         {"half_closed_connections", half_closed_connections},
      {"trace_on_tmpfs", trace_on_tmpfs},   {"forgotten_uploads", forgotten_uploads},
      {"zombie_workers", zombie_workers},   {"kept_futures", kept_futures},
      {"retry_list", retry_list},           {"reassembly_buffers", reassembly_buffers},
      {"old_generations", old_generations},
  };
  return families;
}

}  // namespace plimsoll::scenarios
