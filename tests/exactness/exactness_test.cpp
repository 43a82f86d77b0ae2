// What was told, seen from outside: mappings, resident pages, untouched gaps, heap calls.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "plimsoll/training.h"
#include "support/heap_watch.h"
#include "support/model_builder.h"
#include "support/models.h"

namespace plimsoll {
namespace {

constexpr int64_t kPage = 4096;

struct Region {
  uintptr_t begin = 0, end = 0;
  std::string permissions;
  int64_t bytes() const { return static_cast<int64_t>(end - begin); }
};

std::vector<Region> process_maps() {
  std::ifstream file("/proc/self/maps");
  std::vector<Region> regions;
  std::string line;
  while (std::getline(file, line)) {
    Region region;
    char permissions[5] = {};
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, permissions) == 3)
      regions.push_back({begin, end, permissions});
  }
  return regions;
}

// A writable mapping of exactly this size with an inaccessible page right behind it.
std::vector<Region> guarded_regions(int64_t bytes) {
  const std::vector<Region> maps = process_maps();
  std::vector<Region> found;
  for (size_t i = 0; i + 1 < maps.size(); ++i) {
    const bool writable = maps[i].permissions == "rw-p" && maps[i].bytes() >= bytes;
    const bool guarded = maps[i + 1].begin == maps[i].end && maps[i + 1].permissions == "---p";
    // The kernel merges neighbours, so the arena is the part right below its guard.
    if (writable && guarded)
      found.push_back({maps[i].end - static_cast<uintptr_t>(bytes), maps[i].end, "rw-p"});
  }
  return found;
}

struct Range {
  int64_t begin, end;
};

// The parts of [0, planned) that no buffer of the plan covers; scratch may be left out.
std::vector<Range> gaps(const Plan& plan, int64_t planned, bool with_scratch = true) {
  std::vector<Range> buffers;
  for (const PlannedBuffer& buffer : plan.buffers) {
    if (with_scratch || !buffer.scratch)
      buffers.push_back({buffer.offset, buffer.offset + buffer.size_bytes});
  }
  std::sort(buffers.begin(), buffers.end(), [](const Range& x, const Range& y) { return x.begin < y.begin; });
  std::vector<Range> found;
  int64_t covered = 0;
  for (const Range& range : buffers) {
    if (range.begin > covered) found.push_back({covered, range.begin});
    covered = std::max(covered, range.end);
  }
  if (covered < planned) found.push_back({covered, planned});
  return found;
}

// Pages of the arena that lie in no gap entirely.
int64_t covered_pages(const Plan& plan, int64_t planned, bool with_scratch) {
  int64_t pages = planned / kPage;
  for (const Range& gap : gaps(plan, planned, with_scratch)) {
    const int64_t whole = gap.end / kPage - (gap.begin + kPage - 1) / kPage;
    pages -= std::max<int64_t>(whole, 0);
  }
  return pages;
}

// The arena of a run: whole pages.
int64_t planned_bytes(const Plan& plan) {
  int64_t end = 0;
  for (const PlannedBuffer& buffer : plan.buffers) end = std::max(end, buffer.offset + buffer.size_bytes);
  return (end + kPage - 1) / kPage * kPage;
}

SessionOptions guarded_options() {
  SessionOptions options;
  options.guard_pages = true;
  return options.SetIntraOpNumThreads(1);
}

class Exactness : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    if (kSanitized && GetParam().name != std::string("digits"))
      GTEST_SKIP() << "takes too long under a sanitizer; digits stands for all";
    path_ = model_path(GetParam().name);
    if (path_.empty()) GTEST_SKIP() << GetParam().name << " is not in the cache: run ./dev models";
    std::mt19937 random(7);
    const bool fixed_shape = GetParam().shapes(random).empty();
    for (int i = 0; i < (fixed_shape ? 1 : 10); ++i) shapes_.push_back(GetParam().shapes(random));
  }
  std::string path_;
  std::vector<Shapes> shapes_;
};

}  // namespace

// Told and measured agree to the byte; the arena has that size, with a guard behind it; the pages the
// kernel calls resident are those that buffers cover; of scratch, a kernel may leave pages untouched.
TEST_P(Exactness, ToldIsMeasured) {
  for (const Shapes& shapes : shapes_) {
    Session session(Env(), path_, guarded_options());
    const Plan plan = session.Prepare(shapes);
    const int64_t planned = planned_bytes(plan);
    IoBinding binding = bind_all(session, shapes);
    EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.peak_bytes);
    if (planned == 0 || plan.depends_on_data) continue;
    EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);

    const int64_t least = covered_pages(plan, planned, false), most = covered_pages(plan, planned, true);
    bool agrees = false;
    for (const Region& region : guarded_regions(planned)) {
      std::vector<unsigned char> resident(static_cast<size_t>(planned / kPage));
      ASSERT_EQ(
          ::mincore(reinterpret_cast<void*>(region.begin), static_cast<size_t>(planned), resident.data()), 0);
      int64_t pages = 0;
      for (unsigned char r : resident) pages += r & 1;
      agrees |= least <= pages && pages <= most;
    }
    EXPECT_TRUE(agrees) << GetParam().name << ": no guarded arena of " << planned << " bytes with " << least
                        << " to " << most << " resident pages";
    std::printf("%s: told %ld, measured %ld, arena %ld bytes, %ld to %ld pages resident, lower bound %ld\n",
                GetParam().name, static_cast<long>(plan.peak_bytes),
                static_cast<long>(session.GetMemoryReport().peak_bytes), static_cast<long>(planned),
                static_cast<long>(least), static_cast<long>(most), static_cast<long>(plan.lower_bound_bytes));
  }
}

// Bytes that no buffer covers keep the pattern they were filled with.
TEST_P(Exactness, GapsStayPoisoned) {
  for (const Shapes& shapes : shapes_) {
    SessionOptions options = guarded_options();
    options.poison = true;
    Session session(Env(), path_, options);
    const Plan plan = session.Prepare(shapes);
    const int64_t planned = planned_bytes(plan);
    IoBinding binding = bind_all(session, shapes);
    if (planned == 0) continue;
    bool intact = false;
    for (const Region& region : guarded_regions(planned)) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(region.begin);
      bool ok = true;
      for (const Range& gap : gaps(plan, planned))
        ok &=
            std::all_of(bytes + gap.begin, bytes + gap.end, [](unsigned char byte) { return byte == 0xff; });
      intact |= ok;
    }
    EXPECT_TRUE(intact) << GetParam().name << ": a byte outside every buffer was written";
  }
}

TEST_P(Exactness, TheMinimumIsAcceptedAndOneByteLessIsRefused) {
  const Shapes& shapes = shapes_[0];
  const Env env;
  const Plan plan = Model(env, path_, SessionOptions().SetIntraOpNumThreads(1)).MakePlan(shapes);
  if (plan.depends_on_data) GTEST_SKIP() << "shapes depend on data";
  {
    Session session(env, path_,
                    SessionOptions().SetIntraOpNumThreads(1).SetMemoryLimit(plan.minimum_limit_bytes));
    bind_all(session, shapes);
    EXPECT_EQ(session.GetMemoryReport().peak_bytes, plan.minimum_limit_bytes);
  }
  const Env refused;
  const SessionOptions less =
      SessionOptions().SetIntraOpNumThreads(1).SetMemoryLimit(plan.minimum_limit_bytes - 1);
  try {
    Model(refused, path_, less).MakePlan(shapes);
    FAIL() << "one byte less was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBudgetExceeded);
    EXPECT_NE(std::string(error.what()).find(std::to_string(plan.minimum_limit_bytes)), std::string::npos);
    for (Account account :
         {Account::kWeights, Account::kPacked, Account::kPlanned, Account::kScratch, Account::kBound})
      EXPECT_EQ(refused.GetMemoryReport()[account].peak_bytes, 0) << account_name(account);
  }
}

TEST_P(Exactness, APreparedRunMakesNoHeapCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has a heap of its own";
  Session session(Env(), path_, SessionOptions().SetIntraOpNumThreads(1));
  const Plan plan = session.Prepare(shapes_[0]);
  if (plan.depends_on_data) GTEST_SKIP() << "shapes depend on data";
  IoBinding binding = bind_all(session, shapes_[0]);
  const RunOptions options;
  session.Run(options, binding);
  heap::Watch watch;
  session.Run(options, binding);
  const long calls = watch.stop();
  EXPECT_EQ(calls, 0) << watch.first_caller();
}

TEST(Loop, IterationsMakeNoHeapCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has a heap of its own";
  ModelBuilder model;
  Edge* x = model.input("x", ElementType::kFloat, {"8"});
  Edge* count = model.constant<int64_t>("count", {}, {100});
  Graph* body = model.new_body();
  model.body_input(*body, "i", ElementType::kInt64, {});
  Edge* go_on = model.body_input(*body, "cond", ElementType::kBool, {});
  Edge* sum = model.body_input(*body, "sum", ElementType::kFloat, {"8"});
  body->outputs.push_back(model.node_in(*body, "Identity", {go_on})[0]);
  body->outputs.push_back(model.node_in(*body, "Add", {sum, x})[0]);
  model.output(model.node("Loop", {count, nullptr, x}, 1, {ModelBuilder::body("body", body)})[0]);
  const std::string bytes = model.bytes();
  Session session(Env(), bytes.data(), bytes.size(), SessionOptions().SetIntraOpNumThreads(1));
  IoBinding binding = bind_all(session, {});
  const RunOptions options;
  heap::Watch watch;
  session.Run(options, binding);
  EXPECT_EQ(watch.stop(), 0) << watch.first_caller();
}

class TrainingHeap : public testing::TestWithParam<TrainingPrecision> {};

TEST_P(TrainingHeap, AStepMakesNoHeapCall) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has a heap of its own";
  TrainingOptions options;
  options.precision = GetParam();
  options.shapes = {{"image", {8, 1, 8, 8}}};
  options.session.intra_op_threads = 1;
  TrainingSession session(Env(), model_path("digits"), options);
  const std::vector<Value> inputs = {filled(ElementType::kFloat, {8, 1, 8, 8}),
                                     Value::CreateTensor(ElementType::kInt64, {8})};
  std::vector<Value> loss = {Value::CreateTensor(ElementType::kFloat, {})};
  const auto step = [&] {
    session.TrainStep(std::span<const Value>(inputs), loss);
    session.OptimizerStep();
    session.LazyResetGrad();
  };
  step();
  heap::Watch watch;
  step();
  const long calls = watch.stop();
  EXPECT_EQ(calls, 0) << watch.first_caller();
  session.EvalStep(inputs);  // its outputs are part of what was told
  EXPECT_EQ(session.GetMemoryReport().peak_bytes, session.GetPlan().peak_bytes);
  EXPECT_EQ(session.GetPlan().rounded.empty(), GetParam() == TrainingPrecision::kFloat);
}

INSTANTIATE_TEST_SUITE_P(Precisions, TrainingHeap,
                         testing::Values(TrainingPrecision::kFloat, TrainingPrecision::kBFloat16));
INSTANTIATE_TEST_SUITE_P(Models, Exactness, testing::ValuesIn(kModelCases),
                         [](const auto& model) { return std::string(model.param.name); });

}  // namespace plimsoll
