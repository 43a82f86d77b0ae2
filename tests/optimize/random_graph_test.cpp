// Random models must mean the same before and after every pass, and wherever their values are placed.
#include "random_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "optimize/pipeline.h"

namespace plimsoll {
namespace {

constexpr int kGraphs = 3000;
constexpr int kAllSteps = 1000;

struct Way {
  const char* name;
  GraphOptimizationLevel level;
  Placer placer;
};
constexpr Way kReference = {"as it is, naive", GraphOptimizationLevel::kDisableAll, Placer::kNaive};
constexpr Way kWays[] = {
    {"as it is, greedy", GraphOptimizationLevel::kDisableAll, Placer::kGreedy},
    {"optimized, naive", GraphOptimizationLevel::kAll, Placer::kNaive},
    {"optimized, greedy", GraphOptimizationLevel::kAll, Placer::kGreedy},
};

std::vector<Value> run(const RandomGraph& graph, const Way& way, int stop_after = -1) {
  static const Env env;
  SessionOptions options;
  options.SetIntraOpNumThreads(1).SetGraphOptimizationLevel(way.level);
  options.placer = way.placer;
  options.stop_after_pass = stop_after;
  options.check_passes = way.placer == Placer::kNaive;
  options.poison = way.placer == Placer::kGreedy;
  const std::string bytes = graph.bytes();
  Session session(env, bytes.data(), bytes.size(), options);
  std::vector<const char*> inputs, outputs;
  for (const std::string& name : graph.input_names()) inputs.push_back(name.c_str());
  for (const std::string& name : graph.output_names()) outputs.push_back(name.c_str());
  return session.Run({}, inputs.data(), graph.inputs().data(), inputs.size(), outputs.data(), outputs.size());
}

// Empty if they agree. Rounding is allowed for in proportion to the largest element.
std::string difference(const std::vector<Value>& wanted, const std::vector<Value>& found) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].GetShape() != found[i].GetShape()) return fmt::format("output {} has another shape", i);
    const auto *a = wanted[i].GetTensorData<float>(), *b = found[i].GetTensorData<float>();
    float largest = 0;
    for (size_t k = 0; k < wanted[i].GetElementCount(); ++k) largest = std::max(largest, std::fabs(a[k]));
    if (!(largest < 1e6f)) continue;  // nothing can be said of numbers that grew out of bounds
    for (size_t k = 0; k < wanted[i].GetElementCount(); ++k) {
      if (std::isnan(a[k]) && std::isnan(b[k])) continue;  // -inf times 0, say: not a number either way
      if (!(std::fabs(a[k] - b[k]) <= 1e-3f + 1e-3f * largest))
        return fmt::format("output {}, element {}: {} became {}", i, k, a[k], b[k]);
    }
  }
  return {};
}

struct Outcome {
  std::string problem;
  bool refused = false;  // as it is, by an Error
};

Outcome try_graph(uint32_t seed, int steps, int stop_after = -1) {
  const RandomGraph graph(seed, steps);
  std::vector<Value> wanted;
  try {
    wanted = run(graph, kReference);
  } catch (const std::exception& error) {
    return {fmt::format("{}: {}", kReference.name, error.what()), true};
  }
  for (const Way& way : kWays) {
    try {
      const std::string found = difference(wanted, run(graph, way, stop_after));
      if (!found.empty()) return {fmt::format("{}: {}", way.name, found), false};
    } catch (const std::exception& error) {
      return {fmt::format("{}: {}", way.name, error.what()), false};
    }
  }
  return {};
}

// The smallest beginning of the model that fails, and the pass with which it begins to.
std::string explain(uint32_t seed) {
  int steps = 1;
  while (steps < 20 && try_graph(seed, steps).problem.empty()) ++steps;
  size_t pass = 0;
  while (pass < passes().size() && try_graph(seed, steps, static_cast<int>(pass)).problem.empty()) ++pass;
  const char* name = pass == 0 ? "before all passes" : passes()[pass - 1].name;
  return fmt::format("seed {}, {} steps: {}\nwrong after {} passes ({})\n{}", seed, steps,
                     try_graph(seed, steps).problem, pass, name, RandomGraph(seed, steps).describe());
}

// PLIMSOLL_RANDOM_GRAPHS=FIRST,COUNT looks further than the test does.
std::pair<uint32_t, uint32_t> range() {
  unsigned first = 1, count = kGraphs;
  const char* asked = std::getenv("PLIMSOLL_RANDOM_GRAPHS");
  if (asked != nullptr && std::sscanf(asked, "%u,%u", &first, &count) != 2)
    ADD_FAILURE() << "PLIMSOLL_RANDOM_GRAPHS: expected FIRST,COUNT, found " << asked;
  return {first, count};
}

TEST(RandomGraphs, MeanTheSameAfterEveryPass) {
  const auto [first, count] = range();
  int failures = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    if (try_graph(seed, kAllSteps).problem.empty()) continue;
    ADD_FAILURE() << explain(seed);
    if (++failures == 5) break;
  }
}

// The generator knows ONNX: a model that is refused as it is would test nothing.
TEST(RandomGraphs, AreMadeOfEverything) {
  std::set<std::string> found;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    const std::string text = RandomGraph(seed, kAllSteps).describe();
    for (const char* op : {"MatMul", "Gemm", "Conv", "If", "LayerNormalization", "Split", "Resize", "Erf"}) {
      if (text.find(op) != std::string::npos) found.insert(op);
    }
  }
  EXPECT_EQ(found.size(), 8u);
}

}  // namespace
}  // namespace plimsoll
