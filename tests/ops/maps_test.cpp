// The operators of ai.onnx.ml on maps, by themselves; through the command they are in tests/reference/ml.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/infer.h"
#include "ops/registry.h"

namespace plimsoll {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

// Values in an arena that nobody gives back.
class ArenaRun : public ValueRun, public TextMemory {
 public:
  ArenaRun(const Node& node, BumpArena& arena, std::vector<TensorView> inputs)
      : node_(node), arena_(arena), inputs_(std::move(inputs)) {}
  const Node& node() const override { return node_; }
  TensorView input(size_t i) const override { return inputs_[i]; }
  bool has_output(size_t) const override { return true; }
  TensorView allocate(ElementType type, std::span<const int64_t> dims) override {
    TensorView view{nullptr, type, false, arena_.copy(dims)};
    view.data = static_cast<std::byte*>(arena_.allocate(static_cast<size_t>(view.bytes()) + 1, 64));
    return view;
  }
  TensorView allocate_list(ValueKind kind, ElementType type, int64_t count) override {
    TensorView list{nullptr, type, false, arena_.copy(std::vector<int64_t>{count})};
    list.data = reinterpret_cast<std::byte*>(arena_.array<TensorView>(static_cast<size_t>(count) + 1).data());
    list.kind = kind;
    return list;
  }
  TensorView share(const TensorView& value) override { return value; }
  void free(TensorView&) noexcept override {}
  TextMemory& text() override { return *this; }
  char* allocate(size_t bytes) override { return static_cast<char*>(arena_.allocate(bytes + 1, 1)); }
  bool is_planned(size_t) const override { return false; }
  TensorView make_output(size_t, ElementType type, std::span<const int64_t> dims) override {
    return output = allocate(type, dims);
  }
  void give_output(size_t, TensorView value) override { output = value; }
  int threads() const override { return 1; }
  void check_stop() const override {}

  TensorView output;

 private:
  const Node& node_;
  BumpArena& arena_;
  std::vector<TensorView> inputs_;
};

class Maps : public testing::Test {
 protected:
  template <typename T>
  TensorView tensor(const std::vector<int64_t>& dims, const std::vector<T>& data) {
    return {reinterpret_cast<std::byte*>(arena_.copy(data).data()), element_type_of<T>(), false,
            arena_.copy(dims)};
  }
  template <typename K, typename V>
  TensorView map(const std::vector<K>& keys, const std::vector<V>& values) {
    const auto count = static_cast<int64_t>(keys.size());
    TensorView result{nullptr, element_type_of<V>(), false, arena_.copy(std::vector<int64_t>{2})};
    const std::span<TensorView> items = arena_.array<TensorView>(2);
    items[0] = tensor<K>({count}, keys);
    items[1] = tensor<V>({count}, values);
    result.kind = ValueKind::kMap;
    result.data = reinterpret_cast<std::byte*>(items.data());
    return result;
  }
  static Attribute texts(std::string_view name, std::span<const std::string_view> values) {
    Attribute a;
    a.name = name, a.type = AttributeType::kStrings, a.strings = values;
    return a;
  }
  static Attribute text(std::string_view name, std::string_view value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kString, a.s = value;
    return a;
  }
  static Attribute integer(std::string_view name, int64_t value) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInt, a.i = value;
    return a;
  }
  Attribute integers(std::string_view name, const std::vector<int64_t>& values) {
    Attribute a;
    a.name = name, a.type = AttributeType::kInts, a.ints = arena_.copy(values);
    return a;
  }
  TypeInfo type_of(const TensorView& view) {
    TypeInfo type;
    type.type = view.type;
    if (view.kind != ValueKind::kMap) return type;
    TypeInfo* element = arena_.make<TypeInfo>(type);
    type.kind = ValueKind::kMap;
    type.type = ElementType::kUndefined;
    type.key = view.items()[0].type;
    type.element = element;
    return type;
  }
  // Infers and runs a node; `inferred` is what it said of the output.
  TensorView run(std::string_view op, const TensorView& input, std::vector<Attribute> attributes) {
    imports_[0] = {kMl, 1};
    graph_.opsets = imports_;
    Edge* in = graph_.add_edge("in");
    Edge* out = graph_.add_edge("out");
    Node* node =
        graph_.add_node(kMl, op, "node", std::vector<Edge*>{in}, std::vector<Edge*>{out}, attributes);
    resolve(*node, arena_);
    Facts facts;
    facts.type = type_of(input);
    inferred = to_string(infer_node(*node, {&facts, 1}, arena_, dims_)[0].type);
    ArenaRun value_run(*node, arena_, {input});
    node->op->run_values(value_run);
    return value_run.output;
  }
  std::string refused(std::string_view op, const TensorView& input, std::vector<Attribute> attributes) {
    try {
      run(op, input, std::move(attributes));
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  }

  Budget budget_{"test", 0};
  BumpArena arena_{budget_};
  DimPool dims_{arena_};
  Graph graph_{arena_, dims_};
  OpsetImport imports_[1];
  std::string inferred;
};

TEST_F(Maps, ZipMapMakesOneForEveryRow) {
  constexpr std::string_view kNames[] = {"yes", "no"};
  const TensorView made =
      run("ZipMap", tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}), {texts("classlabels_strings", kNames)});
  EXPECT_EQ(inferred, "sequence(map(string, float[2]))");
  ASSERT_EQ(made.kind, ValueKind::kSequence);
  ASSERT_EQ(made.items().size(), 3u);
  for (size_t row = 0; row < 3; ++row) {
    const TensorView& map = made.items()[row];
    ASSERT_EQ(map.kind, ValueKind::kMap);
    EXPECT_EQ(map.items()[0].as<StringRef>()[1].view(), "no");
    EXPECT_EQ(map.items()[1].as<float>()[0], static_cast<float>(2 * row + 1));
    EXPECT_EQ(map.items()[1].as<float>()[1], static_cast<float>(2 * row + 2));
  }
  EXPECT_EQ(run("ZipMap", tensor<float>({0, 2}, {}), {integers("classlabels_int64s", {4, 5})}).items().size(),
            0u);
  EXPECT_EQ(
      run("ZipMap", tensor<float>({2}, {1, 2}), {integers("classlabels_int64s", {4, 5})}).items().size(), 1u);
  EXPECT_THAT(refused("ZipMap", tensor<float>({1, 3}, {1, 2, 3}), {integers("classlabels_int64s", {4, 5})}),
              testing::HasSubstr("expected 2 columns as there are labels, found 3"));
  EXPECT_THAT(refused("ZipMap", tensor<float>({1, 3}, {1, 2, 3}), {}), testing::HasSubstr("expected labels"));
}

TEST_F(Maps, DictVectorizerPutsValuesWhereTheVocabularyHasTheirKeys) {
  constexpr std::string_view kWords[] = {"a", "c", "b", "a"};
  const TensorView input = map<StringRef, float>({{"a", 1}, {"c", 1}, {"q", 1}}, {4, 8, 9});
  const TensorView made = run("DictVectorizer", input, {texts("string_vocabulary", kWords)});
  EXPECT_EQ(inferred, "float[1, 4]");
  EXPECT_EQ(std::vector<float>(made.as<float>(), made.as<float>() + 4), (std::vector<float>{4, 8, 0, 4}));
  const TensorView numbered = run("DictVectorizer", map<int64_t, double>({7, -1}, {2, 3}),
                                  {integers("int64_vocabulary", {-1, 0, 7})});
  EXPECT_EQ(std::vector<double>(numbered.as<double>(), numbered.as<double>() + 3),
            (std::vector<double>{3, 0, 2}));
  EXPECT_THAT(refused("DictVectorizer", input, {integers("int64_vocabulary", {1})}),
              testing::HasSubstr("expected a map"));
  EXPECT_THAT(refused("DictVectorizer", tensor<float>({1}, {1}), {integers("int64_vocabulary", {1})}),
              testing::HasSubstr("expected a map"));
}

TEST_F(Maps, CastMapOrdersByKeyAndChangesTheType) {
  const TensorView input = map<int64_t, float>({5, 1, 3}, {50, 10.75f, 30});
  const TensorView dense = run("CastMap", input, {text("cast_to", "TO_INT64")});
  EXPECT_EQ(dense.dims[1], 3);
  EXPECT_EQ(std::vector<int64_t>(dense.as<int64_t>(), dense.as<int64_t>() + 3),
            (std::vector<int64_t>{10, 30, 50}));
  const TensorView sparse = run("CastMap", input, {text("map_form", "SPARSE"), integer("max_map", 6)});
  EXPECT_EQ(inferred, "float[1, 6]");
  EXPECT_EQ(std::vector<float>(sparse.as<float>(), sparse.as<float>() + 6),
            (std::vector<float>{0, 10.75f, 0, 30, 0, 50}));
  const TensorView words =
      run("CastMap", map<int64_t, float>({1}, {2.5f}),
          {text("cast_to", "TO_STRING"), text("map_form", "SPARSE"), integer("max_map", 2)});
  EXPECT_EQ(words.as<StringRef>()[0].view(), "0.f");
  EXPECT_EQ(words.as<StringRef>()[1].view(), "2.5");
  EXPECT_THAT(refused("CastMap", input, {text("map_form", "SPARSE"), integer("max_map", 5)}),
              testing::HasSubstr("key 5 is outside [0, 5)"));
  EXPECT_THAT(refused("CastMap", map<int64_t, StringRef>({1}, {{"x", 1}}), {}),
              testing::HasSubstr("expected a number, found \"x\""));
}

}  // namespace
}  // namespace plimsoll
