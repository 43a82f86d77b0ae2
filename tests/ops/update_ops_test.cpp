// Operators of ours that only training and calibration make. Their numbers are numpy's, in double, from the
// formulas of PyTorch (SGD, Adam, AdamW, RMSprop, Adagrad, clip_grad_norm_), of Hugging Face (AdamW that
// decays last) and of the paper on Lamb. A file may name these operators too, with anything.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "ops/op_case.h"

namespace plimsoll {
namespace {

using testing::HasSubstr;

const std::vector<float> kWeight = {1, -2, 0.5f, 3, -0.25f};
const std::vector<float> kGradient = {0.1f, -0.2f, 0.3f, -4, 0.5f};
const std::vector<float> kMean = {0.1f, 0.2f, -0.1f, 0.05f, 0};
const std::vector<float> kSquare = {0.01f, 0.04f, 0.02f, 1, 0};
const std::vector<float> kLargeSquare = {0.1f, 0.2f, 0.3f, 1, 0.5f};
const std::vector<float> kBuffer = {0.2f, 0.1f, -0.3f, 0.4f, 0};
const std::vector<float> kZeros = {0, 0, 0, 0, 0};

// Parameter, gradient, a rate of 0.1, and the number of the step.
OpCase& at_step(int64_t step, OpCase&& op) {
  return op.input<float>({5}, kWeight)
      .input<float>({5}, kGradient)
      .input<float>({}, {0.1f})
      .input<int64_t>({}, {step});
}
// Neither scale nor guard.
OpCase& plain(int64_t step, OpCase&& op) {
  return at_step(step, std::move(op)).absent().absent();
}

// What the error says; nothing if there is none.
std::string refusal(OpCase& op) {
  try {
    op.run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// ---- UpdateSgd

TEST(UpdateSgd, GoesAgainstTheGradient) {
  plain(1, OpCase("UpdateSgd", 1, "ai.plimsoll"))
      .run()
      .expect<float>(0, {5}, {0.99f, -1.98f, 0.47f, 3.4f, -0.3f});
}

TEST(UpdateSgd, ScalesClipsDecaysAndKeepsMomentum) {
  at_step(2, OpCase("UpdateSgd", 1, "ai.plimsoll"))
      .input<float>({1}, {0.5f})
      .input<float>({}, {7})
      .input<float>({5}, kBuffer)
      .attr("clip", 1.0f)
      .attr("weight_decay", 0.01f)
      .attr("momentum", 0.9f)
      .attr("dampening", 0.1f)
      .outputs(2)
      .run()
      .expect<float>(0, {5}, {0.9766f, -1.9982f, 0.51305f, 3.0513f, -0.272275f})
      .expect<float>(1, {5}, {0.234f, -0.018f, -0.1305f, -0.513f, 0.22275f});
}

TEST(UpdateSgd, LooksAheadAsNesterov) {
  at_step(2, OpCase("UpdateSgd", 1, "ai.plimsoll"))
      .input<float>({}, {0.5f})
      .absent()
      .input<float>({5}, kBuffer)
      .attr("clip", 1.0f)
      .attr("weight_decay", 0.01f)
      .attr("momentum", 0.9f)
      .attr("nesterov", int64_t{1})
      .outputs(2)
      .run()
      .expect<float>(0, {5}, {0.9724f, -1.9853f, 0.49485f, 3.1519f, -0.297025f})
      .expect<float>(1, {5}, {0.24f, -0.03f, -0.115f, -0.61f, 0.2475f});
}

TEST(UpdateSgd, TakesTheFirstGradientUndampened) {
  plain(1, OpCase("UpdateSgd", 1, "ai.plimsoll"))
      .input<float>({5}, kBuffer)
      .attr("momentum", 0.9f)
      .attr("dampening", 0.5f)
      .outputs(2)
      .run()
      .expect<float>(0, {5}, {0.99f, -1.98f, 0.47f, 3.4f, -0.3f})
      .expect<float>(1, {5}, kGradient);
}

TEST(UpdateSgd, WorksInDouble) {
  OpCase("UpdateSgd", 1, "ai.plimsoll")
      .input<double>({1, 2}, {1, -2})
      .input<double>({1, 2}, {0.5, 4})
      .input<float>({}, {0.5f})
      .input<int64_t>({}, {1})
      .absent()
      .absent()
      .run()
      .expect<double>(0, {1, 2}, {0.75, -4});
}

TEST(UpdateSgd, RefusesAGradientOfAnotherShape) {
  OpCase op("UpdateSgd", 1, "ai.plimsoll");
  op.input<float>({5}, kWeight).input<float>({2}, {1, 2}).input<float>({}, {1}).input<int64_t>({}, {1});
  EXPECT_THAT(refusal(op.absent().absent()),
              HasSubstr("input 1: expected the parameter's shape [5], found [2]"));
}

TEST(UpdateSgd, RefusesAGradientOfAnotherRank) {
  OpCase op("UpdateSgd", 1, "ai.plimsoll");
  op.input<float>({5}, kWeight).input<float>({}, {1}).input<float>({}, {1}).input<int64_t>({}, {1});
  EXPECT_THAT(refusal(op.absent().absent()), HasSubstr("input 1: expected the parameter's shape"));
}

TEST(UpdateSgd, RefusesOtherTypes) {
  OpCase gradient("UpdateSgd", 1, "ai.plimsoll");
  gradient.input<float>({1}, {1}).input<double>({1}, {1}).input<float>({}, {1}).input<int64_t>({}, {1});
  EXPECT_THAT(refusal(gradient.absent().absent()), HasSubstr("inputs 0 and 1: expected one type"));
  OpCase step("UpdateSgd", 1, "ai.plimsoll");
  step.input<float>({1}, {1}).input<float>({1}, {1}).input<float>({}, {1}).input<float>({}, {1});
  EXPECT_THAT(refusal(step.absent().absent()), HasSubstr("input 3"));
  OpCase integers("UpdateSgd", 1, "ai.plimsoll");
  integers.input<int32_t>({1}, {1}).input<int32_t>({1}, {1}).input<float>({}, {1}).input<int64_t>({}, {1});
  EXPECT_THAT(refusal(integers.absent().absent()), HasSubstr("input 0"));
}

// Rate, step, scale and guard are read as one number each.
TEST(UpdateSgd, RefusesNumbersThatAreNone) {
  for (size_t none : {2, 3, 4, 5}) {
    OpCase op("UpdateSgd", 1, "ai.plimsoll");
    op.input<float>({1}, {1}).input<float>({1}, {1});
    for (size_t i = 2; i < 6; ++i) {
      const int64_t count = i == none ? 0 : 1;
      if (i == 3) {
        op.input<int64_t>({count}, std::vector<int64_t>(static_cast<size_t>(count), 1));
      } else {
        op.input<float>({count}, std::vector<float>(static_cast<size_t>(count), 1));
      }
    }
    EXPECT_THAT(refusal(op), HasSubstr(fmt::format("input {}: expected one number, found shape [0]", none)));
  }
}

TEST(UpdateSgd, RefusesAMissingRate) {
  OpCase op("UpdateSgd", 1, "ai.plimsoll");
  op.input<float>({1}, {1}).input<float>({1}, {1}).absent().input<int64_t>({}, {1}).absent().absent();
  EXPECT_THAT(refusal(op), HasSubstr("input 2 is missing"));
}

TEST(UpdateSgd, RefusesAStateThatOnlyComesOrGoes) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateSgd", 1, "ai.plimsoll")).outputs(2)),
              HasSubstr("input 6 is the old state and output 1 the new one"));
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateSgd", 1, "ai.plimsoll")).input<float>({5}, kBuffer)),
              HasSubstr("input 6 is the old state and output 1 the new one"));
}

TEST(UpdateSgd, RefusesMomentumWithoutAState) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateSgd", 1, "ai.plimsoll")).attr("momentum", 0.5f)),
              HasSubstr("input 6, which would keep it, is missing"));
}

TEST(UpdateSgd, RefusesToLeaveTheParameterOut) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateSgd", 1, "ai.plimsoll"))
                          .input<float>({5}, kBuffer)
                          .outputs(2)
                          .without_output(0)),
              HasSubstr("output 0 is missing"));
}

// ---- UpdateAdam

OpCase& with_decay(int64_t mode, OpCase&& op) {
  return plain(3, std::move(op))
      .input<float>({5}, kMean)
      .input<float>({5}, kSquare)
      .attr("beta2", 0.99f)
      .attr("epsilon", 0.01f)
      .attr("weight_decay", 0.1f)
      .attr("decay_mode", mode)
      .outputs(3);
}

TEST(UpdateAdam, CorrectsTheBiasOfTheFirstStep) {
  plain(1, OpCase("UpdateAdam", 1, "ai.plimsoll"))
      .input<float>({5}, kZeros)
      .input<float>({5}, kZeros)
      .outputs(3)
      .run()
      .expect<float>(0, {5}, {0.9f, -1.9f, 0.4f, 3.1f, -0.35f})
      .expect<float>(1, {5}, {0.01f, -0.02f, 0.03f, -0.4f, 0.05f})
      .expect<float>(2, {5}, {1e-5f, 4e-5f, 9e-5f, 0.016f, 0.00025f}, 1e-8);
}

TEST(UpdateAdam, DecaysInTheGradient) {
  with_decay(0, OpCase("UpdateAdam", 1, "ai.plimsoll"))
      .run()
      .expect<float>(0, {5}, {0.93222377f, -2.0434934f, 0.52383853f, 3.019438f, -0.31136748f})
      .expect<float>(1, {5}, {0.11f, 0.14f, -0.055f, -0.325f, 0.0475f})
      .expect<float>(2, {5}, {0.0103f, 0.0412f, 0.021025f, 1.1269f, 0.00225625f});
}

TEST(UpdateAdam, DecaysFirst) {
  with_decay(1, OpCase("UpdateAdam", 1, "ai.plimsoll"))
      .run()
      .expect<float>(0, {5}, {0.92748339f, -2.0304406f, 0.52120662f, 2.9910183f, -0.30897509f})
      .expect<float>(1, {5}, {0.1f, 0.16f, -0.06f, -0.355f, 0.05f})
      .expect<float>(2, {5}, {0.01f, 0.04f, 0.0207f, 1.15f, 0.0025f});
}

TEST(UpdateAdam, DecaysLast) {
  with_decay(2, OpCase("UpdateAdam", 1, "ai.plimsoll"))
      .run()
      .expect<float>(0, {5}, {0.93276539f, -2.0279681f, 0.51954905f, 2.990649f, -0.29996506f})
      .expect<float>(1, {5}, {0.1f, 0.16f, -0.06f, -0.355f, 0.05f})
      .expect<float>(2, {5}, {0.01f, 0.04f, 0.0207f, 1.15f, 0.0025f});
}

TEST(UpdateAdam, ChangesNothingIfTheGuardIsNotFinite) {
  at_step(3, OpCase("UpdateAdam", 1, "ai.plimsoll"))
      .absent()
      .input<float>({}, {std::numeric_limits<float>::infinity()})
      .input<float>({5}, kMean)
      .input<float>({5}, kSquare)
      .outputs(3)
      .run()
      .expect<float>(0, {5}, kWeight, 0)
      .expect<float>(1, {5}, kMean, 0)
      .expect<float>(2, {5}, kSquare, 0);
}

TEST(UpdateAdam, RefusesAMomentOfAnotherShape) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateAdam", 1, "ai.plimsoll"))
                          .input<float>({5}, kMean)
                          .input<float>({1}, {0})
                          .outputs(3)),
              HasSubstr("input 7: expected the parameter's shape [5], found [1]"));
}

TEST(UpdateAdam, RefusesAMomentOfAnotherType) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateAdam", 1, "ai.plimsoll"))
                          .input<double>({5}, {0, 0, 0, 0, 0})
                          .input<float>({5}, kSquare)
                          .outputs(3)),
              HasSubstr("inputs 0 and 6: expected one type"));
}

TEST(UpdateAdam, RefusesMissingMoments) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateAdam", 1, "ai.plimsoll")).input<float>({5}, kMean).outputs(3)),
              HasSubstr("expected 8 to 8 inputs"));
  EXPECT_THAT(
      refusal(
          plain(1, OpCase("UpdateAdam", 1, "ai.plimsoll")).absent().input<float>({5}, kSquare).outputs(3)),
      HasSubstr("input 6 is missing"));
  EXPECT_THAT(refusal(with_decay(0, OpCase("UpdateAdam", 1, "ai.plimsoll")).without_output(2)),
              HasSubstr("input 7 is the old state and output 2 the new one"));
}

TEST(UpdateAdam, RefusesADecayModeThatThereIsNot) {
  EXPECT_THAT(refusal(with_decay(3, OpCase("UpdateAdam", 1, "ai.plimsoll"))),
              HasSubstr("attribute 'decay_mode': expected 0 to 2, found 3"));
  EXPECT_THAT(refusal(with_decay(-1, OpCase("UpdateAdam", 1, "ai.plimsoll"))),
              HasSubstr("attribute 'decay_mode': expected 0 to 2, found -1"));
}

// ---- UpdateLamb

TEST(UpdateLamb, ScalesTheStepByTheNorms) {
  plain(3, OpCase("UpdateLamb", 1, "ai.plimsoll"))
      .input<float>({5}, kMean)
      .input<float>({5}, kSquare)
      .attr("beta2", 0.99f)
      .attr("epsilon", 0.01f)
      .attr("weight_decay", 0.1f)
      .outputs(3)
      .run()
      .expect<float>(0, {5}, {0.72827571f, -2.1140627f, 0.57946255f, 2.9663451f, -0.47098339f})
      .expect<float>(1, {5}, {0.1f, 0.16f, -0.06f, -0.355f, 0.05f})
      .expect<float>(2, {5}, {0.01f, 0.04f, 0.0207f, 1.15f, 0.0025f});
}

TEST(UpdateLamb, StepsLikeAdamFromZeros) {
  OpCase("UpdateLamb", 1, "ai.plimsoll")
      .input<float>({5}, kZeros)
      .input<float>({5}, kGradient)
      .input<float>({}, {0.1f})
      .input<int64_t>({}, {1})
      .absent()
      .absent()
      .input<float>({5}, kZeros)
      .input<float>({5}, kZeros)
      .outputs(3)
      .run()
      .expect<float>(0, {5}, {-0.099999f, 0.0999995f, -0.099999667f, 0.099999975f, -0.0999998f}, 1e-7)
      .expect<float>(1, {5}, {0.01f, -0.02f, 0.03f, -0.4f, 0.05f});
}

// Where all elements are alike the norms' ratio is that of two elements: the step is rate times weight.
TEST(UpdateLamb, AddsTheNormsOfAllChunks) {
  constexpr size_t kMany = 40000;
  constexpr int64_t kDim = kMany;
  const std::vector<float> zeros(kMany, 0.0f);
  OpCase("UpdateLamb", 1, "ai.plimsoll")
      .input<float>({kDim}, std::vector<float>(kMany, 0.5f))
      .input<float>({kDim}, std::vector<float>(kMany, 1.0f))
      .input<float>({}, {0.1f})
      .input<int64_t>({}, {1})
      .absent()
      .absent()
      .input<float>({kDim}, zeros)
      .input<float>({kDim}, zeros)
      .outputs(3)
      .threads(3)
      .run()
      .expect<float>(0, {kDim}, std::vector<float>(kMany, 0.45f));
}

TEST(UpdateLamb, RefusesAMomentOfAnotherShape) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateLamb", 1, "ai.plimsoll"))
                          .input<float>({5, 1}, kMean)
                          .input<float>({5}, kSquare)
                          .outputs(3)),
              HasSubstr("input 6: expected the parameter's shape [5], found [5, 1]"));
}

TEST(UpdateLamb, RefusesToLeaveAMomentOut) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateLamb", 1, "ai.plimsoll"))
                          .input<float>({5}, kMean)
                          .input<float>({5}, kSquare)
                          .outputs(3)
                          .without_output(1)),
              HasSubstr("input 6 is the old state and output 1 the new one"));
}

// ---- UpdateRmsProp

TEST(UpdateRmsProp, DividesByTheRootOfTheMeanSquare) {
  plain(1, OpCase("UpdateRmsProp", 1, "ai.plimsoll"))
      .input<float>({5}, kLargeSquare)
      .outputs(2)
      .run()
      .expect<float>(0, {5}, {0.96823395f, -1.9550987f, 0.44503503f, 3.3730019f, -0.32088812f})
      .expect<float>(1, {5}, {0.0991f, 0.1984f, 0.2979f, 1.15f, 0.4975f});
}

TEST(UpdateRmsProp, KeepsMomentumWithoutAMean) {
  plain(2, OpCase("UpdateRmsProp", 1, "ai.plimsoll"))
      .input<float>({5}, kLargeSquare)
      .absent()
      .input<float>({5}, kBuffer)
      .attr("alpha", 0.9f)
      .attr("epsilon", 0.01f)
      .attr("weight_decay", 0.1f)
      .attr("momentum", 0.9f)
      .outputs(4)
      .without_output(2)
      .run()
      .expect<float>(0, {5}, {0.91882765f, -1.9206449f, 0.46233751f, 3.2080118f, -0.31810702f})
      .expect<float>(1, {5}, {0.094f, 0.196f, 0.28225f, 2.269f, 0.4725625f})
      .expect<float>(3, {5}, {0.81172352f, -0.79355053f, 0.37662492f, -2.0801182f, 0.68107016f});
}

TEST(UpdateRmsProp, CentersByTheMean) {
  plain(2, OpCase("UpdateRmsProp", 1, "ai.plimsoll"))
      .input<float>({5}, kLargeSquare)
      .input<float>({5}, kMean)
      .input<float>({5}, kBuffer)
      .attr("alpha", 0.9f)
      .attr("epsilon", 0.01f)
      .attr("weight_decay", 0.1f)
      .attr("momentum", 0.9f)
      .outputs(4)
      .run()
      .expect<float>(0, {5}, {0.9144739f, -1.9159767f, 0.46199468f, 3.2138579f, -0.31826784f})
      .expect<float>(1, {5}, {0.094f, 0.196f, 0.28225f, 2.269f, 0.4725625f})
      .expect<float>(2, {5}, {0.11f, 0.14f, -0.055f, -0.325f, 0.0475f})
      .expect<float>(3, {5}, {0.85526103f, -0.84023256f, 0.38005323f, -2.1385792f, 0.68267844f});
}

TEST(UpdateRmsProp, RefusesStatesOfOtherShapes) {
  EXPECT_THAT(
      refusal(plain(1, OpCase("UpdateRmsProp", 1, "ai.plimsoll")).input<float>({2}, {1, 1}).outputs(2)),
      HasSubstr("input 6: expected the parameter's shape [5], found [2]"));
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateRmsProp", 1, "ai.plimsoll"))
                          .input<float>({5}, kLargeSquare)
                          .absent()
                          .input<float>({0}, {})
                          .outputs(4)
                          .without_output(2)),
              HasSubstr("input 8: expected the parameter's shape [5], found [0]"));
}

TEST(UpdateRmsProp, RefusesAMeanThatIsNotGiven) {
  EXPECT_THAT(
      refusal(plain(1, OpCase("UpdateRmsProp", 1, "ai.plimsoll")).input<float>({5}, kLargeSquare).outputs(3)),
      HasSubstr("input 7 is the old state and output 2 the new one"));
}

TEST(UpdateRmsProp, RefusesMomentumWithoutAState) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateRmsProp", 1, "ai.plimsoll"))
                          .input<float>({5}, kLargeSquare)
                          .attr("momentum", 0.9f)
                          .outputs(2)),
              HasSubstr("input 8, which would keep it, is missing"));
}

// ---- UpdateAdagrad

TEST(UpdateAdagrad, DividesByTheRootOfTheSum) {
  plain(1, OpCase("UpdateAdagrad", 1, "ai.plimsoll"))
      .input<float>({5}, kLargeSquare)
      .outputs(2)
      .run()
      .expect<float>(0, {5}, {0.96984887f, -1.9591752f, 0.45196155f, 3.0970143f, -0.30773503f})
      .expect<float>(1, {5}, {0.11f, 0.24f, 0.39f, 17, 0.75f});
}

TEST(UpdateAdagrad, LowersTheRateStepByStep) {
  plain(3, OpCase("UpdateAdagrad", 1, "ai.plimsoll"))
      .input<float>({5}, kLargeSquare)
      .attr("rate_decay", 0.5f)
      .attr("epsilon", 0.01f)
      .attr("weight_decay", 0.1f)
      .outputs(2)
      .run()
      .expect<float>(0, {5}, {0.97396957f, -1.9672131f, 0.47348485f, 3.0481426f, -0.27755744f})
      .expect<float>(1, {5}, {0.14f, 0.36f, 0.4225f, 14.69f, 0.725625f});
}

TEST(UpdateAdagrad, RefusesASumOfAnotherShape) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateAdagrad", 1, "ai.plimsoll")).input<float>({}, {1}).outputs(2)),
              HasSubstr("input 6: expected the parameter's shape"));
}

TEST(UpdateAdagrad, RefusesASumOfAnotherType) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateAdagrad", 1, "ai.plimsoll"))
                          .input<int64_t>({5}, {1, 1, 1, 1, 1})
                          .outputs(2)),
              HasSubstr("input 6"));
}

TEST(UpdateAdagrad, RefusesAMissingSum) {
  EXPECT_THAT(refusal(plain(1, OpCase("UpdateAdagrad", 1, "ai.plimsoll")).outputs(2)),
              HasSubstr("expected 7 to 7 inputs"));
}

// ---- GradientScale

TEST(GradientScale, HoldsTheCommonNorm) {
  OpCase("GradientScale", 1, "ai.plimsoll")
      .absent()
      .input<float>({2}, {3, 4})
      .input<double>({1, 1}, {12})
      .attr("max_norm", 2.0f)
      .outputs(2)
      .run()
      .expect<float>(0, {}, {0.153846142f}, 1e-7)
      .expect<float>(1, {}, {13});
}

TEST(GradientScale, CountsTheScaleIn) {
  OpCase("GradientScale", 1, "ai.plimsoll")
      .input<float>({1}, {0.5f})
      .input<float>({2}, {3, 4})
      .input<float>({1, 1}, {12})
      .attr("max_norm", 2.0f)
      .outputs(2)
      .run()
      .expect<float>(0, {}, {0.153846130f}, 1e-7)
      .expect<float>(1, {}, {6.5f});
}

TEST(GradientScale, LeavesSmallGradientsAlone) {
  OpCase("GradientScale", 1, "ai.plimsoll")
      .input<float>({}, {0.5f})
      .input<float>({2}, {3, 4})
      .attr("max_norm", 100.0f)
      .run()
      .expect<float>(0, {}, {0.5f}, 0);
}

TEST(GradientScale, AddsAllChunks) {
  OpCase("GradientScale", 1, "ai.plimsoll")
      .absent()
      .input<float>({1}, {0})
      .input<float>({40000}, std::vector<float>(40000, 0.5f))
      .attr("max_norm", 1.0f)
      .outputs(2)
      .threads(3)
      .run()
      .expect<float>(0, {}, {0.01f}, 1e-7)
      .expect<float>(1, {}, {100});
}

TEST(GradientScale, TellsOfGradientsThatAreNoNumbers) {
  OpCase op("GradientScale", 1, "ai.plimsoll");
  op.absent().input<float>({2}, {1, std::numeric_limits<float>::infinity()}).attr("max_norm", 1.0f).run();
  EXPECT_FALSE(std::isfinite(*op.result().as<float>()));
}

TEST(GradientScale, RefusesAScaleThatIsNone) {
  OpCase op("GradientScale", 1, "ai.plimsoll");
  op.input<float>({0}, {}).input<float>({1}, {1}).attr("max_norm", 1.0f);
  EXPECT_THAT(refusal(op), HasSubstr("input 0: expected one number, found shape [0]"));
}

TEST(GradientScale, RefusesMissingAndOtherGradients) {
  OpCase missing("GradientScale", 1, "ai.plimsoll");
  missing.absent().input<float>({1}, {1}).absent().input<float>({1}, {1}).attr("max_norm", 1.0f);
  EXPECT_THAT(refusal(missing), HasSubstr("input 2 is missing"));
  OpCase integers("GradientScale", 1, "ai.plimsoll");
  integers.absent().input<int64_t>({1}, {1}).attr("max_norm", 1.0f);
  EXPECT_THAT(refusal(integers), HasSubstr("input 1"));
}

TEST(GradientScale, RefusesToLeaveTheScaleOut) {
  OpCase op("GradientScale", 1, "ai.plimsoll");
  op.absent().input<float>({1}, {1}).attr("max_norm", 1.0f).outputs(2).without_output(0);
  EXPECT_THAT(refusal(op), HasSubstr("output 0 is missing"));
}

TEST(GradientScale, RefusesANormOfNothing) {
  for (float norm : {0.0f, -1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    OpCase op("GradientScale", 1, "ai.plimsoll");
    op.absent().input<float>({1}, {1}).attr("max_norm", norm);
    EXPECT_THAT(refusal(op), HasSubstr("max_norm: expected more than 0"));
  }
}

// ---- ObserveHistogram

const std::vector<float> kObserved = {-1,    -0.5f, -0.49f, 0,  0.5f,
                                      0.99f, 1,     1.5f,   -2, std::numeric_limits<float>::quiet_NaN()};

TEST(ObserveHistogram, CountsWhatIsInside) {
  OpCase("ObserveHistogram", 1, "ai.plimsoll")
      .input<float>({2, 5}, kObserved)
      .attr("bins", int64_t{4})
      .attr("low", -1.0f)
      .attr("high", 1.0f)
      .run()
      .expect<int64_t>(0, {4}, {1, 2, 1, 3});
}

TEST(ObserveHistogram, CountsDistancesFromZero) {
  OpCase("ObserveHistogram", 1, "ai.plimsoll")
      .input<float>({10}, kObserved)
      .attr("bins", int64_t{4})
      .attr("low", 0.0f)
      .attr("high", 1.0f)
      .attr("absolute", int64_t{1})
      .run()
      .expect<int64_t>(0, {4}, {1, 1, 2, 3});
}

// The whole range of floats, and its least step: no quotient leads out of the bins.
TEST(ObserveHistogram, TakesAnyFiniteRange) {
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  OpCase("ObserveHistogram", 1, "ai.plimsoll")
      .input<float>({3}, {-most, 1, most})
      .attr("bins", int64_t{2})
      .attr("low", -most)
      .attr("high", most)
      .run()
      .expect<int64_t>(0, {2}, {1, 2});
  OpCase("ObserveHistogram", 1, "ai.plimsoll")
      .input<float>({3}, {0, least, 1})
      .attr("bins", int64_t{3})
      .attr("low", 0.0f)
      .attr("high", least)
      .run();
}

TEST(ObserveHistogram, RefusesBinsAndRangesThatAreNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN(),
              infinity = std::numeric_limits<float>::infinity();
  struct Case {
    int64_t bins;
    float low, high;
    const char* says;
  };
  for (const Case& k :
       {Case{0, 0, 1, "attribute 'bins'"}, Case{-1, 0, 1, "attribute 'bins'"},
        Case{int64_t{1} << 40, 0, 1, "attribute 'bins'"}, Case{4, 1, 1, "expected a finite range"},
        Case{4, nan, 1, "expected a finite range"}, Case{4, 0, infinity, "expected a finite range"}}) {
    OpCase op("ObserveHistogram", 1, "ai.plimsoll");
    op.input<float>({1}, {0}).attr("bins", k.bins).attr("low", k.low).attr("high", k.high);
    EXPECT_THAT(refusal(op), HasSubstr(k.says));
  }
}

TEST(ObserveHistogram, RefusesIntegersAndNothing) {
  OpCase integers("ObserveHistogram", 1, "ai.plimsoll");
  integers.input<int64_t>({1}, {0}).attr("bins", int64_t{1}).attr("low", 0.0f).attr("high", 1.0f);
  EXPECT_THAT(refusal(integers), HasSubstr("input 0"));
  OpCase nothing("ObserveHistogram", 1, "ai.plimsoll");
  nothing.absent().attr("bins", int64_t{1}).attr("low", 0.0f).attr("high", 1.0f);
  EXPECT_THAT(refusal(nothing), HasSubstr("input 0 is missing"));
}

// ---- ObserveRange

TEST(ObserveRange, TellsLeastLargestAndNearest) {
  OpCase("ObserveRange", 1, "ai.plimsoll")
      .input<float>({2, 2}, {-3, 2, -0.5f, 0.75f})
      .run()
      .expect<float>(0, {3}, {-3, 2, 0.5f}, 0);
}

TEST(ObserveRange, ReadsHalfFloats) {
  OpCase("ObserveRange", 1, "ai.plimsoll")
      .input<Float16>({2}, {Float16(1.5f), Float16(4.0f)})
      .run()
      .expect<float>(0, {3}, {1.5f, 4, 1.5f}, 0);
}

TEST(ObserveRange, TellsOfNaNAndOfNothing) {
  OpCase nan("ObserveRange", 1, "ai.plimsoll");
  nan.input<float>({3}, {1, std::numeric_limits<float>::quiet_NaN(), 2}).run();
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(nan.result().as<float>()[i]));
  OpCase nothing("ObserveRange", 1, "ai.plimsoll");
  nothing.input<float>({0}, {}).run();
  EXPECT_GT(nothing.result().as<float>()[0], nothing.result().as<float>()[1]);
}

TEST(ObserveRange, RefusesIntegersAndNothing) {
  OpCase integers("ObserveRange", 1, "ai.plimsoll");
  EXPECT_THAT(refusal(integers.input<int32_t>({1}, {0})), HasSubstr("input 0"));
  OpCase nothing("ObserveRange", 1, "ai.plimsoll");
  EXPECT_THAT(refusal(nothing.absent()), HasSubstr("input 0 is missing"));
}

// ---- Gradient, which train/lower_gradient.h replaces before anything runs: tests/train has its values.

OpCase& gradient_of(OpCase& op, std::span<const std::string_view> xs) {
  Attribute names;
  names.name = "xs", names.type = AttributeType::kStrings, names.strings = xs;
  return op.attr(names).attr("y", "y");
}

TEST(Gradient, NeverRunsByItself) {
  const std::string_view xs[] = {"x"};
  OpCase op("Gradient", 1, "ai.onnx.preview.training");
  EXPECT_THAT(refusal(gradient_of(op, xs).input<float>({1}, {1})), HasSubstr("cannot run by itself"));
}

TEST(Gradient, RefusesNamesThatAreNotItsInputsAndOutputs) {
  const std::string_view xs[] = {"x", "w"};
  OpCase inputs("Gradient", 1, "ai.onnx.preview.training");
  EXPECT_THAT(refusal(gradient_of(inputs, xs).input<float>({1}, {1}).outputs(2)),
              HasSubstr("expected 2 inputs, one for each of 'xs' and 'zs', found 1"));
  OpCase outputs("Gradient", 1, "ai.onnx.preview.training");
  EXPECT_THAT(refusal(gradient_of(outputs, xs).input<float>({1}, {1}).input<float>({1}, {1})),
              HasSubstr("expected 2 outputs, one for each of 'xs', found 1"));
}

}  // namespace
}  // namespace plimsoll
