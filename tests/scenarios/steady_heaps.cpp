// Families whose heap does not grow for ever, though many look for a while as if it did.
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <thread>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

void steady(Run& run) {
  Blocks base;
  for (size_t i = run.Size(100, 10000); i > 0; --i) base.emplace_back(4000);
  do run.Request();
  while (run.Next());
}

// Approaches its level exponentially.
void warm_up(Run& run) {
  const double scale = run.Uniform(0.05, 0.14);
  const double level = run.LogUniform(8e6, 6e7);
  Blocks warm;
  do {
    run.Request();
    while (static_cast<double>(warm.size()) * 2064 < level * (1 - std::exp(-run.Progress() / scale))) {
      warm.emplace_back(2048);
    }
  } while (run.Next());
}

// A burst on several threads; all of it is freed, and their arenas keep it: each ends with a block still in
// use.
void arena_retention(Run& run) {
  const double at = run.Uniform(0.15, 0.45);
  const size_t bytes = run.Size(4e6, 1.6e7);
  const int threads = static_cast<int>(run.Uniform(2, 5));
  std::vector<std::unique_ptr<Block>> pins(static_cast<size_t>(threads));
  bool done = false;
  do {
    run.Request();
    if (done || run.Progress() < at) continue;
    done = true;
    std::vector<std::thread> team;
    for (auto& pin : pins) {
      team.emplace_back([&pin, bytes] {
        Blocks blocks;
        blocks.reserve(bytes / 2064);  // so that nothing is freed below the pin
        for (size_t i = 0; i < bytes / 2064; ++i) blocks.emplace_back(2048);
        pin = std::make_unique<Block>(64);
      });
    }
    for (auto& thread : team) thread.join();
  } while (run.Next());
}

void bounded_lru(Run& run) {
  const size_t bytes = run.Size(1000, 8000);
  const double full_at = run.Uniform(0.15, 0.5);  // however busy the machine is
  std::deque<Block> cache;
  do {
    run.Request();
    cache.emplace_back(static_cast<size_t>(static_cast<double>(bytes) * run.Uniform(0.8, 1.2)));
    if (run.Progress() > full_at) cache.pop_front();
  } while (run.Next());
}

void collect(Run& run, double jitter) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  const double limit = run.LogUniform(1e7, 6e7);
  const double cycles = run.Uniform(5, 25);
  double this_limit = limit, held = 0;
  Blocks garbage;
  double last = 0;
  do {
    run.Request();
    const double now = run.Progress();
    for (; held < limit * cycles * (now - last); held += 2e5) garbage.emplace_back(200000);
    last = std::max(last, now - held / (limit * cycles));
    if (held < this_limit) continue;
    garbage = Blocks();
    held = 0;
    last = now;
    this_limit = limit * run.Uniform(1 - jitter, 1 + jitter);
  } while (run.Next());
}

void sawtooth(Run& run) {
  collect(run, 0);
}
void ragged_sawtooth(Run& run) {
  collect(run, 0.6);
}

// Memory in step with the load: pages that are mapped and given back.
class Load {
 public:
  ~Load() { Set(0); }
  void Set(double bytes) {
    while (static_cast<double>(pages_.size()) * kPiece < bytes) pages_.push_back(map_pages(kPiece));
    while (static_cast<double>(pages_.size()) * kPiece > bytes + kPiece) {
      unmap(pages_.back());
      pages_.pop_back();
    }
  }

 private:
  static constexpr size_t kPiece = 1 << 16;
  std::vector<Mapping> pages_;
};

void load_ramp(Run& run) {
  const double peak_at = run.Uniform(0.3, 0.6), peak = run.LogUniform(1e7, 8e7);
  Load load;
  do {
    run.Request();
    const double now = run.Progress();
    load.Set(peak * std::max(0.0, now < peak_at ? now / peak_at : 1 - (now - peak_at) / (0.9 - peak_at)));
  } while (run.Next());
}

void daily_load(Run& run) {
  const double waves = run.Uniform(2.5, 6), phase = run.Uniform(0, 6.28), peak = run.LogUniform(1e7, 6e7);
  Load load;
  do {
    run.Request();
    load.Set(peak * (1 + std::sin(waves * 6.28 * run.Progress() + phase)));
  } while (run.Next());
}

void lazy_init(Run& run) {
  const int parts = static_cast<int>(run.Uniform(2, 6));
  std::vector<double> times;
  for (int i = 0; i < parts; ++i) times.push_back(run.Uniform(0, 0.55));
  std::sort(times.begin(), times.end());
  Blocks loaded;
  do {
    run.Request();
    if (times.empty() || run.Progress() < times.front()) continue;
    times.erase(times.begin());
    for (size_t i = run.Size(500, 4000); i > 0; --i) loaded.emplace_back(4000);
  } while (run.Next());
}

// Pages are touched here and there; the kernel gives two megabytes for each, until all are there.
void huge_pages(Run& run) {
  const size_t bytes = static_cast<size_t>(run.Uniform(16, 60)) << 21;
  const double until = run.Uniform(0.15, 0.5);
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return;
  madvise(data, bytes, MADV_HUGEPAGE);
  size_t touched = 0;
  do {
    run.Request();
    const auto goal = static_cast<size_t>(static_cast<double>(bytes) * std::min(1.0, run.Progress() / until));
    for (; touched + (1 << 21) <= goal; touched += 1 << 21) touch(static_cast<char*>(data) + touched, 1);
  } while (run.Next());
}

void big_request(Run& run) {
  const double at = run.Uniform(0.2, 0.85);
  bool done = false;
  do {
    run.Request();
    if (done || run.Progress() < at) continue;
    done = true;
    const Mapping mapping = map_pages(run.Size(3e7, 2e8));
    for (int i = static_cast<int>(run.Uniform(20, 200)); i > 0; --i) run.Next();
    unmap(mapping);
  } while (run.Next());
}

// Freed, but a small block above it that is still in use keeps the heap from shrinking.
void big_request_kept(Run& run) {
  const double at = run.Uniform(0.15, 0.5);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  std::unique_ptr<Block> pin;
  do {
    run.Request();
    if (pin || run.Progress() < at) continue;
    Blocks blocks;

    for (size_t i = run.Size(200, 1000); i > 0; --i) blocks.emplace_back(60000);

    for (int i = static_cast<int>(run.Uniform(5, 50)); i > 0; --i) run.Next();
    pin = std::make_unique<Block>(std::move(blocks.back()));
  } while (run.Next());
}

void periodic_batch(Run& run) {
  const double period = run.Uniform(0.05, 0.17), share = run.Uniform(0.1, 0.5),
               peak = run.LogUniform(1e7, 6e7);
  Load load;
  do {
    run.Request();
    load.Set(std::fmod(run.Progress(), period) < share * period ? peak : 0);
  } while (run.Next());
}

// A queue whose length wanders around its mean.
void bounded_queue(Run& run) {
  const double mean = run.Uniform(300, 3000), pull = run.Uniform(0.005, 0.05);
  const size_t bytes = run.Size(500, 6000);
  std::deque<Block> queue;
  do {
    run.Request();
    const double step = pull * (mean - static_cast<double>(queue.size())) + run.Uniform(-1, 1) * mean * 0.05;
    for (int i = static_cast<int>(step); i > 0; --i) queue.emplace_back(bytes);
    for (int i = static_cast<int>(-step); i > 0 && !queue.empty(); --i) queue.pop_front();
  } while (run.Next());
}

// Requests of very different sizes: the highest so far comes ever more rarely.
void heavy_tail(Run& run) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const double alpha = run.Uniform(0.9, 1.4);
  do {
    run.Request();
    const double bytes = 2e4 * std::pow(run.Uniform(1e-4, 1), -1 / alpha);
    Block block(static_cast<size_t>(std::min(bytes, 4e7)));
  } while (run.Next());
}

// A new copy is read before the old one goes.
void model_reload(Run& run) {
  const size_t bytes = run.Size(8e6, 5e7);
  const double every = run.Uniform(0.08, 0.3);
  double next = 0;
  Mapping model;
  do {
    run.Request();
    if (run.Progress() < next) continue;
    next += every * run.Uniform(0.8, 1.2);
    const Mapping old = model;
    model = map_pages(static_cast<size_t>(static_cast<double>(bytes) * run.Uniform(0.97, 1.03)));
    for (int i = static_cast<int>(run.Uniform(10, 60)); i > 0; --i) run.Next();
    if (old.data != nullptr) unmap(old);
  } while (run.Next());
}

void shrinking(Run& run) {
  Load load;
  const double peak = run.LogUniform(1e7, 8e7), scale = run.Uniform(0.1, 0.6);
  do {
    run.Request();
    load.Set(peak * std::exp(-run.Progress() / scale));
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& steady_heaps() {
  static const std::vector<Family> families = {
      {"steady", steady},
      {"warm_up", warm_up},
      {"arena_retention", arena_retention},
      {"bounded_lru", bounded_lru},
      {"sawtooth", sawtooth},
      {"ragged_sawtooth", ragged_sawtooth},
      {"load_ramp", load_ramp},
      {"daily_load", daily_load},
      {"lazy_init", lazy_init},
      {"huge_pages", huge_pages},
      {"big_request", big_request},
      {"big_request_kept", big_request_kept},
      {"periodic_batch", periodic_batch},
      {"bounded_queue", bounded_queue},
      {"heavy_tail", heavy_tail},
      {"model_reload", model_reload},
      {"shrinking", shrinking},
  };
  return families;
}

}  // namespace plimsoll::scenarios
