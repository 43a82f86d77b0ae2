// Programs without a leak of the second blind half: written and labelled by somebody who had not seen how
// verdicts are reached.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;

int opened(const std::string& path, int flags) {
  return checked(open(path.c_str(), flags | O_CREAT | O_CLOEXEC, 0600), "open");
}

void write_all(int file, const std::string& text) {
  checked(write(file, text.data(), text.size()), "write");
}

char* mapped(size_t bytes, int protection, int flags, int file) {
  void* data = mmap(nullptr, bytes, protection, flags, file, 0);
  if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<char*>(data);
}

size_t pages_of(double bytes) {
  return static_cast<size_t>(std::max(bytes, 0.0)) / kPage * kPage;
}

// Connections that come, are answered a few times and go.
void socket_churn(Run& run) {
  struct Connection {
    int client, server;
    double until;
    std::string buffer;
  };
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = run.Folder("/tmp") + "/socket";
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  const int listener = checked(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  checked(bind(listener, where, sizeof(address)), "bind");
  checked(listen(listener, 16), "listen");
  const double often = run.Uniform(0.2, 0.9), longest = run.Uniform(0.005, 0.04),
               most = run.LogUniform(2e3, 3e4);
  std::deque<Connection> there;
  do {
    run.Request();
    if (run.Chance(often) && there.size() < 80) {
      Connection fresh{};
      fresh.client = checked(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
      checked(connect(fresh.client, where, sizeof(address)), "connect");
      fresh.server = checked(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept");
      fresh.until = run.Progress() + longest * run.Uniform(0.2, 1);
      fresh.buffer.assign(run.Size(500, most), 'b');
      there.push_back(std::move(fresh));
    }
    for (size_t i = there.size(); i > 0; --i) {
      Connection one = std::move(there.front());
      there.pop_front();
      write_all(one.client, one.buffer);
      checked(recv(one.server, one.buffer.data(), one.buffer.size(), MSG_WAITALL), "recv");
      if (run.Progress() < one.until) {
        there.push_back(std::move(one));
      } else {
        close(one.client), close(one.server);
      }
    }
  } while (run.Next());
}

// The last so many lines of a log, for whoever asks.
void ring_log(Run& run) {
  std::vector<std::string> lines(run.Size(500, 3000));
  const int per_request = static_cast<int>(run.Uniform(6, 16));
  const double longest = run.LogUniform(300, 8000);
  size_t at = 0;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i, ++at) {
      lines[at % lines.size()] = std::string(run.Size(40, longest), 'l');
    }
  } while (run.Next());
}

// A picture is drawn while the one before it is shown; now and then the window gets another size.
void double_buffer(Run& run) {
  std::vector<char> front, back;
  std::vector<size_t> sizes;
  for (int i = 0; i < 4; ++i) sizes.push_back(run.Size(2e5, 2e6));
  const double resized = run.Uniform(0.01, 0.05);
  size_t size = sizes.front();
  do {
    run.Request();
    if (run.Chance(resized)) {
      size = sizes[static_cast<size_t>(run.Uniform(0, 4))];
      front = {}, back = {};
    }
    if (run.iteration() % 3 != 0) continue;
    back.resize(size);
    for (size_t i = 0; i < size; i += 512) back[i] = static_cast<char>(i);
    front.swap(back);
  } while (run.Next());
}

// Each query takes chunks from an arena and gives all of them back at its end; a few are kept for the next.
void query_arena(Run& run) {
  const size_t chunk = run.Size(1.6e4, 2e5), spare = static_cast<size_t>(run.Uniform(2, 40));
  const double most = std::min(200.0, 8e6 / static_cast<double>(chunk));
  std::deque<Block> chunks;
  do {
    run.Request();
    if (run.iteration() % 2 != 0) continue;
    const size_t wanted = run.Size(1, most);
    while (chunks.size() < wanted) chunks.emplace_back(chunk);
    while (chunks.size() > spare) chunks.pop_back();
  } while (run.Next());
}

struct Node {
  std::string text;
  std::vector<Node> children;
};

Node parsed(Run& run, int depth) {
  Node node;
  node.text.assign(run.Size(4, 300), 't');
  if (depth == 0) return node;
  for (int i = static_cast<int>(run.Uniform(1, 6)); i > 0; --i)
    node.children.push_back(parsed(run, depth - 1));
  return node;
}

// Documents are read into trees; the trees of the last few are at hand.
void parsed_documents(Run& run) {
  const int deepest = static_cast<int>(run.Uniform(3, 6));
  const auto most = static_cast<size_t>(run.Uniform(2, 12));
  std::deque<Node> documents;
  do {
    run.Request();
    if (run.iteration() % 4 != 0) continue;
    documents.push_back(parsed(run, deepest - static_cast<int>(run.Uniform(0, 2))));
    if (documents.size() > most) documents.pop_front();
  } while (run.Next());
}

// Sorts more than it may hold: runs go to files, several are merged into one, which replaces the last result.
void sort_spills(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const double limit = run.LogUniform(8e5, 4e6), cycle = run.Uniform(0.02, 0.06);
  const int runs = static_cast<int>(run.Uniform(3, 6));
  std::vector<uint64_t> records;
  double begun = 0;
  int spilled = 0;
  do {
    run.Request();
    const double share = std::min(1.0, (run.Progress() - begun) / cycle);
    while (static_cast<double>(records.size()) * 8 < limit * share) {
      records.push_back(static_cast<uint64_t>(run.Uniform(0, 1e18)));
    }
    if (share < 1) continue;
    std::sort(records.begin(), records.end());
    const int file = opened(folder + "/run" + std::to_string(spilled++), O_WRONLY | O_TRUNC);
    checked(write(file, records.data(), records.size() * 8), "write");
    close(file);
    records = {};
    begun = run.Progress();
    if (spilled < runs) continue;
    const int result = opened(folder + "/sorted", O_WRONLY | O_TRUNC);
    std::string piece(size_t{1} << 16, ' ');
    for (; spilled > 0; --spilled) {
      const std::string path = folder + "/run" + std::to_string(spilled - 1);
      const int source = opened(path, O_RDONLY);
      while (const auto bytes = checked(read(source, piece.data(), piece.size()), "read")) {
        checked(write(result, piece.data(), static_cast<size_t>(bytes)), "write");
      }
      close(source);
      unlink(path.c_str());
    }
    close(result);
  } while (run.Next());
}

// Several uploads at a time grow piece by piece, are complete, looked at and removed.
void uploads_removed(Run& run) {
  struct Upload {
    std::string path;
    int file = -1;
    double left = 0;
  };
  const std::string folder = run.Folder("/tmp");
  std::vector<Upload> uploads(static_cast<size_t>(run.Uniform(1, 6)));
  const double largest = run.LogUniform(1e6, 5e6);
  const std::string piece(run.Size(8e3, 4e4), 'u');
  do {
    run.Request();
    Upload& one = uploads[static_cast<size_t>(run.iteration()) % uploads.size()];
    if (one.file < 0) {
      one.path = folder + "/upload" + std::to_string(run.iteration());
      one.file = opened(one.path, O_RDWR);
      one.left = run.LogUniform(1e5, largest);
    }
    write_all(one.file, piece);
    one.left -= static_cast<double>(piece.size());
    if (one.left > 0) continue;
    close(one.file), one.file = -1;
    unlink(one.path.c_str());
  } while (run.Next());
}

// Files are fetched one after the other and stay where they were put.
void downloads_kept(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const double mean = run.LogUniform(5e3, 4e4);
  int file = -1;
  double left = 0;
  do {
    run.Request();
    if (left <= 0) {
      if (file >= 0) close(file);
      file = opened(folder + "/download" + std::to_string(run.iteration()), O_WRONLY);
      left = run.LogUniform(2e4, 1e7);
    }
    const std::string packet(static_cast<size_t>(run.Uniform(0.2, 1.8) * mean), 'd');
    write_all(file, packet);
    left -= static_cast<double>(packet.size());
  } while (run.Next());
}

// Reads every file of a large collection once.
void photo_import(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const double mean = run.LogUniform(4e4, 2.5e5);
  constexpr int kFiles = 1200, kEvery = 8;
  for (int i = 0; i < kFiles; ++i) {
    const int file = opened(folder + "/photo" + std::to_string(i), O_RDWR);
    checked(ftruncate(file, static_cast<off_t>(run.Uniform(0.3, 1.7) * mean)), "ftruncate");
    close(file);
  }
  std::string buffer(static_cast<size_t>(2 * mean), ' ');
  do {
    run.Request();
    if (run.iteration() % kEvery != 0 || run.iteration() / kEvery >= kFiles) continue;
    const int file = opened(folder + "/photo" + std::to_string(run.iteration() / kEvery), O_RDONLY);
    checked(read(file, buffer.data(), buffer.size()), "read");
    close(file);
  } while (run.Next());
}

// Changes go to a log first; when it is long enough, they are carried over and it begins anew.
void write_ahead_log(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const int table = opened(folder + "/table", O_RDWR), log = opened(folder + "/log", O_RDWR);
  const auto pages = static_cast<int64_t>(run.LogUniform(300, 2500)), longest = pages / 2;
  std::string page(kPage, 'p');
  for (int64_t i = 0; i < pages; ++i) write_all(table, page);
  std::deque<int64_t> changed;
  do {
    run.Request();
    for (int i = static_cast<int>(run.Uniform(1, 8)); i > 0; --i) {
      checked(pwrite(log, page.data(), kPage, static_cast<off_t>(changed.size() * kPage)), "pwrite");
      changed.push_back(static_cast<int64_t>(run.Uniform(0, static_cast<double>(pages))));
    }
    if (static_cast<int64_t>(changed.size()) < longest) continue;
    for (size_t i = 0; i < changed.size(); ++i) {
      checked(pread(log, page.data(), kPage, static_cast<off_t>(i * kPage)), "pread");
      checked(pwrite(table, page.data(), kPage, static_cast<off_t>(changed[i]) * static_cast<off_t>(kPage)),
              "pwrite");
    }
    changed.clear();
    checked(ftruncate(log, 0), "ftruncate");
  } while (run.Next());
}

// A pool of threads behind a queue that takes only so much; work comes in bursts.
void pool_with_bursts(Run& run) {
  const auto capacity = static_cast<size_t>(run.Uniform(20, 200));
  const double burst = run.Uniform(0.005, 0.03), largest = run.LogUniform(5e3, 6e4);
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> queue;
  bool done = false;
  std::vector<std::thread> pool;
  for (int i = static_cast<int>(run.Uniform(2, 7)); i > 0; --i) {
    pool.emplace_back([&] {
      for (;;) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return done || !queue.empty(); });
        if (done) return;
        const std::string order = std::move(queue.front());
        queue.pop_front();
        lock.unlock();
        const std::string answer = order + order;  // of this thread's arena
        usleep(answer.empty() ? 0 : 2000);
      }
    });
  }
  do {
    run.Request();
    const bool first = run.iteration() == 0;  // as large as any, to have everything in its place
    const size_t orders = first || run.Chance(burst) ? capacity : run.iteration() % 2;
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < orders && queue.size() < capacity; ++i) {
      queue.emplace_back(
          static_cast<size_t>(first ? largest : largest / std::pow(4, static_cast<int>(run.Uniform(0, 3)))),
          'o');
    }
    changed.notify_all();
  } while (run.Next());
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_all();
  for (std::thread& thread : pool) thread.join();
}

// Methods are compiled when they were called often enough: many at first, the last before half of the time.
void compiled_methods(Run& run) {
  const double until = run.Uniform(0.15, 0.45), all = run.LogUniform(6e6, 3.5e7);
  std::vector<double> times(run.Size(300, 2000));
  for (double& time : times) time = until * run.Uniform(0, 1) * run.Uniform(0, 1);
  std::sort(times.begin(), times.end());
  char* const cache = mapped(size_t{40} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  size_t used = 0;
  do {
    run.Request();
    const auto compiled = std::lower_bound(times.begin(), times.end(), run.Progress()) - times.begin();
    const size_t goal = pages_of(all * static_cast<double>(compiled) / static_cast<double>(times.size()));
    if (goal > used) touch(cache + used, goal - used), used = goal;
  } while (run.Next());
}

// A store of objects in shared memory: new ones go to its end, the pages of the oldest are given back, and
// from there it begins anew.
void punched_segments(Run& run) {
  constexpr size_t kPiece = 16 * kPage;
  const size_t window = run.Size(5e6, 3e7) / kPiece * kPiece, all = 2 * window;
  const double pace = static_cast<double>(window) / run.Uniform(0.1, 0.4) * run.Uniform(1, 2);
  const int file = checked(memfd_create("objects", MFD_CLOEXEC), "memfd_create");
  checked(ftruncate(file, static_cast<off_t>(all)), "ftruncate");
  char* const data = mapped(all, PROT_READ | PROT_WRITE, MAP_SHARED, file);
  size_t end = 0;
  do {
    run.Request();
    for (const size_t goal = pages_of(pace * run.Progress()); end < goal; end += kPiece) {
      if (end >= window) {
        checked(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          static_cast<off_t>((end - window) % all), kPiece),
                "fallocate");
      }
      touch(data + end % all, kPiece);
    }
  } while (run.Next());
}

// Bodies of all sizes on their way from here to there.
void proxy_bodies(Run& run) {
  const double longest = run.Uniform(0.005, 0.03), largest = run.LogUniform(1e5, 1.5e6),
               often = run.Uniform(0.1, 0.5);
  std::multimap<double, Block> bodies;
  do {
    run.Request();
    bodies.erase(bodies.begin(), bodies.upper_bound(run.Progress()));
    if (run.Chance(often))
      bodies.emplace(run.Progress() + longest * run.Uniform(0.1, 1), run.Size(1e3, largest));
  } while (run.Next());
}

// An index in a file that is mapped; now and then a newer one takes its place.
void swapped_index(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const double bytes = run.LogUniform(2e6, 1.2e7), every = run.Uniform(0.05, 0.2);
  const std::string page(kPage, 'i');
  Mapping index;
  std::string path;
  double next = 0;
  do {
    run.Request();
    if (run.Progress() < next) continue;
    next = run.Progress() + every * run.Uniform(0.7, 1.3);
    const std::string newer = folder + "/index" + std::to_string(run.iteration());
    const size_t size = pages_of(bytes * run.Uniform(0.95, 1.05));
    const int file = opened(newer, O_RDWR);
    for (size_t i = 0; i < size; i += kPage) write_all(file, page);
    const Mapping old = index;
    index = {mapped(size, PROT_READ, MAP_SHARED, file), size};
    close(file);
    for (size_t i = 0; i < size; i += kPage) static_cast<void>(static_cast<volatile char*>(index.data)[i]);
    if (old.data != nullptr) unmap(old), unlink(path.c_str());
    path = newer;
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& second_steady() {
  static const std::vector<Family> families = {
      {"socket_churn", socket_churn},         {"ring_log", ring_log},
      {"double_buffer", double_buffer},       {"query_arena", query_arena},
      {"parsed_documents", parsed_documents}, {"sort_spills", sort_spills},
      {"uploads_removed", uploads_removed},   {"downloads_kept", downloads_kept},
      {"photo_import", photo_import},         {"write_ahead_log", write_ahead_log},
      {"pool_with_bursts", pool_with_bursts}, {"compiled_methods", compiled_methods},
      {"punched_segments", punched_segments}, {"proxy_bodies", proxy_bodies},
      {"swapped_index", swapped_index},
  };
  return families;
}

}  // namespace plimsoll::scenarios
