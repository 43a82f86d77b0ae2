#include "ops/op_bench.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "kernels/each_target.h"
#include "support/guarded_memory.h"

namespace plimsoll {
namespace {

enum class Known { kAll, kAllButFirst, kNone };

struct Truth {
  int threads = 1;
  bool packed = false;
  Known known = Known::kAll;
  bool odd_addresses = false;
  std::vector<Alias> aliases;  // overwrites and pieces to take

  std::string name() const {
    const char* data[] = {"all data known", "input 0 unknown", "no data known"};
    std::string text = fmt::format("{} threads, {} weights, {}", threads, packed ? "packed" : "raw",
                                   data[static_cast<int>(known)]);
    if (odd_addresses) text += ", odd addresses";
    for (const Alias& a : aliases)
      text +=
          fmt::format(", {} {}->{}", a.kind == AliasKind::kPiece ? "piece" : "overwrites", a.input, a.output);
    return text;
  }
};

size_t width_of(ElementType type) {
  return static_cast<size_t>(std::max(1, element_bits(type) / 8));
}

// Remembers what select asks for, and grants it or not.
class Recorder : public PackPolicy {
 public:
  explicit Recorder(bool grants) : grants_(grants) {}
  struct Asked {
    PackFormat format;
    int64_t bytes;
    friend bool operator==(const Asked&, const Asked&) = default;
  };
  bool pack(const Node&, size_t input, const PackFormat& format, int64_t bytes) const override {
    EXPECT_EQ(asked.count(input), 0u) << "input " << input << " is asked for twice";
    asked[input] = {format, bytes};
    return grants_;
  }
  mutable std::map<size_t, Asked> asked;

 private:
  bool grants_;
};

class OpBench {
 public:
  OpBench(const Node& node, std::span<const TensorView> inputs, std::span<const TensorView> expected)
      : node_(node),
        inputs_(inputs),
        expected_(expected),
        budget_("bench", 0),
        arena_(budget_),
        pool_(arena_) {}

  std::vector<Truth> truths(int threads) {
    std::vector<Truth> list;
    for (int count : std::set<int>{1, 2, threads}) {
      // What is known and how many threads there are have nothing to do with each other.
      for (Known known : {Known::kAll, Known::kAllButFirst, Known::kNone}) {
        if (count > 1 && known != Known::kAll) continue;
        list.push_back({count, false, known, false, {}});
        if (node_.op->pack != nullptr) list.push_back({count, true, known, false, {}});
      }
      if (node_.op->unaligned_inputs != 0) list.push_back({count, false, Known::kAll, true, {}});
      for (const std::vector<Alias>& taken : alias_sets())
        list.push_back({count, false, Known::kAll, false, taken});
    }
    return list;
  }

  // Nothing if infer cannot tell the shapes with so little known.
  std::optional<Outcome> run(const Truth& truth) {
    SCOPED_TRACE(truth.name());
    std::vector<TensorView> views = place_inputs(truth);
    std::vector<Facts> facts = facts_under(truth.known, views);
    std::vector<Facts> results = infer_node(node_, facts, arena_, pool_);
    if (!agrees(results)) return std::nullopt;
    std::vector<TensorView> outputs = place_outputs(truth, views);
    Recorder policy(true);
    if (truth.packed) {
      pack(policy, truth.threads, views);
      // Half of the time as in a step whose shapes depend on data: the raw data is gone.
      for (const auto& [input, asked] : policy.asked) {
        if (truth.known == Known::kAllButFirst) facts[input].constant = nullptr;
      }
    }
    work(truth, facts, results, views, outputs, policy);
    Outcome outcome{truth.name(), {}};
    for (const TensorView& view : outputs)
      outcome.outputs.emplace_back(view.data, view.data + (view ? view.bytes() : 0));
    for (const GuardedMemory& memory : memory_)
      EXPECT_TRUE(memory.is_intact()) << "written outside of memory";
    memory_.clear();
    return outcome;
  }

  // Symbolic dimensions, where sizes are put in, agree with the sizes.
  void check_symbolic() {
    for (int which = 0; which < 3; ++which) {
      SCOPED_TRACE(fmt::format("symbolic: {}", which == 0 ? "input 0" : which == 1 ? "its batch" : "all"));
      std::vector<Facts> facts = symbolic_facts(which);
      std::vector<Facts> results = infer_node(node_, facts, arena_, pool_);
      for (size_t o = 0; o < results.size(); ++o) check_symbolic(results[o], expected_[o]);
      if (node_.op->select == nullptr) continue;
      for (int threads : {1, 2}) {
        for (bool packed : {false, true}) check_formula(facts, results, threads, packed);
      }
    }
  }

  // Outputs that are views of inputs.
  void check_views() {
    for (const Alias& alias : aliases()) {
      if (alias.kind != AliasKind::kView || !expected_[alias.output]) continue;
      const TensorView &in = inputs_[alias.input], &out = expected_[alias.output];
      const int64_t offset = alias.offset_bytes.value();
      ASSERT_LE(offset + out.bytes(), in.bytes());
      if (out.bytes() == 0) continue;
      EXPECT_EQ(std::memcmp(in.data + offset, out.data, static_cast<size_t>(out.bytes())), 0);
    }
  }

 private:
  std::vector<Facts> facts_under(Known known, std::span<const TensorView> views) {
    std::vector<Facts> facts;
    for (size_t i = 0; i < views.size(); ++i) {
      facts.push_back(facts_of(views[i], arena_));
      // What select and infer see is the case's own memory, which outlives them.
      facts.back().constant = &inputs_[i];
      if (!inputs_[i] || known == Known::kNone || (known == Known::kAllButFirst && i == 0))
        facts.back().constant = nullptr;
    }
    return facts;
  }

  // The outputs' shapes are known, and the right ones.
  bool agrees(std::span<const Facts> results) {
    for (size_t o = 0; o < results.size(); ++o) {
      if (node_.outputs[o] == nullptr) continue;
      if (!results[o].is_concrete()) return false;
      std::vector<int64_t> dims;
      for (Dim d : results[o].type.dims) dims.push_back(d.value());
      EXPECT_EQ(results[o].type.type, expected_[o].type);
      EXPECT_EQ(dims, std::vector<int64_t>(expected_[o].dims.begin(), expected_[o].dims.end()));
      if (testing::Test::HasFailure()) return false;
    }
    return true;
  }

  std::byte* guarded(size_t bytes, size_t alignment = 1) {
    memory_.emplace_back(bytes, alignment);
    return memory_.back().data();
  }

  std::vector<TensorView> place_inputs(const Truth& truth) {
    std::vector<TensorView> views(inputs_.begin(), inputs_.end());
    for (size_t i = 0; i < views.size(); ++i) {
      if (!views[i]) continue;
      const auto bytes = static_cast<size_t>(views[i].bytes());
      const bool odd = truth.odd_addresses && i < 32 && ((node_.op->unaligned_inputs >> i) & 1) != 0;
      views[i].data = guarded(bytes + (odd ? 1 : 0), odd ? 1 : std::min<size_t>(8, width_of(views[i].type)));
      if (bytes > 0) std::memcpy(views[i].data, inputs_[i].data, bytes);
    }
    return views;
  }

  std::vector<TensorView> place_outputs(const Truth& truth, std::vector<TensorView>& views) {
    std::vector<TensorView> outputs(expected_.begin(), expected_.end());
    for (TensorView& view : outputs) {
      if (view)
        view.data = guarded(static_cast<size_t>(view.bytes()), std::min<size_t>(8, width_of(view.type)));
    }
    for (const Alias& alias : truth.aliases) {
      TensorView& in = views[alias.input];
      std::byte* to = outputs[alias.output].data + alias.offset_bytes.value();
      if (in.bytes() > 0) std::memcpy(to, in.data, static_cast<size_t>(in.bytes()));
      in.data = to;
    }
    return outputs;
  }

  // As at load: on symbolic facts, from raw data at any address.
  void pack(Recorder& policy, int threads, std::vector<TensorView>& views) {
    std::vector<Facts> facts = symbolic_facts(0);
    std::vector<Facts> results = infer_node(node_, facts, arena_, pool_);
    SelectContext select(node_, facts, results, &policy, threads, arena_);
    const void* choice = node_.op->select(select);
    for (const auto& [input, asked] : policy.asked) {
      TensorView raw = inputs_[input];
      const auto bytes = static_cast<size_t>(raw.bytes());
      raw.data = guarded(bytes + 1);
      if (bytes > 0) std::memcpy(raw.data, inputs_[input].data, bytes);
      views[input].data = guarded(static_cast<size_t>(asked.bytes), 64);
      views[input].packed = true;
      node_.op->pack(PackContext(node_, facts, results, choice, input, raw, views[input].data));
    }
  }

  void work(const Truth& truth, std::span<const Facts> facts, std::span<Facts> results,
            std::span<const TensorView> views, std::span<const TensorView> outputs, const Recorder& at_load) {
    RunContext run;
    run.node = &node_;
    run.inputs = views;
    run.outputs = outputs;
    run.threads = truth.threads;
    if (node_.op->select != nullptr) {
      const Recorder policy(truth.packed);
      SelectContext select(node_, facts, results, &policy, truth.threads, arena_);
      run.choice_made = node_.op->select(select);
      EXPECT_TRUE(!truth.packed || policy.asked == at_load.asked)
          << "a format depends on more than weights and attributes";
      const Dim bytes = select.scratch_bytes();
      ASSERT_TRUE(bytes.is_constant());
      run.scratch = guarded(static_cast<size_t>(bytes.value()), 64);
    }
    if (node_.op->bind != nullptr) {
      BindContext bind(node_, facts, results, run.choice_made, truth.threads, arena_);
      run.bound = node_.op->bind(bind);
    }
    struct Text : TextMemory {
      explicit Text(BumpArena& a) : arena(a) {}
      char* allocate(size_t bytes) override { return static_cast<char*>(arena.allocate(bytes, 1)); }
      BumpArena& arena;
    } text(arena_);
    run.text = &text;
    node_.op->run(run);
  }

  std::vector<Alias> aliases() {
    if (node_.op->alias == nullptr) return {};
    const std::vector<Facts> facts = facts_under(Known::kAll, inputs_);
    std::vector<Facts> results = infer_node(node_, facts, arena_, pool_);
    AliasContext context(node_, facts, results);
    node_.op->alias(context);
    return context.aliases;
  }

  // Each overwrite and each piece alone, then all pieces together.
  std::vector<std::vector<Alias>> alias_sets() {
    std::vector<std::vector<Alias>> sets;
    std::vector<Alias> pieces;
    for (const Alias& alias : aliases()) {
      if (!inputs_[alias.input] || !expected_[alias.output] || alias.kind == AliasKind::kView) continue;
      const int64_t in = inputs_[alias.input].bytes(), out = expected_[alias.output].bytes();
      if (alias.kind == AliasKind::kOverwrite && in != out) continue;
      sets.push_back({alias});
      if (alias.kind == AliasKind::kPiece) pieces.push_back(alias);
    }
    if (pieces.size() > 1) sets.push_back(pieces);
    return sets;
  }

  // Equal sizes are one symbol; 0 and 1 stay numbers.
  Dim symbol_for(int64_t size) { return size < 2 ? Dim(size) : pool_.symbol(fmt::format("s{}", size)); }
  static int64_t size_of(std::string_view symbol) { return std::stoll(std::string(symbol.substr(1))); }

  std::vector<Facts> symbolic_facts(int which) {
    std::vector<Facts> facts = facts_under(Known::kAll, inputs_);
    for (size_t i = 0; i < facts.size(); ++i) {
      if (!inputs_[i] || (which < 2 && i > 0)) continue;
      std::span<Dim> dims = arena_.array<Dim>(inputs_[i].rank());
      for (size_t d = 0; d < dims.size(); ++d)
        dims[d] = which == 1 && d > 0 ? Dim(inputs_[i].dims[d]) : symbol_for(inputs_[i].dims[d]);
      facts[i].type.dims = dims;
      facts[i].constant = nullptr;
    }
    return facts;
  }

  static void check_symbolic(const Facts& found, const TensorView& expected) {
    if (!expected || !found.type.ranked) return;
    EXPECT_EQ(found.type.type, expected.type);
    ASSERT_EQ(found.type.rank(), expected.rank()) << to_string(found.type);
    for (size_t d = 0; d < expected.rank(); ++d) {
      const Dim dim = found.type.dims[d];
      if (dim.depends_on_data()) continue;
      EXPECT_EQ(dim.evaluate(size_of), expected.dims[d]) << dim.to_string();
    }
    if (!found.values || expected.type != ElementType::kInt64) return;
    for (size_t i = 0; i < found.values->size(); ++i) {
      const Dim value = (*found.values)[i];
      if (value.depends_on_data()) continue;
      EXPECT_EQ(value.evaluate(size_of), expected.as<int64_t>()[i]);
    }
  }

  // What the formula says is enough. It is silent where not even the shapes of weights are known.
  void check_formula(std::span<const Facts> facts, std::span<Facts> results, int threads, bool packed) {
    const Recorder at_load(packed), at_shape(packed);
    SelectContext formula(node_, facts, results, &at_load, threads, arena_);
    node_.op->select(formula);
    std::vector<Facts> concrete = facts_under(Known::kAll, inputs_);
    std::vector<Facts> concrete_results = infer_node(node_, concrete, arena_, pool_);
    SelectContext select(node_, concrete, concrete_results, &at_shape, threads, arena_);
    node_.op->select(select);
    if (formula.scratch_bytes().depends_on_data() || at_load.asked.size() != at_shape.asked.size()) return;
    EXPECT_GE(formula.scratch_bytes().evaluate(size_of), select.scratch_bytes().value())
        << formula.scratch_bytes().to_string();
  }

  const Node& node_;
  std::span<const TensorView> inputs_, expected_;
  Budget budget_;
  BumpArena arena_;
  DimPool pool_;
  std::vector<GuardedMemory> memory_;
};

// Strings are compared as texts: their handles point anywhere.
bool same(const TensorView& like, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (like.type != ElementType::kString) return a == b;
  const auto* x = reinterpret_cast<const StringRef*>(a.data());
  const auto* y = reinterpret_cast<const StringRef*>(b.data());
  return std::equal(x, x + like.elements(), y,
                    [](const StringRef& p, const StringRef& q) { return p.view() == q.view(); });
}

}  // namespace

std::vector<Outcome> run_bench(const Node& node, std::span<const TensorView> inputs,
                               std::span<const TensorView> expected, int threads) {
  std::vector<Outcome> outcomes;
  for_each_target([&] {
    OpBench bench(node, inputs, expected);
    bench.check_views();
    bench.check_symbolic();
    std::optional<Outcome> first;
    for (const Truth& truth : bench.truths(threads)) {
      if (testing::Test::HasFailure()) return;
      std::optional<Outcome> outcome = bench.run(truth);
      if (!outcome) continue;
      for (size_t o = 0; first && o < expected.size(); ++o)
        EXPECT_TRUE(same(expected[o], outcome->outputs[o], first->outputs[o]))
            << "output " << o << " differs: " << outcome->truth;
      if (!first) first = std::move(outcome);
    }
    if (first) outcomes.push_back(std::move(*first));
  });
  return outcomes;
}

}  // namespace plimsoll
