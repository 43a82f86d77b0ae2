// Families whose heap grows for ever.
#include <malloc.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <thread>
#include <unordered_map>

#include "scenario.h"

namespace plimsoll::scenarios {

namespace {

constexpr size_t kHeader = 16;  // glibc's, per block

void keep(Run& run, Blocks& blocks, size_t bytes) {
  blocks.emplace_back(bytes);
  run.Kept(bytes + kHeader);
}

Blocks& lost() {  // nobody frees them, at the end neither
  static auto* const blocks = new Blocks;
  return *blocks;
}

void linear_leak(Run& run) {
  const double mean = run.LogUniform(600, 12000);
  Blocks& kept = lost();
  do {
    run.Request();
    keep(run, kept, static_cast<size_t>(run.Uniform(0.5, 1.5) * mean));
  } while (run.Next());
}

void kilobyte_per_request(Run& run) {
  Blocks& kept = lost();
  do {
    run.Request();
    keep(run, kept, 1024);
  } while (run.Next());
}

void string_list(Run& run) {
  const int per_request = static_cast<int>(run.Uniform(5, 40));
  std::vector<std::string> lines;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i) {
      lines.emplace_back(static_cast<size_t>(run.Uniform(20, 200)), 'x');
      run.Kept(lines.back().size() + kHeader + sizeof(std::string));
    }
  } while (run.Next());
}

void shape_map(Run& run) {
  const double chance = run.Uniform(0.3, 1);
  const double elements = run.LogUniform(300, 4000);
  std::unordered_map<std::string, std::vector<float>> plans;
  do {
    run.Request();
    if (!run.Chance(chance)) continue;
    const auto count = static_cast<size_t>(run.Uniform(0.5, 1.5) * elements);
    plans.emplace("1x3x" + std::to_string(run.iteration()), std::vector<float>(count, 1.0f));
    run.Kept(count * sizeof(float) + 2 * kHeader + 80);
  } while (run.Next());
}

void arena_threads_leak(Run& run) {
  const size_t bytes = run.Size(500, 4000);
  const int threads = static_cast<int>(run.Uniform(2, 5));
  static std::atomic<int64_t> tickets{0};  // outlives us: the threads are never joined
  for (int i = 0; i < threads; ++i) {
    std::thread([bytes] {
      auto* kept = new Blocks;  // as a thread's own cache that nobody empties
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        while (tickets.fetch_sub(1) > 0) kept->emplace_back(bytes);
        tickets.fetch_add(1);
      }
    }).detach();
  }
  do {
    run.Request();
    tickets.fetch_add(1);
    run.Kept(bytes + kHeader);
  } while (run.Next());
}

void leak_after_warmup(Run& run) {
  const double warm_until = run.Uniform(0.2, 0.4);
  const double warm_bytes = run.LogUniform(1e7, 4e7);
  const size_t bytes = run.Size(1500, 8000);
  Blocks warm;
  Blocks& kept = lost();
  double filled = 0;
  do {
    run.Request();
    const double goal = warm_bytes * (1 - std::exp(-4 * run.Progress() / warm_until));
    for (; run.Progress() < warm_until && filled < goal; filled += 4096) warm.emplace_back(4096);
    keep(run, kept, bytes);
  } while (run.Next());
}

// Garbage that is collected now and then, over a floor that rises.
void leak_under_sawtooth(Run& run) {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
  const size_t bytes = run.Size(1500, 6000);
  const size_t garbage_limit = run.Size(1e7, 3e7);
  const size_t piece = run.Size(15e4, 4e5);
  Blocks& kept = lost();
  Blocks garbage;
  do {
    run.Request();
    keep(run, kept, bytes);
    if (run.iteration() % 8 == 0) garbage.emplace_back(piece);
    if (garbage.size() * piece > garbage_limit) garbage = Blocks();
  } while (run.Next());
}

void error_path_leak(Run& run) {
  const double chance = run.Uniform(0.03, 0.08);
  const size_t bytes = run.Size(16e3, 64e3);
  Blocks& kept = lost();
  do {
    run.Request();
    if (run.Chance(chance)) keep(run, kept, bytes);
  } while (run.Next());
}

void step_leak(Run& run) {
  const auto every = static_cast<int64_t>(run.Uniform(80, 220));
  const size_t pieces = run.Size(120, 350);
  Blocks& kept = lost();
  do {
    run.Request();
    if (run.iteration() % every != every - 1) continue;
    for (size_t i = 0; i < pieces; ++i) keep(run, kept, 4080);
  } while (run.Next());
}

// The same leak per request, while the requests per second go up and down.
void varying_load_leak(Run& run) {
  const size_t bytes = run.Size(2000, 8000);
  const double waves = run.Uniform(1.2, 3), phase = run.Uniform(0, 6);
  Blocks& kept = lost();
  do {
    run.Wait(0.5 + 2.5 * std::pow(std::sin(waves * 6.28 * run.Progress() + phase), 2));
    run.Request();
    keep(run, kept, bytes);
  } while (run.Next());
}

void listeners(Run& run) {
  const int per_request = static_cast<int>(run.Uniform(3, 20));
  std::vector<std::function<int64_t()>> callbacks;
  do {
    run.Request();
    for (int i = 0; i < per_request; ++i) {
      const auto state = std::make_shared<std::vector<int64_t>>(16, run.iteration());
      callbacks.emplace_back([state] { return state->front(); });
      run.Kept(128 + kHeader + 48 + sizeof(callbacks.back()));
    }
  } while (run.Next());
}

}  // namespace

const std::vector<Family>& heap_leaks() {
  static const std::vector<Family> families = {
      {"linear_leak", linear_leak},
      {"kilobyte_per_request", kilobyte_per_request},
      {"string_list", string_list},
      {"shape_map", shape_map},
      {"arena_threads_leak", arena_threads_leak},
      {"leak_after_warmup", leak_after_warmup},
      {"leak_under_sawtooth", leak_under_sawtooth},
      {"error_path_leak", error_path_leak},
      {"step_leak", step_leak},
      {"varying_load_leak", varying_load_leak},
      {"listeners", listeners},
  };
  return families;
}

}  // namespace plimsoll::scenarios
