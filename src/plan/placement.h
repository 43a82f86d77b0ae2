// Placement: offsets for buffers whose lifetimes are known, so that buffers alive at the same time never
// share a byte. Plain data in, plain data out. Every function here is pure: it holds no state between calls,
// may be called from any thread, and touches no tensor memory. What place_naive and place_greedy need
// besides, and what they return, is memory of the resource that the problem's buffers are in.
//
// A malformed problem (see validate) is an Error. A problem without a solution is an answer: std::nullopt.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll::plan {

struct Buffer {
  int64_t size = 0;                    // bytes; 0 is allowed and conflicts with nothing
  int64_t lower = 0, upper = 0;        // alive during [lower, upper), never empty
  int64_t alignment = 64;              // of the offset; a power of two
  std::optional<int64_t> offset = {};  // pinned: the only offset it may have
  int space = 0;                       // memory spaces are placed independently
};

inline constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

struct Problem {
  std::pmr::vector<Buffer> buffers;
  std::vector<int64_t> capacity;  // bytes per space; empty: every space is unlimited
};

using Offsets = std::pmr::vector<int64_t>;

struct Placement {
  Offsets offsets;  // one per buffer, in the problem's order
  Offsets peak;     // per space: the largest offset + size, 0 if nothing is placed there
};

// What an Error calls a buffer.
using BufferName = std::function<std::string(size_t buffer)>;
std::string by_number(size_t buffer);

// Throws Error(kInvalidArgument) naming the first buffer that makes no sense: a negative size, an empty
// lifetime, an alignment that is no power of two, a negative or misaligned pinned offset, a space without a
// capacity, or sizes whose sum leaves 62 bits. All placers call it first.
void validate(const Problem& problem, const BufferName& name = by_number);

// How many spaces the problem speaks of: one per capacity, or enough for the largest `space` used.
int space_count(const Problem& problem);

struct LowerBound {
  int64_t bytes = 0;  // max over time of the sum of the sizes alive; alignment and pins are not counted
  int64_t at = 0;     // the earliest time that attains it
};

// No placement of this space can have a smaller peak. It may not be attainable.
LowerBound lower_bound(const Problem& problem, int space);

// No byte is ever used twice: the oracle that other placers are compared with.
std::optional<Placement> place_naive(const Problem& problem);

// A race of several orders, each placing one buffer after the other into the gaps left by those placed
// before. Stops at the lower bound. The peak is never above place_naive's. Milliseconds for thousands of
// buffers. nullopt means that no order fits the capacity (or pins collide), not that none could.
std::optional<Placement> place_greedy(const Problem& problem);

enum class Goal {
  kMinimise,  // the smallest peak, within the capacity
  kFit,       // any placement within the capacity
};

struct SearchOptions {
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  Goal goal = Goal::kMinimise;
  // Looks at buffers and sections; about 100 million per second of one core. Where it ends the search and not
  // the deadline, equal problems have equal answers on every machine.
  int64_t work = kUnlimited;
};

struct SearchResult {
  std::optional<Placement> placement;  // the best known within the capacity
  // True: the goal is met for certain, i.e. no smaller peak exists (kMinimise), the placement fits (kFit), or
  // nothing can fit. False: the deadline, or the end of the work, came first.
  bool proven = false;
};

// Greedy, then branch and bound until the goal is proven, the work is done or the deadline has passed. Never
// worse than place_greedy, also when the deadline is in the past.
// Groups of more than 2,000 buffers that cannot be told apart in time are left to greedy.
SearchResult place_search(const Problem& problem, const SearchOptions& options);

}  // namespace plimsoll::plan
