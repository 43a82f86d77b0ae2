#include "onnx/reader.h"

#include <gtest/gtest.h>

#include <deque>

#include "onnx/describe.h"
#include "onnx/loaded.h"
#include "onnx/tensor_file.h"
#include "onnx/tiny_model.h"
#include "onnx/writer.h"

namespace plimsoll {
namespace {
using namespace tiny;

TEST(Reader, ReadsSomethingOfEverything) {
  Loaded m;
  m.read_bytes(rich_model().bytes);
  Graph& g = m.graph;
  ASSERT_EQ(g.nodes.size(), 5u);
  EXPECT_EQ(g.nodes[0]->op_type, "Relu");  // the If captures its result
  EXPECT_EQ(g.nodes[1]->op_type, "If");
  EXPECT_EQ(g.nodes[4]->inputs[1], nullptr);
  EXPECT_EQ(g.nodes[3]->name, "twice_6");
  Graph* then_body = g.nodes[1]->attribute("then_branch")->graph;
  EXPECT_EQ(then_body->outer(), &g);
  EXPECT_EQ(then_body->nodes[0]->inputs[0], g.inputs[0]);
  EXPECT_EQ(g.metadata[0].value, "value");
  ASSERT_EQ(g.functions.size(), 1u);
  EXPECT_EQ(g.functions[0].body->nodes[0]->opset, 16);
  EXPECT_EQ(g.functions[0].body->nodes[0]->attribute("alpha")->reference, "alpha");
  // w is an initializer and an input: a default.
  ASSERT_EQ(g.inputs.size(), 3u);
  EXPECT_NE(g.inputs[2]->data, nullptr);
  EXPECT_EQ(g.initializers[0], g.inputs[2]);
  const TensorData& words = *g.initializers[1]->data;
  EXPECT_EQ(reinterpret_cast<const StringRef*>(words.bytes.data())[1].view(), "two");
}

TEST(Reader, RichModelSurvivesARoundTrip) {
  Loaded first, second;
  first.read_bytes(rich_model().bytes);
  second.read_bytes(write_model_bytes(first.graph));
  EXPECT_EQ(describe(first.graph), describe(second.graph));
}

TEST(Reader, NamesOfDimensions) {
  Loaded m;
  m.read_bytes(
      model(graph({},
                  {value("x", {"n", -1, "?", "None", "", 0, "-1", "floor(n/2)"}), value("y", {"n", "x.d1"})},
                  {value("x")}))
          .bytes);
  const auto x = m.graph.inputs[0]->facts.type.dims, y = m.graph.inputs[1]->facts.type.dims;
  EXPECT_EQ(x[0].to_string(), "n");
  EXPECT_EQ(x[0], y[0]);
  EXPECT_EQ(x[1].to_string(), "x.d1");
  for (size_t i = 1; i < 5; ++i) {
    for (size_t k = 1; k < i; ++k) EXPECT_FALSE(x[i] == x[k]) << i << " " << k;
  }
  EXPECT_EQ(x[5], Dim(0));
  EXPECT_EQ(x[7].to_string(), "floor(n/2)");
  EXPECT_FALSE(y[1] == x[1]);  // a name that the file gives, beside one that we made
}

TEST(Reader, TypesWithoutShapeAndNestedTypes) {
  const Proto unranked = Proto().message(1, Proto().number(1, 1));
  const Proto sequence = Proto().message(4, Proto().message(1, tensor_type({2}, ElementType::kString)));
  const Proto optional = Proto().message(9, Proto().message(1, sequence));
  const Proto map = Proto().message(5, Proto().number(1, 7).message(2, tiny::tensor_type({})));
  Loaded m;
  m.read_bytes(
      model(graph({}, {value("u", unranked), value("o", optional), value("m", map)}, {value("u")})).bytes);
  EXPECT_FALSE(m.graph.inputs[0]->facts.type.ranked);
  EXPECT_EQ(to_string(m.graph.inputs[1]->facts.type), "optional(sequence(string[2]))");
  EXPECT_EQ(to_string(m.graph.inputs[2]->facts.type), "map(int64, float[])");
}

TEST(Reader, DomainAndOpsets) {
  const auto with = [](int64_t version, const std::string& domain) {
    Loaded m;
    m.read_bytes(Proto()
                     .number(1, 8)
                     .message(8, opset(domain, version))
                     .message(8, opset("never.used", 99))
                     .message(7, graph({node("Relu", {"x"}, {"y"})}, {value("x")}, {value("y")}))
                     .bytes);
    return m.graph.nodes[0]->opset;
  };
  EXPECT_EQ(with(26, "ai.onnx"), 26);
  EXPECT_EQ(with(1, ""), 1);
  EXPECT_EQ(with(27, ""), 27);
  EXPECT_EQ(with(7, "else"), onnx::kNewestOpset) << "with a warning, as ONNX Runtime";
}

template <typename T>
std::vector<T> values_of(const TensorData& t) {
  std::vector<T> out(t.bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), t.bytes.data(), t.bytes.size());
  return out;
}

// Files of torch 1.5 have several Constants of one name, other files two imports of a domain or two
// initializers: ONNX Runtime takes the last.
TEST(Reader, TheLastOfSeveralCounts) {
  const auto constant = [](float number) {
    return node("Constant", {}, {"c"},
                {attribute("value", AttributeType::kTensor)
                     .message(attribute_field::kTensor, floats("", {number, number}))});
  };
  const Proto file = model(graph({constant(1), node("Add", {"c", "w"}, {"y"}), constant(2), constant(3)},
                                 {value("w")}, {value("y")}, {floats("w", {4, 4}), floats("w", {5, 5})}))
                         .message(model_field::kOpsetImport, opset("", 13));
  Loaded m;
  m.read_bytes(file.bytes);
  ASSERT_EQ(m.graph.nodes.size(), 2u);
  const Node& only = *m.graph.nodes[0];
  EXPECT_EQ(only.opset, 13);
  EXPECT_EQ(m.graph.opset(""), 13);
  EXPECT_EQ(values_of<float>(*only.attribute("value")->tensor), (std::vector<float>{3, 3}));
  EXPECT_EQ(m.graph.nodes[1]->inputs[0], only.outputs[0]);
  ASSERT_EQ(m.graph.initializers.size(), 1u);
  EXPECT_EQ(values_of<float>(*m.graph.initializers[0]->data), (std::vector<float>{5, 5}));
  EXPECT_EQ(m.graph.overridable[0].data, m.graph.initializers[0]->data);
  EXPECT_EQ(m.graph.warnings.size(), 3u);  // one about each
  Loaded strict;
  LoadOptions options;
  options.strict = true;
  EXPECT_THROW(strict.read_bytes(file.bytes, options), Error);
}

class TypedData : public testing::Test {
 protected:
  TensorData read(const Proto& p) {
    kept_.push_back(p.bytes);
    return read_tensor(std::as_bytes(std::span(kept_.back())), arena_);
  }
  Budget budget_{"test", 0};
  BumpArena arena_{budget_};
  std::deque<std::string> kept_;
};

TEST_F(TypedData, Int32DataCarriesNarrowTypes) {
  const auto int32 = [&](ElementType type, const std::vector<int64_t>& values) {
    const auto n = static_cast<int64_t>(values.size());
    return read(tensor_header("t", type, {n}).packed(tensor_field::kInt32Data, values));
  };
  EXPECT_EQ(values_of<int8_t>(int32(ElementType::kInt8, {-128, 5, 127})),
            (std::vector<int8_t>{-128, 5, 127}));
  EXPECT_EQ(values_of<uint8_t>(int32(ElementType::kUint8, {255, 0})), (std::vector<uint8_t>{255, 0}));
  EXPECT_EQ(values_of<int16_t>(int32(ElementType::kInt16, {-32768})), (std::vector<int16_t>{-32768}));
  EXPECT_EQ(values_of<uint16_t>(int32(ElementType::kFloat16, {0x3c00})), (std::vector<uint16_t>{0x3c00}));
  EXPECT_EQ(values_of<uint16_t>(int32(ElementType::kBFloat16, {0x3f80})), (std::vector<uint16_t>{0x3f80}));
  EXPECT_EQ(values_of<uint8_t>(int32(ElementType::kFloat8E4M3FN, {0x7f})), (std::vector<uint8_t>{0x7f}));
  EXPECT_EQ(values_of<uint8_t>(int32(ElementType::kBool, {0, 2, -1})), (std::vector<uint8_t>{0, 1, 1}));
  EXPECT_EQ(values_of<int32_t>(int32(ElementType::kInt32, {-7})), (std::vector<int32_t>{-7}));
}

TEST_F(TypedData, FourBitElementsShareBytes) {
  const TensorData t =
      read(tensor_header("t", ElementType::kInt4, {3}).packed(tensor_field::kInt32Data, {0x21, 0x03}));
  EXPECT_EQ(values_of<uint8_t>(t), (std::vector<uint8_t>{0x21, 0x03}));
  EXPECT_THROW(read(tensor_header("t", ElementType::kUint4, {3}).packed(tensor_field::kInt32Data, {1, 2, 3})),
               Error);
}

TEST_F(TypedData, TwoBitElementsShareBytes) {
  for (ElementType type : {ElementType::kInt2, ElementType::kUint2}) {
    const TensorData t = read(tensor_header("t", type, {5}).packed(tensor_field::kInt32Data, {0xe4, 0x01}));
    EXPECT_EQ(values_of<uint8_t>(t), (std::vector<uint8_t>{0xe4, 0x01}));
    EXPECT_THROW(read(tensor_header("t", type, {5}).packed(tensor_field::kInt32Data, {1})), Error);
  }
  const int beyond = static_cast<int>(ElementType::kInt2) + 1;
  EXPECT_THROW(
      read(tensor_header("t", static_cast<ElementType>(beyond), {1}).packed(tensor_field::kInt32Data, {1})),
      Error);
}

TEST_F(TypedData, WideTypesPackedAndNot) {
  const auto header = [](ElementType type, int64_t n) { return tensor_header("t", type, {n}); };
  EXPECT_EQ(values_of<int64_t>(read(header(ElementType::kInt64, 2).packed(7, {-1, INT64_MAX}))),
            (std::vector<int64_t>{-1, INT64_MAX}));
  EXPECT_EQ(values_of<int64_t>(read(header(ElementType::kInt64, 3).number(7, 1).packed(7, {2, 3}))),
            (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(values_of<uint32_t>(read(header(ElementType::kUint32, 1).packed(11, {0xffffffff}))),
            (std::vector<uint32_t>{0xffffffff}));
  EXPECT_EQ(values_of<float>(read(header(ElementType::kFloat, 2).real(4, 1.5f).real(4, -2))),
            (std::vector<float>{1.5f, -2}));
  const float packed[] = {1, 2, 3, 4};
  const std::string bytes(reinterpret_cast<const char*>(packed), sizeof packed);
  EXPECT_EQ(values_of<float>(read(header(ElementType::kComplex64, 2).text(4, bytes))),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(read(header(ElementType::kFloat, 0)).bytes.empty());
}

TEST(Reader, SparseInitializersBecomeDense) {
  const Proto sparse = Proto()
                           .message(1, floats("s", {5, 7}))
                           .message(2, raw_tensor<int64_t>("", ElementType::kInt64, {2, 2}, {0, 1, 1, 2}))
                           .numbers(3, {2, 3});
  Loaded m;
  m.read_bytes(model(graph({}, {}, {value("s")}).message(graph_field::kSparseInitializer, sparse)).bytes);
  EXPECT_EQ(values_of<float>(*m.graph.initializers[0]->data), (std::vector<float>{0, 5, 0, 0, 0, 7}));
}

TEST(Writer, RepeatedAndForeignOutputsGetAnIdentity) {
  Loaded first, second;
  const Proto inner = graph({}, {}, {value("x")});
  first.read_bytes(
      model(graph({node("If", {"f"}, {"y"}, {body("then_branch", inner), body("else_branch", inner)})},
                  {value("x"), value("f", tensor_type({}, ElementType::kBool))}, {value("y"), value("y")}))
          .bytes);
  second.read_bytes(write_model_bytes(first.graph));
  EXPECT_EQ(second.graph.nodes.size(), 2u);
  EXPECT_EQ(second.graph.nodes[1]->op_type, "Identity");
  const Graph* then_body = second.graph.nodes[0]->attribute("then_branch")->graph;
  EXPECT_EQ(then_body->nodes[0]->inputs[0], second.graph.inputs[0]);
}

TEST(Writer, AnIdentityBringsItsDomain) {
  Loaded first, second;
  first.read_bytes(
      Proto()
          .number(1, 8)
          .message(8, opset("other", 1))
          .message(7, graph({node("Op", {"x"}, {"y"}, {}, "other")}, {value("x")}, {value("y"), value("y")}))
          .bytes);
  second.read_bytes(write_model_bytes(first.graph));
  EXPECT_EQ(second.graph.nodes[1]->op_type, "Identity");
  EXPECT_EQ(second.graph.nodes[1]->opset, 13);
}

TEST(Writer, RenamesOnlyWhatClashesAndImportsDomains) {
  Loaded first, second;
  first.read_bytes(model(graph({node("Relu", {"x"}, {"y"})}, {value("x")}, {value("y")})).bytes);
  Graph& g = first.graph;
  Edge* twin = g.add_edge("x");
  Edge* in[] = {g.inputs[0]};
  Edge* out[] = {twin};
  g.add_node("ai.plimsoll", "Fused", "", in, out);
  g.nodes[0]->inputs[0] = twin;
  g.sort();
  second.read_bytes(write_model_bytes(g));
  EXPECT_EQ(second.graph.opset("ai.plimsoll"), 1);
  EXPECT_EQ(second.graph.nodes[0]->op_type, "Fused");
  EXPECT_EQ(second.graph.nodes[1]->inputs[0], second.graph.nodes[0]->outputs[0]);
  EXPECT_EQ(second.graph.inputs[0]->name, "x");
}

}  // namespace
}  // namespace plimsoll
