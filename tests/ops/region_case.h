// Checks an operator's region on one node: what is outside the region does not matter, and the node run on
// the parts makes the part.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "graph/region.h"
#include "memory/bump_arena.h"
#include "ops/invoke.h"
#include "ops/registry.h"

namespace plimsoll {

class RegionCase {
 public:
  using Random = std::mt19937;

  RegionCase(std::string op, int opset, Random& random, std::string domain = "")
      : budget_("test", 0),
        arena_(budget_),
        dims_(arena_),
        graph_(arena_, dims_),
        attributes_(arena_),
        random_(random),
        op_(std::move(op)),
        domain_(std::move(domain)) {
    imports_[0] = {arena_.copy(domain_), opset};
    graph_.opsets = imports_;
  }
  // Small whole numbers, so that sums do not depend on their order.
  RegionCase& data(const std::vector<int64_t>& dims) {
    TensorView view = make(ElementType::kFloat, dims);
    for (int64_t i = 0; i < view.elements(); ++i) view.as<float>()[i] = number();
    return add(view, true);
  }
  RegionCase& list(const std::vector<int64_t>& values) { return add(list_view(values), false); }
  RegionCase& scales(const std::vector<float>& values) {
    TensorView view = make(ElementType::kFloat, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), view.as<float>());
    return add(view, false);
  }
  RegionCase& absent() { return add({}, false); }
  AttributeList& attributes() { return attributes_; }
  RegionCase& outputs(size_t count) {
    output_count_ = count;
    return *this;
  }

  // Asks for a random part of a random output and checks the answer. Returns the share of the data that
  // is needed, so that a test can see that it is not always all.
  double check() {
    const Node& node = add_node(edges_, attributes_, output_count_);
    const std::vector<TensorView> whole = invoke(node, views_, arena_, dims_);
    const size_t output = random_() % output_count_;
    const Region wanted = random_part(whole[output]);
    std::vector<Facts> inputs, outputs;
    for (const TensorView& view : views_) inputs.push_back(facts_of(view, arena_));
    for (const TensorView& view : whole) outputs.push_back(facts_of(view, arena_));
    RegionContext context(node, inputs, outputs, output, wanted);
    find_region(context);
    expect_inside(context);
    if (testing::Test::HasFatalFailure()) return 1;
    expect_outside_is_idle(node, context, whole[output]);
    if (context.runs_on_parts) expect_parts_run(node, context, whole[output]);
    ran_on_parts = context.runs_on_parts;
    return share(context);
  }
  bool ran_on_parts = false;

 private:
  float number() { return static_cast<float>(static_cast<int>(random_() % 17) - 8); }

  TensorView make(ElementType type, const std::vector<int64_t>& dims) {
    TensorView view{nullptr, type, false, arena_.copy(dims)};
    view.data = static_cast<std::byte*>(arena_.allocate(static_cast<size_t>(view.bytes()) + 64, 64));
    return view;
  }
  TensorView list_view(const std::vector<int64_t>& values) {
    TensorView view = make(ElementType::kInt64, {static_cast<int64_t>(values.size())});
    std::copy(values.begin(), values.end(), view.as<int64_t>());
    return view;
  }
  RegionCase& add(const TensorView& view, bool is_data) {
    views_.push_back(view);
    is_data_.push_back(is_data);
    edges_.push_back(view ? graph_.add_edge("input") : nullptr);
    return *this;
  }
  const Node& add_node(const std::vector<Edge*>& inputs, const AttributeList& attributes, size_t outputs) {
    std::vector<Edge*> out;
    for (size_t i = 0; i < outputs; ++i) out.push_back(graph_.add_edge("output"));
    Node* node = graph_.add_node(domain_, op_, "node", inputs, out, attributes.list());
    resolve(*node, arena_);
    return *node;
  }

  Region random_part(const TensorView& view) {
    Region part;
    for (int64_t d : view.dims) {
      const auto begin = static_cast<int64_t>(random_() % static_cast<uint64_t>(d));
      const auto size = 1 + static_cast<int64_t>(random_() % static_cast<uint64_t>(d - begin));
      part.push_back({begin, begin + size});
    }
    return part;
  }

  static bool contains(const Region& region, const std::vector<int64_t>& at) {
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] < region[i].begin || at[i] >= region[i].end) return false;
    }
    return true;
  }
  // Calls f(position, index) for every element.
  template <typename F>
  static void for_each(std::span<const int64_t> dims, F&& f) {
    std::vector<int64_t> at(dims.size(), 0);
    int64_t count = 1;
    for (int64_t d : dims) count *= d;
    for (int64_t i = 0; i < count; ++i) {
      f(at, i);
      for (size_t axis = dims.size(); axis-- > 0 && ++at[axis] == dims[axis];) at[axis] = 0;
    }
  }
  static double value_at(const TensorView& view, int64_t i) {
    return visit_numeric(view.type, [&](auto tag) {
      return static_cast<double>(static_cast<float>(view.as<typename decltype(tag)::type>()[i]));
    });
  }
  // The values of a part, row by row.
  static std::vector<double> values_in(const TensorView& view, const Region& part) {
    std::vector<double> values;
    for_each(view.dims, [&](const std::vector<int64_t>& at, int64_t i) {
      if (contains(part, at)) values.push_back(value_at(view, i));
    });
    return values;
  }

  void expect_inside(const RegionContext& c) {
    ASSERT_EQ(c.needs.size(), views_.size());
    for (size_t i = 0; i < views_.size(); ++i) {
      ASSERT_EQ(c.needs[i].size(), views_[i].rank());
      for (size_t axis = 0; axis < views_[i].rank(); ++axis) {
        ASSERT_GE(c.needs[i][axis].begin, 0);
        ASSERT_LE(c.needs[i][axis].begin, c.needs[i][axis].end);
        ASSERT_LE(c.needs[i][axis].end, views_[i].dims[axis]);
      }
    }
    for (size_t axis = 0; axis < c.made.size() && c.runs_on_parts; ++axis) {
      ASSERT_LE(c.made[axis].begin, c.wanted(axis).begin);
      ASSERT_GE(c.made[axis].end, c.wanted(axis).end);
    }
  }

  void expect_outside_is_idle(const Node& node, const RegionContext& c, const TensorView& whole) {
    std::vector<TensorView> changed = views_;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (!is_data_[i]) continue;
      changed[i] = make(views_[i].type, {views_[i].dims.begin(), views_[i].dims.end()});
      for_each(views_[i].dims, [&](const std::vector<int64_t>& at, int64_t k) {
        const float value = views_[i].as<float>()[k];
        changed[i].as<float>()[k] = contains(c.needs[i], at) ? value : value + 100 + number();
      });
    }
    const TensorView result = invoke(node, changed, arena_, dims_)[c.output_index()];
    const Region wanted(c.wanted().begin(), c.wanted().end());
    EXPECT_EQ(values_in(result, wanted), values_in(whole, wanted)) << "what is not needed was read";
  }

  void expect_parts_run(const Node& node, const RegionContext& c, const TensorView& whole) {
    std::vector<TensorView> parts = views_;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (is_data_[i]) parts[i] = cropped(views_[i], c.needs[i]);
    }
    std::vector<Edge*> edges = edges_;
    for (const NodeChanges::InputChange& change : c.changes.inputs) {
      if (parts.size() <= change.input) parts.resize(change.input + 1), edges.resize(change.input + 1);
      const bool is_list = change.kind == NodeChanges::InputChange::Kind::kIntegers;
      parts[change.input] = is_list ? list_view(change.values) : TensorView{};
      edges[change.input] = is_list ? graph_.add_edge("list") : nullptr;
    }
    const Node& smaller = add_node(edges, c.changes.changed_attributes(arena_, node), output_count_);
    const TensorView result = invoke(smaller, parts, arena_, dims_)[c.output_index()];
    std::vector<int64_t> sizes;
    for (const Interval& interval : c.made) sizes.push_back(interval.size());
    ASSERT_EQ(std::vector<int64_t>(result.dims.begin(), result.dims.end()), sizes);
    const std::vector<double> wanted = values_in(whole, c.made);
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(value_at(result, static_cast<int64_t>(i)), wanted[i], 1e-5);
  }

  TensorView cropped(const TensorView& view, const Region& part) {
    std::vector<int64_t> sizes;
    for (const Interval& interval : part) sizes.push_back(interval.size());
    TensorView result = make(view.type, sizes);
    int64_t next = 0;
    for_each(view.dims, [&](const std::vector<int64_t>& at, int64_t k) {
      if (contains(part, at)) result.as<float>()[next++] = view.as<float>()[k];
    });
    return result;
  }

  double share(const RegionContext& c) {
    double needed = 0, total = 0;
    for (size_t i = 0; i < views_.size(); ++i) {
      if (!is_data_[i]) continue;
      double part = 1;
      for (const Interval& interval : c.needs[i]) part *= static_cast<double>(interval.size());
      needed += part;
      total += static_cast<double>(views_[i].elements());
    }
    return needed / total;
  }

  Budget budget_;
  BumpArena arena_;
  DimPool dims_;
  Graph graph_;
  AttributeList attributes_;
  Random& random_;
  std::string op_, domain_;
  OpsetImport imports_[1];
  std::vector<TensorView> views_;
  std::vector<bool> is_data_;
  std::vector<Edge*> edges_;
  size_t output_count_ = 1;
};

}  // namespace plimsoll
