// The memory optimizer: clusters, rows and configurations.
#include "train/memory_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "graph/builder.h"
#include "ops/registry.h"
#include "prepare/memory_plan.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

// A graph that is written node by node, its first outputs forward and the others backward.
class TrainingCase {
 public:
  TrainingCase()
      : budget_("test", 0), arena_(budget_), dims_(arena_), root_(arena_, dims_), build_(root_, "t") {
    imports_[0] = {"", 17};
    imports_[1] = {"com.microsoft", 1};
    root_.opsets = imports_;
  }
  Dim symbol(const std::string& name) { return dims_.symbol(name); }
  Edge* input(const std::string& name, ElementType type, const std::vector<Dim>& dims,
              const std::vector<int64_t>& sizes) {
    Edge* edge = root_.add_edge(arena_.copy(std::string_view(name)));
    edge->facts.type = {ValueKind::kTensor, type, ElementType::kUndefined, true, arena_.copy(dims), nullptr};
    root_.inputs.push_back(edge);
    sizes_.push_back(sizes);
    return edge;
  }
  Edge* op(const std::string& type, const std::vector<Edge*>& inputs, const AttributeList& attributes,
           const std::string& domain = "") {
    return build_.emit(domain, type, inputs, attributes.list())->outputs[0];
  }
  Edge* op(const std::string& type, const std::vector<Edge*>& inputs, const std::string& domain = "") {
    return op(type, inputs, attrs(), domain);
  }
  AttributeList attrs() { return AttributeList(arena_); }
  GraphBuilder& build() { return build_; }
  Graph& root() { return root_; }
  Edge* weight(ElementType type, const std::vector<int64_t>& dims) {
    int64_t bytes = element_bits(type) / 8;
    for (const int64_t d : dims) bytes *= d;
    // Nobody reads it here.
    return build_.constant("w", type, dims, arena_.array<std::byte>(static_cast<size_t>(bytes)));
  }

  // All clusters at the sizes that the inputs were given.
  std::vector<ClusterPlan> clusters(std::span<Edge* const> forward, const MemoryConfig& config) {
    root_.sort();
    resolve(root_);
    infer_graph(root_);
    memory_.emplace(budget_);
    pool_.emplace(memory_->arena());
    facts_.emplace(root_, memory_->arena());
    for (size_t i = 0; i < root_.inputs.size(); ++i) {
      Facts facts = root_.inputs[i]->facts;
      facts.type.dims = arena_.copy(std::vector<Dim>(sizes_[i].begin(), sizes_[i].end()));
      (*facts_)[root_.inputs[i]] = facts;
    }
    GraphInferrer(*facts_, memory_->arena(), *pool_).infer(root_);
    return MemoryPlan(root_, *facts_, {}, true, forward, *memory_, budget_).clusters(config);
  }

 private:
  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Graph root_;
  GraphBuilder build_;
  OpsetImport imports_[2];
  std::vector<std::vector<int64_t>> sizes_;
  std::optional<TransientMemory> memory_;
  std::optional<DimPool> pool_;
  std::optional<FactsTable> facts_;
};

const ClusterPlan* find(const std::vector<ClusterPlan>& plans, const std::string& config) {
  for (const ClusterPlan& plan : plans) {
    if (plan.config() == config) return &plan;
  }
  return nullptr;
}

// What a decoder of 32 heads, 2560 wide, leaves for its backward part: scores and their softmax in float32,
// the rest in float16, the last position dropped.
struct SeedModel {
  TrainingCase c;
  std::vector<Edge*> forward;
  SeedModel() {
    const Dim batch = c.symbol("batch"), seq = c.symbol("seq_len");
    const ElementType f16 = ElementType::kFloat16, f32 = ElementType::kFloat;
    Edge* scores = c.input("scores", f32, {batch, 32, seq, 1, seq}, {1, 32, 1024, 1, 1024});
    Edge* mask = c.input("mask", ElementType::kBool, {batch, 32, seq, seq}, {1, 32, 1024, 1024});
    Edge* short_scores = c.input("short_scores", f32, {batch, 32, seq, seq - 1}, {1, 32, 1024, 1023});
    Edge* bias = c.input("bias", f32, {batch, 1, seq, seq - 1}, {1, 1, 1024, 1023});
    Edge* x = c.input("x", f16, {batch, seq - 1, 2560}, {1, 1023, 2560});
    Edge* gradient = c.input("gradient", f16, {batch, seq - 1, 10240}, {1, 1023, 10240});
    Edge* heads = c.op("Reshape", {scores, c.build().integers({0, 32, 0, -1})});
    Edge* masked = c.op("Where", {mask, heads, c.build().scalar(-10000.0f)});
    Edge* soft =
        c.op("BiasSoftmax", {short_scores, bias},
             c.attrs().set("axis", int64_t{3}).set("is_inner_broadcast", int64_t{0}), "com.microsoft");
    Edge* cast = c.op("Cast", {soft}, c.attrs().set("to", int64_t{10}));
    Edge* inner = c.op("FusedMatMul", {x, c.weight(f16, {2560, 10240})}, "com.microsoft");
    Edge* gelu = c.op("BiasGelu", {inner, c.weight(f16, {10240})}, "com.microsoft");
    forward = {c.op("ReduceMax", {masked}), c.op("ReduceMax", {cast}), c.op("ReduceMax", {gelu})};
    // Behind: everything above is read once more.
    for (Edge* stashed : {masked, soft, cast}) c.root().outputs.push_back(c.op("ReduceMin", {stashed}));
    for (Edge* stashed : {inner, gelu})
      c.root().outputs.push_back(c.op("ReduceMin", {c.op("Mul", {stashed, gradient})}));
    for (Edge* edge : forward) c.root().outputs.push_back(edge);
  }
};

TEST(MemoryOptimizer, TheSeedsRowsComeOutOfItsSizes) {
  SeedModel seed;
  const std::vector<ClusterPlan> plans = seed.c.clusters(seed.forward, {});
  const auto row = [&](const std::string& config, int64_t bytes, const std::string& symbolic) {
    const ClusterPlan* plan = find(plans, config);
    ASSERT_NE(plan, nullptr) << config << "\n"
                             << memory_table(plans, MemoryLevel::kUser, TableDetail::kDevInfo);
    EXPECT_EQ(plan->saved_bytes(), bytes) << config;
    EXPECT_EQ(plan->symbolic_bytes, symbolic) << config;
    EXPECT_EQ(plan->occurrences.size(), 1u);
  };
  row("BiasSoftmax+:1:-1", 134'086'656, "128.0*batch*seq_len*(seq_len-1)");
  row("Cast+:1:-1", 67'043'328, "64.0*batch*seq_len*(seq_len-1)");
  row("BiasGelu+:1:-1", 20'951'040, "20480.0*batch*(seq_len-1)");
  row("FusedMatMul+:1:-1", 20'951'040, "20480.0*batch*(seq_len-1)");
  row("Reshape+Where+:1:-1", 134'217'728, "128.0*batch*seq_len**2");
  for (size_t i = 1; i < plans.size(); ++i) EXPECT_GE(plans[i - 1].saved_bytes(), plans[i].saved_bytes());
  const std::string table = memory_table(plans, MemoryLevel::kUser, TableDetail::kInfo);
  EXPECT_THAT(table,
              HasSubstr("Memory Optimizer     :  OFF  :  Memory Optimization Level: [USER_SPECIFIED]"));
  EXPECT_THAT(table, HasSubstr("134,086,656"));
}

// Layers of one head: norms, attention, two products, around which the stream goes on.
std::vector<Edge*> transformer(TrainingCase& c, int layers, bool norm_first) {
  const Dim seq = c.symbol("seq_len");
  constexpr int64_t kWidth = 64;
  Edge* x = c.input("x", ElementType::kFloat, {seq, kWidth}, {128, kWidth});
  std::vector<Edge*> stashed;
  const auto linear = [&](Edge* in, int64_t from, int64_t to) {
    stashed.push_back(in);
    return c.op("MatMul", {in, c.weight(ElementType::kFloat, {from, to})});
  };
  const auto norm = [&](Edge* in) {
    stashed.push_back(in);
    return c.op("LayerNormalization", {in, c.weight(ElementType::kFloat, {kWidth})});
  };
  x = c.op("Relu", {x});
  for (int i = 0; i < layers; ++i) {
    Edge* in = norm_first ? norm(x) : x;
    Edge *q = linear(in, kWidth, kWidth), *k = linear(in, kWidth, kWidth), *v = linear(in, kWidth, kWidth);
    Edge* soft = c.op("Softmax", {c.op("MatMul", {q, c.op("Transpose", {k})})});
    stashed.insert(stashed.end(), {q, k, v, soft});
    x = c.op("Add", {x, linear(c.op("MatMul", {soft, v}), kWidth, kWidth)});
    if (!norm_first) x = norm(x);
    Edge* inner = linear(norm_first ? norm(x) : x, kWidth, 4 * kWidth);
    stashed.push_back(inner);
    x = c.op("Add", {x, linear(c.op("Tanh", {inner}), 4 * kWidth, kWidth)});
    if (!norm_first) x = norm(x);
  }
  Edge* head = c.op("Sigmoid", {x});
  stashed.push_back(head);
  Edge* loss = c.op("ReduceSum", {head});
  // Behind: in reverse, each reads what the forward part left.
  Edge* d = loss;
  for (size_t i = stashed.size(); i-- > 0;) d = c.op("Add", {d, c.op("ReduceSum", {stashed[i]})});
  c.root().outputs.push_back(loss);
  c.root().outputs.push_back(d);
  return {loss};
}

TEST(MemoryOptimizer, LayersAreFoundWithTheNormFirstAndLast) {
  for (const bool norm_first : {true, false}) {
    TrainingCase c;
    const std::vector<Edge*> forward = transformer(c, 3, norm_first);
    const std::vector<ClusterPlan> plans = c.clusters(forward, {MemoryLevel::kLayers, {}, {}});
    const ForwardPart part = forward_part(c.root(), forward);
    const Layers layers = find_layers(c.root(), part);
    EXPECT_EQ(layers.begins.size(), 3u) << norm_first;
    ASSERT_NE(layers.end, nullptr);
    EXPECT_EQ(layers.end->producer->op_type, norm_first ? "Add" : "LayerNormalization");
    std::vector<int> softmax_layers;
    for (const Node* node : c.root().nodes) {
      if (node->op_type == "Softmax") softmax_layers.push_back(layers.of_node[node->id]);
      if (node->op_type == "Sigmoid" || node->op_type == "Relu") {
        EXPECT_EQ(layers.of_node[node->id], kNoLayer);
      }
    }
    EXPECT_THAT(softmax_layers, testing::ElementsAre(0, 1, 2)) << norm_first;
    for (const ClusterPlan& plan : plans) {
      for (const ClusterOccurrence& one : plan.occurrences)
        EXPECT_EQ(one.on, one.layer != kNoLayer && plan.strategy == RecomputeStrategy::kRecompute)
            << plan.config();
    }
  }
}

TEST(MemoryOptimizer, ACountOfOneIsTheFirstOnly) {
  TrainingCase c;
  const std::vector<Edge*> forward = transformer(c, 3, true);
  MemoryConfig config;
  std::vector<ClusterPlan> plans = c.clusters(forward, config);
  const auto found =
      std::find_if(plans.begin(), plans.end(), [](const ClusterPlan& p) { return p.cluster == "Tanh+"; });
  ASSERT_NE(found, plans.end());
  const ClusterPlan& plan_of_tanh = *found;
  ASSERT_EQ(plan_of_tanh.occurrences.size(), 3u)
      << memory_table(plans, MemoryLevel::kUser, TableDetail::kDevInfo);
  for (const int64_t count : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}}) {
    config.requests = {{plan_of_tanh.cluster, plan_of_tanh.strategy, count}};
    select_cluster_plans(plans, config);
    size_t on = 0;
    for (const ClusterOccurrence& one : plan_of_tanh.occurrences) on += one.on;
    EXPECT_EQ(on, count < 0 ? 3u : std::min<size_t>(3, static_cast<size_t>(count)));
    EXPECT_EQ(plan_of_tanh.occurrences[0].on, count != 0);
  }
  config.requests = {{"Nobody+", RecomputeStrategy::kRecompute, -1}};
  EXPECT_THROW(select_cluster_plans(plans, config), Error);
}

// Forward nodes that some cluster would run again.
std::set<std::string> run_again(const std::vector<ClusterPlan>& plans) {
  std::set<std::string> types;
  for (const ClusterPlan& plan : plans) {
    for (const Node* node : plan.occurrences[0].nodes) types.emplace(node->op_type);
  }
  return types;
}

TEST(MemoryOptimizer, AProbeOfLevelZeroRunsOnlyCheapOperatorsAgain) {
  TrainingCase all, cheap;
  const std::vector<Edge*> forward = transformer(all, 2, true), forward_cheap = transformer(cheap, 2, true);
  EXPECT_THAT(run_again(all.clusters(forward, {})),
              testing::UnorderedElementsAre("Add", "MatMul", "LayerNormalization", "Transpose", "Softmax",
                                            "Tanh", "Sigmoid", "ReduceSum"));
  MemoryConfig config;
  config.probe = parse_memory_probe_key("0:1");
  EXPECT_THAT(run_again(cheap.clusters(forward_cheap, config)),
              testing::UnorderedElementsAre("Tanh", "Sigmoid", "ReduceSum"));
}

TEST(MemoryOptimizer, WithoutBoundariesClustersReachBeyondTheirLayer) {
  TrainingCase bound, free;
  const std::vector<Edge*> forward = transformer(bound, 2, true), forward_free = transformer(free, 2, true);
  // What the first layer begins with is kept, or can run again.
  EXPECT_EQ(run_again(bound.clusters(forward, {})).count("Relu"), 0u);
  MemoryConfig config;
  config.probe = parse_memory_probe_key("1:0");
  const std::vector<ClusterPlan> plans = free.clusters(forward_free, config);
  EXPECT_EQ(run_again(plans).count("Relu"), 1u);
  const Layers layers = find_layers(free.root(), forward_part(free.root(), forward_free));
  EXPECT_TRUE(std::any_of(plans.begin(), plans.end(), [&](const ClusterPlan& plan) {
    return std::any_of(plan.occurrences.begin(), plan.occurrences.end(), [&](const ClusterOccurrence& one) {
      return std::any_of(one.node->outputs.begin(), one.node->outputs.end(), [&](const Edge* edge) {
        return std::find(layers.begins.begin(), layers.begins.end(), edge) != layers.begins.end();
      });
    });
  })) << memory_table(plans, MemoryLevel::kUser, TableDetail::kDevInfo);
}

TEST(MemoryConfig, ReadsTheProbe) {
  const auto read = [](std::string_view text) {
    const MemoryProbe probe = parse_memory_probe_key(text);
    return std::pair(probe.expensive, probe.layers_bound);
  };
  EXPECT_EQ(read(""), std::pair(true, true));
  EXPECT_EQ(read("0"), std::pair(false, false));
  EXPECT_EQ(read("1"), std::pair(true, false));
  EXPECT_EQ(read("0:1"), std::pair(false, true));
  EXPECT_EQ(read("1:0"), std::pair(true, false));
  for (const char* wrong : {"2:0", "1:2", "-1:0", "1:", ":1", "1:0:0", "x", "1,0", " 1:0"})
    EXPECT_THROW(parse_memory_probe_key(wrong), Error) << wrong;
}

TEST(MemoryOptimizer, ARowsSavingIsWhatThePlannedPeakLoses) {
  TrainingCase c;
  const std::vector<Edge*> forward = transformer(c, 4, true);
  const std::vector<ClusterPlan> plans = c.clusters(forward, {});
  int64_t most = 0;
  for (const ClusterPlan& plan : plans) {
    EXPECT_LE(plan.planned_saved_bytes, plan.saved_bytes()) << plan.config();
    most = std::max(most, plan.planned_saved_bytes);
  }
  EXPECT_GT(most, 0) << memory_table(plans, MemoryLevel::kUser, TableDetail::kDevInfo);
}

TEST(MemoryOptimizer, SeveralStashedResultsOfANodeAllCount) {
  TrainingCase c;
  const Dim rows = c.symbol("rows");
  Edge* x = c.input("x", ElementType::kFloat, {rows, 64}, {128, 64});
  Node* top = c.build().emit("", "TopK", std::vector<Edge*>{x, c.build().integers({8})}, {}, 2);
  Edge* loss = c.op("ReduceSum", {top->outputs[0]});
  for (Edge* edge : {loss, c.op("Neg", {top->outputs[0]}), c.op("Neg", {top->outputs[1]})})
    c.root().outputs.push_back(edge);
  const std::vector<Edge*> forward = {loss};
  const std::vector<ClusterPlan> plans = c.clusters(forward, {});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].config(), "TopK+:1:-1");
  EXPECT_EQ(plans[0].saved_bytes(), 128 * 8 * (4 + 8));
}

TEST(MemoryConfig, ReadsRequestsFilesAndTheEnvironment) {
  const ClusterRequest request = parse_cluster_request("Reshape+Where+:1:-1");
  EXPECT_EQ(request.cluster, "Reshape+Where+");
  EXPECT_EQ(request.strategy, RecomputeStrategy::kRecompute);
  EXPECT_EQ(request.count, -1);
  for (const char* wrong : {"", "Cast+", "Cast+:1", "Cast:1:-1", "Cast+:3:1", "Cast+:1:-2", "Cast+:x:1",
                            "+:1:1", "Cast++:1:1", "Cast+:1:1:"})
    EXPECT_THROW(parse_cluster_request(wrong), Error) << wrong;
  EXPECT_EQ(parse_memory_config(R"(["BiasGelu+:1:-1", "Cast+:2:3"])", "here").size(), 2u);
  for (const char* wrong : {"", "{}", "[1]", "[\"Cast+\"]", "[\"Cast+:1:1\""})
    EXPECT_THROW(parse_memory_config(wrong, "here"), Error) << wrong;
  EXPECT_EQ(parse_memory_optimizer_key("BiasGelu+:1:-1,Cast+:0:1").size(), 2u);

  const std::string path = testing::TempDir() + "mem_opt.json";
  std::ofstream(path) << R"(["Dropout+:1:1"])";
  const Lookup lookup = [&](const char* name) -> std::optional<std::string> {
    if (std::string_view(name) == "ORTMODULE_MEMORY_OPT_LEVEL") return "2";
    if (std::string_view(name) == "ORTMODULE_MEMORY_OPT_CONFIG") return path;
    return std::nullopt;
  };
  const MemoryConfig config = memory_config_from_environment({}, lookup);
  EXPECT_EQ(config.level, MemoryLevel::kCompromised);
  ASSERT_EQ(config.requests.size(), 1u);
  EXPECT_EQ(config.requests[0].count, 1);
  std::filesystem::remove(path);
  EXPECT_THROW(read_memory_config(path), Error);
}

}  // namespace
}  // namespace plimsoll
