// One node, inferred by itself on symbolic dimensions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "memory/bump_arena.h"
#include "ops/invoke.h"
#include "ops/registry.h"

namespace plimsoll {

// A dimension in a test: a number, or the name of a symbol.
using TestDim = std::variant<int64_t, std::string>;

// SymbolicCase("Shape", 13).input(ElementType::kFloat, {"n", 3}).infer().values() == "[n, 3]"
class SymbolicCase {
 public:
  SymbolicCase(std::string op, int opset)
      : budget_("test", 0), arena_(budget_), pool_(arena_), graph_(arena_, pool_), op_(std::move(op)) {
    imports_[0] = {"", opset};
    graph_.opsets = imports_;
  }
  Dim dim(const TestDim& d) {
    return std::holds_alternative<int64_t>(d) ? Dim(std::get<int64_t>(d))
                                              : pool_.symbol(std::get<std::string>(d));
  }
  Dim symbol(const std::string& name) { return pool_.symbol(name); }
  std::vector<Dim> dims_of(const std::vector<TestDim>& list) {
    std::vector<Dim> result;
    for (const TestDim& d : list) result.push_back(dim(d));
    return result;
  }
  SymbolicCase& input(ElementType type, const std::vector<Dim>& dims) {
    Facts facts;
    facts.type = {ValueKind::kTensor, type, ElementType::kUndefined, true, arena_.copy(dims), nullptr};
    return input(facts);
  }
  SymbolicCase& input(ElementType type, const std::vector<TestDim>& dims) {
    return input(type, dims_of(dims));
  }
  // A list of int64 whose elements are known.
  SymbolicCase& list(const std::vector<Dim>& values) {
    input(ElementType::kInt64, std::vector<Dim>{Dim(static_cast<int64_t>(values.size()))});
    facts_.back().values = arena_.copy(values);
    return *this;
  }
  SymbolicCase& list(const std::vector<TestDim>& values) { return list(dims_of(values)); }
  SymbolicCase& scalar(const TestDim& value) {
    list(std::vector<Dim>{dim(value)});
    facts_.back().type.dims = {};
    return *this;
  }
  SymbolicCase& reals(const std::vector<float>& values) {
    auto* view = arena_.make<TensorView>();
    const std::vector<int64_t> dims = {static_cast<int64_t>(values.size())};
    view->dims = arena_.copy(dims);
    view->type = ElementType::kFloat;
    view->data = reinterpret_cast<std::byte*>(arena_.copy(values).data());
    return input(facts_of(*view, arena_));
  }
  SymbolicCase& unranked(ElementType type) {
    Facts facts;
    facts.type.type = type;
    return input(facts);
  }
  SymbolicCase& absent() {
    facts_.emplace_back();
    edges_.push_back(nullptr);
    return *this;
  }
  SymbolicCase& attr(std::string_view name, int64_t value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInt, a.i = value;
    attributes_.push_back(a);
    return *this;
  }
  SymbolicCase& attr(std::string_view name, const std::vector<int64_t>& values) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInts, a.ints = arena_.copy(values);
    attributes_.push_back(a);
    return *this;
  }
  SymbolicCase& attr(std::string_view name, const char* value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kString, a.s = value;
    attributes_.push_back(a);
    return *this;
  }
  SymbolicCase& outputs(size_t count) {
    output_count_ = count;
    return *this;
  }
  SymbolicCase& infer() {
    std::vector<Edge*> out;
    for (size_t i = 0; i < output_count_; ++i) out.push_back(graph_.add_edge("output" + std::to_string(i)));
    node_ = graph_.add_node("", op_, "node", edges_, out, attributes_);
    resolve(*node_, arena_);
    results_ = infer_node(*node_, facts_, arena_, pool_);
    return *this;
  }
  const Facts& facts(size_t i = 0) const { return results_.at(i); }
  std::string dims(size_t i = 0) const {
    return facts(i).type.ranked ? to_string(facts(i).type.dims) : "unranked";
  }
  std::string values(size_t i = 0) const { return facts(i).values ? to_string(*facts(i).values) : "unknown"; }
  // "view 0->0 @0" for every alias.
  std::string aliases() {
    AliasContext context(*node_, facts_, results_);
    if (node_->op->alias != nullptr) node_->op->alias(context);
    std::string text;
    for (const Alias& a : context.aliases) {
      const char* kinds[] = {"overwrite", "view", "piece"};
      text += fmt::format("{}{} {}->{} @{}", text.empty() ? "" : ", ", kinds[static_cast<int>(a.kind)],
                          a.input, a.output, a.offset_bytes.to_string());
    }
    return text;
  }

 private:
  SymbolicCase& input(const Facts& facts) {
    facts_.push_back(facts);
    edges_.push_back(graph_.add_edge("input" + std::to_string(edges_.size())));
    return *this;
  }

  Budget budget_;
  BumpArena arena_;
  DimPool pool_;
  Graph graph_;
  OpsetImport imports_[1];
  std::string op_;
  std::vector<Facts> facts_;
  std::vector<Edge*> edges_;
  std::vector<Attribute> attributes_;
  size_t output_count_ = 1;
  Node* node_ = nullptr;
  std::vector<Facts> results_;
};

}  // namespace plimsoll
