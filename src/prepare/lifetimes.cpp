#include "prepare/lifetimes.h"

namespace plimsoll {

Lifetimes::Lifetimes(const Graph& of, Schedule turns, TransientMemory& memory, WantedOutputs wanted,
                     UpdatedStates updated)
    : graph(&of),
      schedule(std::move(turns)),
      values(of, schedule, memory, wanted, updated),
      steps(memory.resource()),
      buffers(memory.resource()),
      locations(memory.resource()),
      nested(memory.resource()) {}

std::pmr::vector<Dim> Lifetimes::live_bytes() const {
  // Events instead of steps times buffers: a model has thousands of both.
  std::pmr::vector<Dim> change(steps.size() + 1, Dim(0), steps.get_allocator());
  for (const BufferInfo& buffer : buffers) {
    if (!buffer.live) continue;
    change[static_cast<size_t>(buffer.lower)] = change[static_cast<size_t>(buffer.lower)] + buffer.size;
    change[static_cast<size_t>(buffer.upper)] = change[static_cast<size_t>(buffer.upper)] - buffer.size;
  }
  std::pmr::vector<Dim> live(steps.size(), Dim(0), steps.get_allocator());
  Dim now = 0;
  for (size_t s = 0; s < steps.size(); ++s) live[s] = now = now + change[s];
  return live;
}

void NestedMemory::Delete::operator()(Lifetimes* lifetimes) const {
  lifetimes->~Lifetimes();
  memory->deallocate(lifetimes, sizeof(Lifetimes), alignof(Lifetimes));
}

namespace {

// The search costs milliseconds for each shape: what it could save has to be worth them.
plan::Placement place_well(const plan::Problem& problem, int64_t work) {
  plan::Placement greedy = *plan::place_greedy(problem);
  constexpr int64_t kLeastGain = 64 << 10, kLeastShare = 50;  // bytes; one part in so many
  constexpr size_t kMostBuffers = 500;                        // its tables are quadratic: 2 MB
  if (problem.buffers.size() > kMostBuffers || greedy.peak.empty()) return greedy;
  const int64_t gain = greedy.peak[0] - plan::lower_bound(problem, 0).bytes;
  if (gain < kLeastGain || gain * kLeastShare < greedy.peak[0]) return greedy;
  plan::SearchOptions options;
  options.work = work;
  return *plan::place_search(problem, options).placement;
}

constexpr int64_t kQuickWork = 400'000;     // about four milliseconds
constexpr int64_t kLongWork = 100'000'000;  // about a second

}  // namespace

plan::Placement place(const plan::Problem& problem, bool naive) {
  return naive ? *plan::place_naive(problem) : place_well(problem, kQuickWork);
}

plan::Placement place(const plan::Problem& problem, const LifetimeOptions& options) {
  if (options.naive) return place(problem, true);
  if (options.known != nullptr) {
    if (auto known = options.known->find(problem)) return *std::move(known);
  }
  if (options.solved == nullptr) return place(problem, false);
  plan::Placement placement = place_well(problem, kLongWork);
  options.solved->add(problem, placement);
  return placement;
}

plan::Problem Lifetimes::problem() const {
  plan::Problem problem{std::pmr::vector<plan::Buffer>(buffers.get_allocator().resource()), {}};
  problem.buffers.reserve(buffers.size());
  for (const BufferInfo& buffer : buffers) {
    if (buffer.live) problem.buffers.push_back({buffer.size.value(), buffer.lower, buffer.upper, 64, {}, 0});
  }
  return problem;
}

}  // namespace plimsoll
