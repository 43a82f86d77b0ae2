// Recurrent operators, attention and Einsum against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

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
  GradientCase("Einsum").input({3, 4}).attr("equation", "ij->i").check();
  GradientCase("Einsum").input({3, 4, 2}).input({4}).attr("equation", "ijk,j->i").check();
  GradientCase("Einsum").input({2, 3, 4}).input({4, 5}).attr("equation", "...ij,jk->...ik").check();
  GradientCase("Einsum").input({2, 1, 3, 4}).input({5, 4, 2}).attr("equation", "...ij,...jk").check();
  GradientCase("Einsum").input({2, 3}).input({2, 3}).attr("equation", "i...,i...->...").check();
  GradientCase("Einsum").input({3, 3}).attr("equation", "ii->i").expect_refused("letters twice");
}

TEST(Gradients, AttentionWithAPastGroupsAndACap) {
  GradientCase("Attention").input({2, 4, 3, 5}).input({2, 2, 6, 5}).input({2, 2, 6, 7}).check();
  GradientCase("Attention")
      .input({2, 3, 8})
      .input({2, 5, 4})
      .input({2, 5, 6})
      .input({3, 5})
      .attr("q_num_heads", int64_t{4})
      .attr("kv_num_heads", int64_t{2})
      .attr("softcap", 1.5f)
      .check();
  for (const int64_t causal : {0, 1}) {
    GradientCase("Attention")
        .input({2, 4, 3, 5})
        .input({2, 2, 3, 5})
        .input({2, 2, 3, 7})
        .absent()
        .input({2, 2, 4, 5})
        .input({2, 2, 4, 7})
        .attr("is_causal", causal)
        .outputs(3)
        .check();
    GradientCase("Attention", 24)
        .input({2, 2, 3, 5})
        .input({2, 2, 6, 5})
        .input({2, 2, 6, 4})
        .absent()
        .absent()
        .absent()
        .fixed<int64_t>({2}, {5, 4})
        .attr("is_causal", causal)
        .check();
  }
  GradientCase("Attention", 25)
      .input({1, 2, 5, 3})
      .input({1, 2, 5, 3})
      .input({1, 2, 5, 4})
      .attr("left_window_size", int64_t{1})
      .attr("right_window_size", int64_t{2})
      .check();
}

// Three sequences of their own lengths; `more` adds inputs and attributes and checks.
void recurrent(const char* op, int64_t gates, const char* direction, bool batch_first,
               const std::function<void(GradientCase&)>& more) {
  SCOPED_TRACE(fmt::format("{} {} {}", op, direction, batch_first));
  const int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
  const int64_t steps = 4, batch = 3, hidden = 2;
  GradientCase c(op, 14);
  c.attr("direction", direction).attr("hidden_size", hidden).attr("layout", int64_t{batch_first});
  c.input(batch_first ? Ints{batch, steps, 3} : Ints{steps, batch, 3}, -1, 1);
  c.input({directions, gates * hidden, 3}, -1, 1);
  c.input({directions, gates * hidden, hidden}, -1, 1);
  c.input({directions, 2 * gates * hidden}, -1, 1);
  c.fixed<int32_t>({batch}, {4, 2, 0});
  c.input(batch_first ? Ints{batch, directions, hidden} : Ints{directions, batch, hidden}, -1, 1);
  more(c);
}

void check_two_outputs(GradientCase& c) {
  c.outputs(2).check();
}

TEST(Gradients, SequencesOfTheirOwnLengths) {
  for (const char* direction : {"forward", "reverse", "bidirectional"}) {
    for (const bool batch_first : {false, true}) {
      recurrent("RNN", 1, direction, batch_first, check_two_outputs);
      recurrent("GRU", 3, direction, batch_first, check_two_outputs);
      recurrent("GRU", 3, direction, batch_first,
                [](GradientCase& c) { check_two_outputs(c.attr("linear_before_reset", int64_t{1})); });
      const int64_t directions = std::string(direction) == "bidirectional" ? 2 : 1;
      recurrent("LSTM", 4, direction, batch_first, [&](GradientCase& c) {
        c.input(batch_first ? Ints{3, directions, 2} : Ints{directions, 3, 2}, -1, 1);
        c.input({directions, 6}, -1, 1).outputs(3).check();
      });
    }
  }
}

TEST(Gradients, RecurrentClipsAndActivations) {
  recurrent("GRU", 3, "forward", false, [](GradientCase& c) { check_two_outputs(c.attr("clip", 0.6f)); });
  recurrent("LSTM", 4, "forward", false, [](GradientCase& c) {
    c.input({1, 3, 2}, -1, 1).input({1, 6}, -1, 1).attr("clip", 0.6f).attr("input_forget", int64_t{1});
    c.outputs(3).check();
  });
  for (const char* name :
       {"Relu", "Affine", "LeakyRelu", "ScaledTanh", "Elu", "Softsign", "Softplus", "HardSigmoid"}) {
    SCOPED_TRACE(name);
    recurrent("RNN", 1, "forward", false, [&](GradientCase& c) {
      c.attr("activations", std::vector<std::string>{name});
      c.attr("activation_alpha", std::vector<float>{0.3f}).attr("activation_beta", std::vector<float>{0.6f});
      check_two_outputs(c);
    });
  }
}

}  // namespace
}  // namespace plimsoll
