// Recurrent operators, attention and Einsum against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

TEST(Gradients, Lstm) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    const int64_t d = std::string(direction) == "bidirectional" ? 2 : 1;
    GradientCase("LSTM", 14)
        .input({4, 2, 3})
        .input({d, 20, 3}, -1, 1)
        .input({d, 20, 5}, -1, 1)
        .input({d, 40}, -1, 1)
        .absent()
        .input({d, 2, 5}, -1, 1)
        .input({d, 2, 5}, -1, 1)
        .attr("hidden_size", int64_t{5})
        .attr("direction", direction)
        .outputs(3)
        .check();
  }
  GradientCase("LSTM", 14)
      .input({4, 2, 3})
      .symbol(1, "n")
      .input({1, 20, 3}, -1, 1)
      .input({1, 20, 5}, -1, 1)
      .attr("hidden_size", int64_t{5})
      .check();
}

TEST(Gradients, Gru) {
  for (int64_t before : {0, 1}) {
    for (const char* direction : {"forward", "bidirectional"}) {
      const int64_t d = std::string(direction) == "bidirectional" ? 2 : 1;
      GradientCase("GRU", 14)
          .input({4, 2, 3})
          .input({d, 15, 3}, -1, 1)
          .input({d, 15, 5}, -1, 1)
          .input({d, 30}, -1, 1)
          .absent()
          .input({d, 2, 5}, -1, 1)
          .attr("hidden_size", int64_t{5})
          .attr("linear_before_reset", before)
          .attr("direction", direction)
          .outputs(2)
          .check();
    }
  }
}

TEST(Gradients, Rnn) {
  GradientCase("RNN", 14)
      .input({4, 2, 3})
      .input({1, 5, 3}, -1, 1)
      .input({1, 5, 5}, -1, 1)
      .input({1, 10}, -1, 1)
      .attr("hidden_size", int64_t{5})
      .outputs(2)
      .check();
}

TEST(Gradients, Attention) {
  GradientCase("Attention").input({2, 3, 4, 5}).input({2, 3, 6, 5}).input({2, 3, 6, 7}).check();
  GradientCase("Attention")
      .input({2, 3, 4, 5})
      .input({2, 3, 4, 5})
      .input({2, 3, 4, 7})
      .attr("is_causal", int64_t{1})
      .check();
  GradientCase("Attention")
      .input({2, 4, 6})
      .input({2, 5, 6})
      .input({2, 5, 4})
      .input({4, 5})
      .attr("q_num_heads", int64_t{2})
      .attr("kv_num_heads", int64_t{2})
      .attr("scale", 0.7f)
      .check();
}

TEST(Gradients, Einsum) {
  GradientCase("Einsum").input({2, 3}).input({3, 4}).attr("equation", "ab,bc->ac").check();
  GradientCase("Einsum").input({2, 3, 4}).input({2, 5, 4}).attr("equation", "bij, bkj -> bik").check();
  GradientCase("Einsum").input({3, 4}).input({4, 5}).input({5}).attr("equation", "ij,jk,k").check();
  GradientCase("Einsum").input({3, 4}).attr("equation", "ij->ji").check();
  GradientCase("Einsum").input({3, 4}).attr("equation", "ij->i").expect_refused("letters of one operand");
}

}  // namespace
}  // namespace plimsoll
