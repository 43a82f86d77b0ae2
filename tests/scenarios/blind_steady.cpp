// Programs without a leak, written and labelled by somebody who had not seen how verdicts are reached.
#include <fcntl.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>

#include "scenario.h"

extern char** environ;

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;

int opened(const std::string& path) {
  return checked(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600), "open");
}

char* mapped(size_t bytes, int flags, int file) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
  return static_cast<char*>(data);
}

size_t share_of(double share, size_t bytes) {
  return static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(bytes)) / kPage * kPage;
}

// An allocator that gives pages it no longer needs back to the kernel after a while.
void purged_arena(Run& run) {
  const size_t all = run.Size(2e7, 8e7);
  const double decay = run.Uniform(0.01, 0.04), calm = run.Uniform(0.1, 0.4);
  char* const arena = mapped(all, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  double purged = 0, level = calm;
  size_t dirty = 0;
  do {
    run.Request();
    if (run.Chance(0.02)) level = calm * run.Uniform(0.5, 2.5);
    const size_t used = share_of(level, all);
    if (used > dirty) touch(arena + dirty, used - dirty), dirty = used;
    if (run.Progress() - purged < decay) continue;
    purged = run.Progress();
    madvise(arena + used, all - used, MADV_DONTNEED);
    dirty = used;
  } while (run.Next());
}

// Looks through a file again and again, one window at a time.
void rescanned_file(Run& run) {
  const size_t bytes = run.Size(1e7, 6e7) / kPage * kPage;
  const double scan = run.Uniform(0.1, 0.4);
  const int file = opened(run.Folder("/tmp") + "/data");
  checked(ftruncate(file, static_cast<off_t>(bytes)), "ftruncate");
  size_t at = 0;
  do {
    run.Request();
    const size_t goal = share_of(std::fmod(run.Progress(), scan) / scan, bytes);
    if (goal < at) at = 0;
    if (goal == at) continue;
    const size_t window = goal - at;
    void* data = mmap(nullptr, window, PROT_READ, MAP_SHARED, file, static_cast<off_t>(at));
    if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
    for (size_t i = 0; i < window; i += kPage) static_cast<void>(static_cast<volatile char*>(data)[i]);
    munmap(data, window);
    at = goal;
  } while (run.Next());
}

// Records anywhere in a file much larger than memory.
void random_reads(Run& run) {
  const int file = opened(run.Folder("/tmp") + "/data");
  checked(ftruncate(file, off_t{1} << 40), "ftruncate");
  std::string buffer(run.Size(4e3, 6e4), ' ');
  do {
    run.Request();
    checked(pread(file, buffer.data(), buffer.size(), static_cast<off_t>(run.Uniform(0, 1e12))), "pread");
  } while (run.Next());
}

// Copies a large file, a piece at a time.
void backup_job(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const int from = opened(folder + "/from"), to = opened(folder + "/to");
  checked(ftruncate(from, off_t{1} << 40), "ftruncate");
  std::string buffer(run.Size(3e3, 2e4), ' ');
  do {
    run.Request();
    checked(read(from, buffer.data(), buffer.size()), "read");
    checked(write(to, buffer.data(), buffer.size()), "write");
  } while (run.Next());
}

// A file per request, of which the newest few are there.
void spool_files(Run& run) {
  const std::string folder = run.Folder("/tmp");
  const std::string text(run.Size(3e3, 3e4), 'x');
  std::deque<std::string> there;
  const auto most = static_cast<size_t>(run.Uniform(5, 200));
  do {
    run.Request();
    there.push_back(folder + "/" + std::to_string(run.iteration()));
    const int file = opened(there.back());
    checked(write(file, text.data(), text.size()), "write");
    close(file);
    if (there.size() <= most) continue;
    unlink(there.front().c_str());
    there.pop_front();
  } while (run.Next());
}

// A collector that copies the survivors and gives the space they were in back.
void semispaces(Run& run) {
  const size_t bytes = run.Size(8e6, 4e7);
  const double cycle = run.Uniform(0.04, 0.14), survive = run.Uniform(0.15, 0.4);
  std::array<char*, 2> spaces{};
  for (char*& space : spaces) space = mapped(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  double begun = 0, survivors = 0;
  size_t used = 0;
  do {
    run.Request();
    const size_t goal = share_of(survivors + (1 - survivors) * (run.Progress() - begun) / cycle, bytes);
    if (goal > used) touch(spaces[0] + used, goal - used), used = goal;
    if (goal < bytes / kPage * kPage) continue;
    survivors = survive * run.Uniform(0.7, 1.3);
    std::swap(spaces[0], spaces[1]);
    used = share_of(survivors, bytes);
    std::memcpy(spaces[0], spaces[1], used);
    madvise(spaces[1], bytes, MADV_DONTNEED);
    begun = run.Progress();
  } while (run.Next());
}

// Many small blocks, then a large one, and so on.
void alternating_sizes(Run& run) {
  const double large = run.LogUniform(1e5, 1.5e6);
  const auto small = static_cast<int>(run.Uniform(20, 300));
  do {
    run.Request();
    if (run.iteration() % 2 == 0) {
      const Block block(static_cast<size_t>(large * run.Uniform(0.5, 1.5)));
    } else {
      Blocks blocks;
      for (int i = 0; i < small; ++i) blocks.emplace_back(run.Size(50, 5000));
    }
  } while (run.Next());
}

// Starts a command now and then; a few may be there at a time.
void helper_commands(Run& run) {
  const double often = run.Uniform(0.01, 0.05), longest = run.Uniform(0.05, 0.4);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  do {
    run.Request();
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (!run.Chance(often)) continue;
    std::string name = "sleep", seconds = std::to_string(run.Uniform(0.01, longest));
    char* const arguments[] = {name.data(), seconds.data(), nullptr};
    pid_t helper = 0;
    checked(-posix_spawn(&helper, "/bin/sleep", &actions, nullptr, arguments, environ), "posix_spawn");
  } while (run.Next());
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

// Work that is spread over many threads, which end with it.
void thread_bursts(Run& run) {
  const double every = run.Uniform(0.01, 0.05);
  const auto threads = static_cast<size_t>(run.Uniform(6, 32));
  const size_t bytes = run.Size(1e5, 6e5);
  double next = 0;
  do {
    run.Request();
    if (run.Progress() < next) continue;
    next = run.Progress() + every * run.Uniform(0.5, 1.5);
    std::vector<std::thread> team;
    for (size_t i = 0; i < threads; ++i) {
      team.emplace_back([bytes] {
        Blocks blocks;
        for (size_t held = 0; held < bytes; held += 2000) blocks.emplace_back(2000);
        usleep(20000);
      });
    }
    for (std::thread& thread : team) thread.join();
  } while (run.Next());
}

// A cache bounded in bytes, with entries of very different sizes.
void sized_lru(Run& run) {
  const double limit = run.LogUniform(6e6, 4e7), full_at = run.Uniform(0.1, 0.4);
  std::deque<std::pair<size_t, Block>> cache;
  double held = 0;
  const auto add = [&] {
    const size_t bytes = run.Size(200, 20000);
    cache.emplace_back(bytes, Block(bytes));
    held += static_cast<double>(bytes);
  };
  do {
    run.Request();
    const double allowed = limit * std::min(1.0, run.Progress() / full_at);
    add();
    while (held < allowed - 20000) add();
    for (; held > allowed && !cache.empty(); cache.pop_front()) {
      held -= static_cast<double>(cache.front().first);
    }
  } while (run.Next());
}

// Settings are read anew now and then; the old ones go when the new ones are complete.
void config_reload(Run& run) {
  const auto entries = static_cast<int>(run.LogUniform(4e3, 3e4));
  const double every = run.Uniform(0.06, 0.2);
  std::map<std::string, std::string> settings;
  double next = 0;
  do {
    run.Request();
    if (run.Progress() < next) continue;
    next += every;
    std::map<std::string, std::string> fresh;
    for (int i = 0; i < entries; ++i) {
      fresh["service.setting." + std::to_string(i)] =
          std::string(static_cast<size_t>(run.Uniform(20, 400)), 'v');
    }
    settings.swap(fresh);
  } while (run.Next());
}

// Remembers every answer, and there are only so many questions.
void finite_keys(Run& run) {
  const double keys = run.Uniform(300, 1500);
  const size_t bytes = run.Size(6e3, 4e4);
  std::unordered_map<int, Block> answers;
  do {
    run.Request();
    for (int i = 0; i < 4; ++i) answers.try_emplace(static_cast<int>(run.Uniform(0, keys)), bytes);
  } while (run.Next());
}

// Garbage with survivors that keep the heap from shrinking by itself; the program trims it.
void trimmed_heap(Run& run) {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const double limit = run.LogUniform(6e6, 4e7), cycle = run.Uniform(0.03, 0.12);
  Blocks garbage, survivors;
  double begun = 0;
  do {
    run.Request();
    const double share = (run.Progress() - begun) / cycle;
    while (static_cast<double>(garbage.size()) * 2016 < limit * std::min(1.0, share))
      garbage.emplace_back(2000);
    if (share < 1) continue;
    survivors.clear();
    for (size_t i = 0; i < garbage.size(); i += 40) survivors.push_back(std::move(garbage[i]));
    garbage.clear();
    malloc_trim(0);
    begun = run.Progress();
  } while (run.Next());
}

// Works until it is done, keeps the result and waits for the next order.
void batch_then_idle(Run& run) {
  const double done_at = run.Uniform(0.15, 0.45), bytes = run.LogUniform(1e7, 8e7);
  const double result = run.Uniform(0, 0.5);
  Blocks work;
  bool done = false;
  do {
    if (done) continue;
    run.Request();
    const double share = std::min(1.0, run.Progress() / done_at);
    while (static_cast<double>(work.size()) * 4016 < bytes * share) work.emplace_back(4000);
    if (share < 1) continue;
    work.erase(work.begin() + static_cast<ptrdiff_t>(result * static_cast<double>(work.size())), work.end());
    done = true;
    run.Wait(3);
  } while (run.Next());
}

// A ring in shared memory that is written round and round.
void shared_ring(Run& run) {
  const size_t bytes = run.Size(6e6, 5e7);
  const double round = run.Uniform(0.08, 0.4);
  char* const ring = mapped(bytes, MAP_SHARED | MAP_ANONYMOUS, -1);
  size_t at = 0;
  do {
    run.Request();
    const size_t goal = share_of(std::fmod(run.Progress(), round) / round, bytes);
    if (goal < at) touch(ring + at, bytes - at), at = 0;
    touch(ring + at, goal - at);
    at = goal;
  } while (run.Next());
}

__attribute__((noinline)) int descend(int depth) {
  volatile char frame[480];
  frame[depth % 480] = 1;
  return depth > 0 ? descend(depth - 1) + frame[depth % 480] : 0;
}

// Documents that are nested ever deeper, to a depth that is not exceeded.
void deep_recursion(Run& run) {
  const double deepest = run.LogUniform(1.5e6, 6e6) / 512, full_at = run.Uniform(0.1, 0.4);
  do {
    run.Request();
    descend(static_cast<int>(deepest * std::min(1.0, run.Progress() / full_at) * run.Uniform(0.2, 1)));
  } while (run.Next());
}

// Pages of a file, mapped and written wherever a record is.
void mapped_database(Run& run) {
  const auto pages = static_cast<size_t>(run.LogUniform(1500, 6000));
  const int file = opened(run.Folder("/tmp") + "/database");
  checked(ftruncate(file, static_cast<off_t>(pages * kPage)), "ftruncate");
  char* const data = mapped(pages * kPage, MAP_SHARED, file);
  do {
    run.Request();
    for (int i = 0; i < 16; ++i) {
      ++data[static_cast<size_t>(run.Uniform(0, static_cast<double>(pages))) * kPage];
    }
  } while (run.Next());
}

// Objects of all sizes that live for as long as they happen to.
void random_lifetimes(Run& run) {
  const double mean = run.Uniform(0.01, 0.05);
  const int arrivals = static_cast<int>(run.Uniform(2, 8));
  std::multimap<double, Block> live;
  do {
    run.Request();
    live.erase(live.begin(), live.upper_bound(run.Progress()));
    for (int i = 0; i < arrivals; ++i) {
      const double life = std::min(-mean * std::log(run.Uniform(1e-6, 1)), 5 * mean);
      live.emplace(run.Progress() + life, Block(run.Size(100, 10000)));
    }
  } while (run.Next());
}

// A text that is built up, sent and begun again.
void string_builder(Run& run) {
  const double limit = run.LogUniform(4e6, 3e7), cycle = run.Uniform(0.03, 0.15);
  std::string text;
  double begun = 0;
  do {
    run.Request();
    const double share = (run.Progress() - begun) / cycle;
    const auto goal = static_cast<size_t>(limit * std::min(1.0, share));
    if (goal > text.size()) text.append(goal - text.size(), 'x');
    if (share < 1) continue;
    text = std::string();
    begun = run.Progress();
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& blind_steady() {
  static const std::vector<Family> families = {
      {"purged_arena", purged_arena},
      {"rescanned_file", rescanned_file},
      {"random_reads", random_reads},
      {"backup_job", backup_job},
      {"spool_files", spool_files},
      {"semispaces", semispaces},
      {"alternating_sizes", alternating_sizes},
      {"helper_commands", helper_commands},
      {"thread_bursts", thread_bursts},
      {"sized_lru", sized_lru},
      {"config_reload", config_reload},
      {"finite_keys", finite_keys},
      {"trimmed_heap", trimmed_heap},
      {"batch_then_idle", batch_then_idle},
      {"shared_ring", shared_ring},
      {"deep_recursion", deep_recursion},
      {"mapped_database", mapped_database},
      {"random_lifetimes", random_lifetimes},
      {"string_builder", string_builder},
  };
  return families;
}

}  // namespace plimsoll::scenarios
