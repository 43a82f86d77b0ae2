// The eleven problems that minimalloc publishes; each is known to fit 1,048,576 bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "plan/check.h"
#include "plan/csv.h"

namespace plimsoll::plan {
namespace {

using std::chrono::steady_clock;
using testing::IsEmpty;
namespace fs = std::filesystem;

constexpr int64_t kCapacity = 1048576;
constexpr auto kTime = std::chrono::milliseconds(300);
constexpr int64_t kWork = 200'000'000;  // two seconds of one core, about

// shared/data/minimalloc next to one of the folders above this binary.
fs::path data_folder() {
  for (fs::path folder = fs::read_symlink("/proc/self/exe"); folder != folder.root_path();
       folder = folder.parent_path()) {
    const fs::path data = folder.parent_path() / "shared/data/minimalloc";
    if (fs::is_directory(data)) return data;
  }
  return {};
}

class Minimalloc : public testing::TestWithParam<char> {};

TEST_P(Minimalloc, IsPlaced) {
  const fs::path file = data_folder() / (std::string(1, GetParam()) + ".1048576.csv");
  if (!fs::exists(file)) GTEST_SKIP() << "shared/data/minimalloc is not on this machine";
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  Problem problem = parse_csv(text.str()).problem;

  const auto naive = place_naive(problem), greedy = place_greedy(problem);
  ASSERT_TRUE(naive && greedy);
  EXPECT_THAT(check(problem, *greedy), IsEmpty());
  EXPECT_LE(greedy->peak[0], naive->peak[0]);

  const SearchResult least = place_search(problem, {steady_clock::now() + kTime});
  ASSERT_TRUE(least.placement);
  EXPECT_THAT(check(problem, *least.placement), IsEmpty());
  EXPECT_LE(least.placement->peak[0], greedy->peak[0]);

  problem.capacity = {kCapacity};
  const SearchResult fit = place_search(problem, {.goal = Goal::kFit, .work = kWork});
  ASSERT_TRUE(fit.placement) << "a solution is known";
  EXPECT_TRUE(fit.proven);
  EXPECT_THAT(check(problem, *fit.placement), IsEmpty());
  const SearchResult again = place_search(problem, {.goal = Goal::kFit, .work = kWork});
  EXPECT_EQ(fit.placement->offsets, again.placement->offsets) << "by work, not by the clock";

  fmt::print(
      "{}: {:3} buffers  naive {:6.3f}  greedy {:.4f}  least {:.4f}{}  bound {:.4f}  of the capacity\n",
      GetParam(), problem.buffers.size(), naive->peak[0] / double{kCapacity},
      greedy->peak[0] / double{kCapacity}, least.placement->peak[0] / double{kCapacity},
      least.proven ? " (proven)" : "", lower_bound(problem, 0).bytes / double{kCapacity});
}

INSTANTIATE_TEST_SUITE_P(Problems, Minimalloc,
                         testing::Values('A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K'),
                         [](const auto& param) { return std::string(1, param.param); });

}  // namespace
}  // namespace plimsoll::plan
