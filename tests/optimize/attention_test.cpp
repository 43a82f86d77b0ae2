// softmax(scale * Q K' + mask) V in the spellings of exporters becomes FusedAttention, and means the same.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "graph_case.h"

namespace plimsoll {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Sizes {
  int64_t batch = 2, heads = 3, queries = 7, keys = 5, head = 4, value_head = 4;
};

// Q, K and V of [batch, rows, heads, size] as inputs, transposed as exporters do.
class AttentionCase : public GraphCase {
 public:
  explicit AttentionCase(const Sizes& sizes = {}) : s(sizes) {
    q = transpose(input({s.batch, s.queries, s.heads, s.head}), {0, 2, 1, 3});
    k = transpose(input({s.batch, s.keys, s.heads, s.head}), {0, 2, 3, 1});
    v = transpose(input({s.batch, s.keys, s.heads, s.value_head}), {0, 2, 1, 3});
    scores = node("Mul", {node("MatMul", {q, k}), scalar(0.37f)});
  }
  Edge* softmax(Edge* x) { return node("Softmax", {x}, attrs().set("axis", int64_t{-1})); }
  void finish(Edge* probabilities) {
    output(transpose(node("MatMul", {probabilities, v}), {0, 2, 1, 3}));
    optimize_all();
  }
  Edge* flags(const std::vector<int64_t>& dims) { return node("Greater", {weights(dims), scalar(-0.5f)}); }
  void expect_fused() {
    EXPECT_EQ(fused("FusedAttention"), 1);
    EXPECT_EQ(count("Softmax") + count("MatMul") + fused("FusedMatMul") + count("Transpose"), 0);
  }

  Sizes s;
  Edge *q, *k, *v, *scores;
};

TEST(AttentionPass, OfEverySizeThatTilesLeaveOver) {
  const Sizes sizes[] = {{1, 1, 33, 40, 5, 3},   {2, 2, 31, 17, 16, 33}, {1, 2, 64, 1, 1, 1},
                         {1, 3, 70, 130, 32, 7}, {1, 9, 9, 33, 8, 8},    {1, 20, 1, 9, 4, 4}};
  for (const Sizes& size : sizes) {
    AttentionCase c(size);
    c.finish(c.softmax(c.scores));
    c.expect_fused();
  }
}

TEST(AttentionPass, WithAMaskThatIsAdded) {
  const std::vector<std::vector<int64_t>> masks = {{5},          {1},          {7, 5},    {7, 1},
                                                   {2, 1, 1, 5}, {2, 3, 7, 5}, {3, 1, 1}, {}};
  for (const auto& dims : masks) {
    AttentionCase c;
    Edge* mask = c.weights(dims);
    c.finish(c.softmax(
        c.node("Add", dims.size() % 2 == 0 ? std::vector{c.scores, mask} : std::vector{mask, c.scores})));
    c.expect_fused();
  }
}

TEST(AttentionPass, WithScoresThatAreFilled) {
  for (const bool where : {false, true}) {
    for (const float fill : {-1e9f, 0.25f}) {
      AttentionCase c;
      Edge *flags = c.flags({7, 5}), *number = c.scalar(fill);
      Edge* filled =
          where ? c.node("Where", {flags, number, c.scores}) : c.node("Where", {flags, c.scores, number});
      c.finish(c.softmax(c.node("Add", {filled, c.weights({2, 1, 1, 5})})));
      c.expect_fused();
    }
  }
}

// A query that sees nothing: its probabilities are not numbers, and become 0 where the model says so.
TEST(AttentionPass, AQueryThatSeesNothing) {
  AttentionCase c;
  std::vector<float> mask(7 * 5, 0.0f);
  std::fill_n(mask.begin() + 10, 5, -kInfinity);
  Edge* p = c.softmax(c.node("Add", {c.scores, c.constant<float>({7, 5}, mask)}));
  c.finish(c.node("Where", {c.node("IsNaN", {p}), c.scalar(0.0f), p}));
  c.expect_fused();
  EXPECT_EQ(c.count("IsNaN") + c.count("Where"), 0);
}

// [heads, rows, size], as torch's MultiheadAttention has it, sizes unknown.
TEST(AttentionPass, OfThreeDimensions) {
  GraphCase c;
  const auto rows = [&](const std::vector<int64_t>& perm) { return c.transpose(c.input({-3, 12, 8}), perm); };
  Edge *q = rows({1, 0, 2}), *k = rows({1, 2, 0}), *v = rows({1, 0, 2});
  Edge* p = c.node("Softmax", {c.node("MatMul", {c.node("Mul", {q, c.scalar(0.3f)}), k})},
                   c.attrs().set("axis", int64_t{2}));
  c.output(c.transpose(c.node("MatMul", {p, v}), {1, 0, 2}));
  c.optimize_all();
  EXPECT_EQ(c.fused("FusedAttention"), 1);
}

TEST(AttentionPass, NotWhereOthersReadTheScores) {
  AttentionCase c;
  Edge* p = c.softmax(c.scores);
  c.output(p);
  c.finish(p);
  EXPECT_EQ(c.fused("FusedAttention"), 0);
}

TEST(AttentionPass, NotOverAnotherAxis) {
  AttentionCase c;
  c.finish(c.node("Softmax", {c.scores}, c.attrs().set("axis", int64_t{2})));
  EXPECT_EQ(c.fused("FusedAttention"), 0);
}

TEST(AttentionPass, NotWhereAMaskMakesMoreScores) {
  AttentionCase c({1, 3, 7, 5, 4, 4});
  Edge* p = c.softmax(c.node("Add", {c.scores, c.weights({2, 1, 7, 5})}));
  c.finish(p);
  EXPECT_EQ(c.fused("FusedAttention"), 0);
}

TEST(AttentionPass, NotForScoresThatTakeLessThanTheValues) {
  AttentionCase c({1, 1, 2, 5, 4, 16});
  c.finish(c.softmax(c.scores));
  EXPECT_EQ(c.fused("FusedAttention"), 0);
}

}  // namespace
}  // namespace plimsoll
