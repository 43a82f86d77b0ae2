// Operators that gradients make of recurrent layers.
#include "ops/backward_case.h"

namespace plimsoll {
namespace {

// ---- RecurrentGradient ----------------------------------------------------------------------------

TEST(RecurrentGradient, Rnn) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 2, 1}, {0.5f, -1, 0.25f, 2})
      .input<float>({1, 1, 1}, {0.5f})
      .absent()
      .absent()
      .absent()
      .input<float>({2, 1, 2, 1}, {1, 2, -1, 0.5f})
      .attr("cell", "rnn")
      .outputs(3)
      .run()
      .expect<float>(0, {1, 2, 2, 1}, {0.471826f, 0.855203f, -0.80011f, 0.072642f})
      .expect<float>(1, {1, 2, 2, 1}, {0, 0, 0.462117f, -0.761594f})
      .expect<float>(2, {1, 2, 1}, {0.235913f, 0.427601f});
}

TEST(RecurrentGradient, BothDirections) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<double>({2, 2, 2, 1}, {0.5, -2, 0.25, 2, 0.5, -2, 0.25, 2})
      .input<double>({2, 1, 1}, {0.5, 0.5})
      .absent()
      .absent()
      .absent()
      .input<double>({2, 2, 2, 1}, {1, 2, 1, 2, -1, 0.5, -1, 0.5})
      .attr("cell", "rnn")
      .attr("functions", std::vector<int64_t>{2, 2})  // Relu both ways
      .attr("alphas", std::vector<float>{0, 0})
      .attr("betas", std::vector<float>{0, 0})
      .outputs(3)
      .run()
      .expect<double>(0, {2, 2, 2, 1}, {0.5, 0, -1, 0.5, 1, 0, -0.5, 0.5})
      .expect<double>(1, {2, 2, 2, 1}, {0, 0, 0.5, 0, 0.25, 2, 0, 0})
      .expect<double>(2, {2, 2, 1}, {0.25, 0, -0.25, 0.25});
}

TEST(RecurrentGradient, TwoStatesMixThroughR) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 2}, {0.5f, -0.25f, 0.1f, 0.75f})
      .input<float>({1, 2, 2}, {0.5f, -1, 0.25f, 2})
      .absent()
      .input<float>({1, 1, 2}, {0.3f, -0.2f})
      .absent()
      .input<float>({2, 1, 1, 2}, {1, -1, 0.5f, 2})
      .input<float>({1, 1, 2}, {0.25f, 1})
      .attr("cell", "rnn")
      .outputs(3)
      .run_alone()
      .expect<float>(0, {1, 2, 1, 2}, {0.995873f, 3.35258f, 0.332274f, 2.96048f}, 2e-5)
      .expect<float>(1, {1, 2, 1, 2}, {0.3f, -0.2f, 0.691069f, -0.519022f})
      .expect<float>(2, {1, 1, 2}, {1.33608f, 5.70928f}, 2e-5);
}

TEST(RecurrentGradient, Lstm) {
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 4}, {0.5f, -0.5f, 1, 0.25f, -0.25f, 0.75f, 0.5f, -1})
      .input<float>({1, 4, 1}, {0.5f, -0.25f, 1, 0.75f})
      .absent()
      .input<float>({1, 1, 1}, {0.2f})
      .input<float>({1, 1, 1}, {-0.4f})
      .input<float>({2, 1, 1, 1}, {1, 0.5f})
      .input<float>({1, 1, 1}, {0.25f})
      .input<float>({1, 1, 1}, {-0.5f})
      .attr("cell", "lstm")
      .outputs(4)
      .run()
      .expect<float>(0, {1, 2, 1, 4},
                     {0.0291759f, -0.0145776f, -0.0238834f, 0.185424f, 0.0102949f, -0.0581176f, 0.000799525f,
                      -0.00970034f})
      .expect<float>(1, {1, 2, 1, 1}, {0.2f, -0.0226886f})
      .expect<float>(2, {1, 1, 1}, {0.133417f})
      .expect<float>(3, {1, 1, 1}, {0.257947f});
}

TEST(RecurrentGradient, Gru) {
  const std::vector<float> p{0.5f, -0.5f, 1, -0.25f, 0.75f, 0.5f}, r{0.5f, -0.25f, 0.75f};
  const std::vector<float> of_p{-0.117262f, 0.0106345f, 0.154942f, -0.0134234f, 0.0133061f, 0.146031f};
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 3}, p)
      .input<float>({1, 3, 1}, r)
      .absent()
      .input<float>({1, 1, 1}, {0.4f})
      .absent()
      .input<float>({2, 1, 1, 1}, {1, 0.5f})
      .attr("cell", "gru")
      .outputs(5)
      .run()
      .expect<float>(0, {1, 2, 1, 3}, of_p)
      .expect<float>(1, {1, 2, 1, 1}, {0.4f, 0.533638f})
      .expect<float>(2, {1, 1, 1}, {0.857347f})
      .expect<float>(3, {1, 2, 1, 3}, of_p)
      .expect<float>(4, {1, 2, 1, 1}, {0.141737f, 0.346567f});
  OpCase("RecurrentGradient", 1, kOurs)
      .input<float>({1, 2, 1, 3}, p)
      .input<float>({1, 3, 1}, r)
      .input<float>({1, 1}, {0.3f})
      .input<float>({1, 1, 1}, {0.4f})
      .absent()
      .input<float>({2, 1, 1, 1}, {1, 0.5f})
      .attr("cell", "gru")
      .attr("linear_before_reset", int64_t{1})
      .outputs(4)
      .run()
      .expect<float>(0, {1, 2, 1, 3}, {-0.125077f, 0.0175428f, 0.127797f, -0.0248817f, 0.0178113f, 0.11027f})
      .expect<float>(1, {1, 2, 1, 1}, {0.4f, 0.545154f})
      .expect<float>(2, {1, 1, 1}, {0.828723f})
      .expect<float>(3, {1, 2, 1, 3},
                     {-0.125077f, 0.0175428f, 0.0452841f, -0.0248817f, 0.0178113f, 0.0715418f});
}

// An RNN of one direction, two steps, two rows and two states, but for what a case changes.
class RecurrentGradientShapes {
 public:
  std::vector<std::vector<int64_t>> dims{{1, 2, 2, 2}, {1, 2, 2},    {1, 2},    {1, 2, 2},
                                         {1, 2, 2},    {2, 1, 2, 2}, {1, 2, 2}, {1, 2, 2}};
  void refused(const std::string& why, const char* cell = "rnn", size_t outputs = 3) const {
    OpCase op("RecurrentGradient", 1, kOurs);
    for (const auto& sizes : dims) {
      int64_t count = 1;
      for (int64_t d : sizes) count *= d;
      op.input<float>(sizes, std::vector<float>(static_cast<size_t>(count), 0.5f));
    }
    refuses(op.attr("cell", cell).outputs(outputs), why);
  }
};

TEST(RecurrentGradient, RefusesOtherShapes) {
  const std::vector<std::vector<int64_t>> smaller{{1, 2, 2, 1}, {1, 1, 2},    {1, 1},    {1, 1, 2},
                                                  {1, 2, 1},    {1, 1, 2, 2}, {1, 2, 1}, {2, 2}};
  for (size_t i = 0; i < smaller.size(); ++i) {
    RecurrentGradientShapes shapes;
    shapes.dims[i] = smaller[i];
    shapes.refused("input " + std::to_string(i) + ": expected shape");
  }
  RecurrentGradientShapes shapes;
  shapes.refused("input 0: expected shape", "lstm", 4);
  shapes.refused("input 0: expected shape", "gru", 5);
  shapes.refused("'cell'", "cell");
  shapes.dims[1] = {2, 2};
  shapes.refused("expected a rank from 3");
  shapes.dims[1] = {1, 0, 0};
  shapes.refused("R has shape");
  shapes.dims[0] = {3, 2, 2, 2};
  shapes.dims[1] = {3, 2, 2};
  shapes.refused("one direction or two");
}

TEST(RecurrentGradient, RefusesOtherOutputsThanItsCellHas) {
  const RecurrentGradientShapes shapes;
  shapes.refused("expected 3 outputs", "rnn", 4);
  shapes.refused("expected 4 outputs", "lstm", 3);
  shapes.refused("expected 4 outputs", "lstm", 5);
  shapes.refused("expected 5 outputs", "gru", 4);
}

TEST(RecurrentGradient, RefusesOtherTypes) {
  refuses(OpCase("RecurrentGradient", 1, kOurs)
              .input<int64_t>({1, 1, 1, 1}, {1})
              .input<int64_t>({1, 1, 1}, {1})
              .attr("cell", "rnn")
              .outputs(3),
          "type int64 is not allowed");
  refuses(OpCase("RecurrentGradient", 1, kOurs)
              .input<float>({1, 1, 1, 1}, {1})
              .input<double>({1, 1, 1}, {1})
              .attr("cell", "rnn")
              .outputs(3),
          "expected one type");
  refuses(
      OpCase("RecurrentGradient", 1, kOurs).input<float>({1, 1, 1, 1}, {1}).attr("cell", "rnn").outputs(3),
      "inputs");
}

}  // namespace
}  // namespace plimsoll
