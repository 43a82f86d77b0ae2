#include <algorithm>
#include <chrono>

#include "base/fail.h"
#include "plan/check.h"
#include "plan/csv.h"
#include "plimsoll/plan.h"

namespace plimsoll {
namespace {

using Clock = std::chrono::steady_clock;

plan::SearchResult search(const plan::Problem& problem, Clock::time_point deadline) {
  plan::SearchOptions options;
  options.deadline = deadline;
  options.goal = problem.capacity.empty() ? plan::Goal::kMinimise : plan::Goal::kFit;
  return plan::place_search(problem, options);
}

}  // namespace

PlacedProblem PlaceProblem(const std::string& csv, const PlaceOptions& options) {
  if (options.capacity_bytes < 0 || !(options.seconds >= 0))
    fail(ErrorCode::kInvalidArgument,
         "placement: expected a capacity and seconds of 0 or more, found {} and {}", options.capacity_bytes,
         options.seconds);
  plan::NamedProblem named = plan::parse_csv(csv);
  const Clock::time_point start = Clock::now();
  const auto allowed = std::chrono::duration<double>(std::min(options.seconds, 1e6));
  if (options.capacity_bytes > 0) named.problem.capacity = {options.capacity_bytes};
  plan::SearchResult found =
      search(named.problem, start + std::chrono::duration_cast<Clock::duration>(allowed));
  PlacedProblem result;
  result.fits = found.placement.has_value();
  result.proven = found.proven;
  if (!result.fits) {
    named.problem.capacity.clear();
    found.placement = plan::place_greedy(named.problem);
    if (!found.placement)
      fail(ErrorCode::kInvalidArgument,
           "placement: found no room beside the buffers with an offset, whatever the capacity; do two of "
           "them collide?");
  }
  const std::vector<std::string> violations = plan::check(named.problem, *found.placement);
  if (!violations.empty())
    fail(ErrorCode::kInvalidArgument, "the placement is wrong (a bug in Plimsoll): {}", violations[0]);
  result.buffers = named.problem.buffers.size();
  result.peak_bytes = found.placement->peak.empty() ? 0 : found.placement->peak[0];
  result.lower_bound_bytes = plan::lower_bound(named.problem, 0).bytes;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.csv = plan::format_csv(named, *found.placement);
  return result;
}

}  // namespace plimsoll
