// Shape arithmetic: integer elements as expressions in symbols.
#include "ops/op_case.h"

namespace plimsoll {
namespace {

// A node on 1-D int64 inputs whose elements are known.
class Arithmetic {
 public:
  Arithmetic() : budget_("test", 0), arena_(budget_), pool_(arena_), graph_(arena_, pool_) {
    graph_.opsets = imports_;
  }
  Dim symbol(const char* name) { return pool_.symbol(name); }
  std::vector<std::string> values(const char* op, const std::vector<std::vector<Dim>>& inputs,
                                  ElementType type = ElementType::kInt64) {
    std::vector<Edge*> in, out = {graph_.add_edge("y")};
    std::vector<Facts> facts;
    for (const std::vector<Dim>& elements : inputs) {
      in.push_back(graph_.add_edge("x"));
      Facts f;
      const bool condition = std::string_view(op) == "Where" && in.size() == 1;
      const Dim count = static_cast<int64_t>(elements.size());
      f.type = {ValueKind::kTensor,
                condition ? ElementType::kBool : type,
                ElementType::kUndefined,
                true,
                arena_.copy(std::vector<Dim>{count}),
                nullptr};
      f.values = arena_.copy(elements);
      facts.push_back(f);
    }
    Node* node = graph_.add_node("", op, "node", in, out);
    resolve(*node, arena_);
    const std::vector<Facts> outputs = infer_node(*node, facts, arena_, pool_);
    std::vector<std::string> result;
    if (!outputs[0].values) return {"unknown"};
    for (Dim d : *outputs[0].values) result.push_back(d.to_string());
    return result;
  }

 private:
  Budget budget_;
  BumpArena arena_;
  DimPool pool_;
  Graph graph_;
  OpsetImport imports_[1] = {{"", 18}};
};

using Texts = std::vector<std::string>;

TEST(Propagation, ArithmeticOnSizes) {
  Arithmetic a;
  const Dim n = a.symbol("n"), m = a.symbol("m");
  EXPECT_EQ(a.values("Add", {{n, 2}, {1}}), (Texts{(n + 1).to_string(), "3"}));
  EXPECT_EQ(a.values("Mul", {{n}, {m}}), (Texts{(n * m).to_string()}));
  EXPECT_EQ(a.values("Div", {{n * 4}, {2}}), (Texts{(n * 2).to_string()}));
  EXPECT_EQ(a.values("Div", {{-7, 7}, {2, -2}}), (Texts{"-3", "-3"}));
  EXPECT_EQ(a.values("Div", {{n}, {0}}), Texts{"unknown"});
  EXPECT_EQ(a.values("Mod", {{n * 4}, {4}}), Texts{"0"});
  EXPECT_EQ(a.values("ReduceProd", {{n, m, 2}}), (Texts{(n * m * 2).to_string()}));
  EXPECT_EQ(a.values("Max", {{n}, {n}}), Texts{n.to_string()});
}

TEST(Propagation, OverflowIsLeftToTheRun) {
  Arithmetic a;
  const int64_t large = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(a.values("Mul", {{large}, {large}}), Texts{"unknown"});
  EXPECT_EQ(a.values("ReduceProd", {{large, large}}), Texts{"unknown"});
  EXPECT_EQ(a.values("Add", {{2147483647}, {1}}, ElementType::kInt32), Texts{"unknown"});
  EXPECT_EQ(a.values("Div", {{std::numeric_limits<int64_t>::min()}, {-1}}), Texts{"unknown"});
}

TEST(Propagation, EqualAndWhere) {
  Arithmetic a;
  const Dim n = a.symbol("n"), m = a.symbol("m");
  EXPECT_EQ(a.values("Equal", {{n, n, n, 3}, {-1, n, -1, 3}}), (Texts{"0", "1", "0", "1"}));
  EXPECT_EQ(a.values("Equal", {{n}, {m}}), Texts{"unknown"});
  EXPECT_EQ(a.values("Equal", {{n}, {0}}), Texts{"unknown"});  // a size may be 0
  EXPECT_EQ(a.values("Where", {{1, 0}, {n}, {m, 7}}), (Texts{n.to_string(), "7"}));
}

}  // namespace
}  // namespace plimsoll
