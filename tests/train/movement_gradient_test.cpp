// Operators that move data against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

TEST(Gradients, Shapes) {
  GradientCase("Reshape").input({2, 6}).fixed<int64_t>({3}, {3, -1, 2}).check();
  GradientCase("Reshape").input({2, 6}).symbol(0, "n").fixed<int64_t>({3}, {0, 3, 2}).check();
  GradientCase("Flatten").input({2, 3, 4}).attr("axis", int64_t{2}).check();
  GradientCase("Squeeze").input({2, 1, 4}).fixed<int64_t>({1}, {1}).check();
  GradientCase("Squeeze", 11).input({2, 1, 4}).attr("axes", Ints{1}).check();
  GradientCase("Unsqueeze").input({2, 4}).fixed<int64_t>({2}, {0, -1}).check();
  GradientCase("Transpose").input({2, 3, 4}).check();
  GradientCase("Transpose").input({2, 3, 4}).attr("perm", Ints{1, 2, 0}).check();
}

TEST(Gradients, Expand) {
  GradientCase("Expand").input({3, 1}).fixed<int64_t>({3}, {2, 3, 4}).check();
  GradientCase("Expand").input({}).fixed<int64_t>({2}, {2, 3}).check();
}

TEST(Gradients, Tile) {
  GradientCase("Tile").input({2, 3}).fixed<int64_t>({2}, {2, 3}).check();
  GradientCase("Tile").input({2, 3}).symbol(0, "n").fixed<int64_t>({2}, {1, 2}).check();
}

TEST(Gradients, Concat) {
  GradientCase("Concat").input({2, 3}).input({2, 1}).input({2, 2}).attr("axis", int64_t{1}).check();
  GradientCase("Concat")
      .input({2, 3})
      .given<double>({1, 3}, {1, 2, 3})
      .input({2, 3})
      .attr("axis", int64_t{-2})
      .only_double()
      .check();
  GradientCase("Concat")
      .input({2, 3})
      .symbol(0, "n")
      .input({2, 3})
      .symbol(0, "n")
      .attr("axis", int64_t{0})
      .check();
}

TEST(Gradients, Split) {
  GradientCase("Split")
      .input({2, 7})
      .fixed<int64_t>({3}, {1, 4, 2})
      .attr("axis", int64_t{1})
      .outputs(3)
      .check();
  GradientCase("Split")
      .input({2, 7})
      .fixed<int64_t>({3}, {1, 4, 2})
      .attr("axis", int64_t{-1})
      .outputs(3)
      .unused_output(1)
      .check();
  GradientCase("Split").input({6, 2}).attr("num_outputs", int64_t{2}).outputs(2).check();
}

TEST(Gradients, Slice) {
  GradientCase("Slice").input({5, 6}).fixed<int64_t>({2}, {1, 0}).fixed<int64_t>({2}, {4, 100}).check();
  GradientCase("Slice")
      .input({5, 6})
      .fixed<int64_t>({1}, {-1})
      .fixed<int64_t>({1}, {-100})
      .fixed<int64_t>({1}, {1})
      .fixed<int64_t>({1}, {-2})
      .check();
  GradientCase("Slice")
      .input({5, 7})
      .fixed<int64_t>({2}, {0, 1})
      .fixed<int64_t>({2}, {5, 7})
      .fixed<int64_t>({2}, {0, 1})
      .fixed<int64_t>({2}, {2, 3})
      .check();
  GradientCase("Slice", 9)
      .input({5, 7})
      .attr("starts", Ints{2})
      .attr("ends", Ints{-1})
      .attr("axes", Ints{1})
      .check();
  GradientCase("Slice")
      .input({5, 3})
      .symbol(0, "n")
      .fixed<int64_t>({1}, {1})
      .fixed<int64_t>({1}, {3})
      .fixed<int64_t>({1}, {1})
      .check();
  GradientCase("Slice").input({5, 3}).fixed<int64_t>({1}, {3}).fixed<int64_t>({1}, {3}).check();
}

TEST(Gradients, Gather) {
  GradientCase("Gather").input({5, 3}).fixed<int64_t>({2, 3}, {0, 4, 2, 2, -1, 2}).check();
  GradientCase("Gather").input({2, 5, 3}).given<int32_t>({4}, {1, 1, 0, -5}).attr("axis", int64_t{1}).check();
  GradientCase("Gather").input({2, 5}).fixed<int64_t>({}, {3}).attr("axis", int64_t{-1}).check();
  GradientCase("Gather").input({40, 300}).given<int64_t>({90}, std::vector<int64_t>(90, 7)).check();
}

TEST(Gradients, GatherElements) {
  GradientCase("GatherElements").input({3, 4}).given<int64_t>({2, 4}, {0, 1, 2, 0, 0, 2, -1, 1}).check();
  GradientCase("GatherElements")
      .input({3, 4})
      .fixed<int64_t>({3, 2}, {0, 1, 2, 0, 0, 3})
      .attr("axis", int64_t{1})
      .check();
}

TEST(Gradients, GatherND) {
  GradientCase("GatherND").input({3, 4}).fixed<int64_t>({3, 1}, {0, 2, 0}).check();
  GradientCase("GatherND").input({3, 4}).fixed<int64_t>({2, 2}, {0, 2, -1, 1}).check();
  GradientCase("GatherND")
      .input({2, 3, 4})
      .fixed<int64_t>({2, 2, 1}, {0, 2, 1, 1})
      .attr("batch_dims", int64_t{1})
      .check();
  GradientCase("GatherND")
      .input({2, 2, 4})
      .fixed<int64_t>({2, 2, 1}, {0, 2, 1, 3})
      .attr("batch_dims", int64_t{2})
      .check();
}

TEST(Gradients, Scatter) {
  const std::vector<int64_t> indices = {0, 1, 2, 2, 0, 1};
  GradientCase("ScatterElements").input({3, 3}).fixed<int64_t>({2, 3}, indices).input({2, 3}).check();
  GradientCase("ScatterElements")
      .input({3, 3})
      .fixed<int64_t>({2, 3}, {0, 0, 0, 0, 1, 1})
      .input({2, 3})
      .attr("reduction", "add")
      .check();
  GradientCase("Scatter", 9).input({3, 3}).fixed<int64_t>({2, 3}, indices).input({2, 3}).check();
  GradientCase("ScatterND").input({4, 3}).fixed<int64_t>({2, 1}, {2, 0}).input({2, 3}).check();
  GradientCase("ScatterND")
      .input({4, 3})
      .fixed<int64_t>({2, 1}, {2, 2})
      .input({2, 3})
      .attr("reduction", "add")
      .check();
}

TEST(Gradients, ReducedScatters) {
  for (const char* reduction : {"mul", "max", "min"}) {
    SCOPED_TRACE(reduction);
    GradientCase("ScatterND")
        .input({4, 3})
        .fixed<int64_t>({3, 1}, {2, 1, 2})
        .input({3, 3})
        .attr("reduction", reduction)
        .check();
    GradientCase("ScatterElements")
        .input({3, 4})
        .fixed<int64_t>({2, 3}, {0, 2, 0, 1, 1, -1})
        .input({2, 3})
        .attr("axis", int64_t{1})
        .attr("reduction", reduction)
        .check();
  }
  // One zero among factors, two, and a zero in the data.
  GradientCase("ScatterElements")
      .at({4}, {2, 3, 0, 1.5})
      .fixed<int64_t>({7}, {0, 0, 1, 1, 2, 2, 3})
      .at({7}, {0, 5, 0, 0, 7, 0.5, 3})
      .attr("reduction", "mul")
      .check();
}

TEST(Gradients, TopK) {
  GradientCase("TopK").distinct({3, 5}).fixed<int64_t>({1}, {2}).outputs(2).check();
  GradientCase("TopK")
      .distinct({3, 5})
      .fixed<int64_t>({1}, {2})
      .attr("axis", int64_t{0})
      .attr("largest", int64_t{0})
      .outputs(2)
      .check();
}

TEST(Gradients, CumSum) {
  for (int64_t reverse : {0, 1}) {
    for (int64_t exclusive : {0, 1})
      GradientCase("CumSum")
          .input({3, 4})
          .fixed<int64_t>({}, {1})
          .attr("reverse", reverse)
          .attr("exclusive", exclusive)
          .check();
  }
}

TEST(Gradients, Pad) {
  GradientCase("Pad").input({2, 3}).fixed<int64_t>({4}, {1, 0, 2, 3}).check();
  GradientCase("Pad").input({4, 3}).fixed<int64_t>({4}, {-1, 2, 1, -1}).check();
  GradientCase("Pad").input({2, 3}).fixed<int64_t>({2}, {1, 2}).input({}).fixed<int64_t>({1}, {1}).check();
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    GradientCase("Pad").input({4, 5}).fixed<int64_t>({4}, {1, 2, 2, 3}).attr("mode", mode).check();
    GradientCase("Pad")
        .input({2, 4, 5})
        .symbol(0, "n")
        .fixed<int64_t>({2}, {2, 1})
        .absent()
        .fixed<int64_t>({1}, {-1})
        .attr("mode", mode)
        .check();
  }
  GradientCase("Pad", 10).input({2, 3}).attr("pads", Ints{1, 0, 0, 2}).check();
}

TEST(Gradients, Blocks) {
  GradientCase("SpaceToDepth").input({2, 3, 4, 6}).attr("blocksize", int64_t{2}).check();
  GradientCase("DepthToSpace").input({2, 8, 2, 3}).attr("blocksize", int64_t{2}).check();
  GradientCase("DepthToSpace").input({2, 8, 2, 3}).attr("blocksize", int64_t{2}).attr("mode", "CRD").check();
}

TEST(Gradients, Trilu) {
  GradientCase("Trilu").input({2, 4, 3}).check();
  GradientCase("Trilu").input({4, 4}).fixed<int64_t>({}, {1}).attr("upper", int64_t{0}).check();
}

TEST(Gradients, OneHot) {
  GradientCase("OneHot").given<int64_t>({3}, {0, 2, 7}).fixed<int64_t>({}, {4}).input({2}).check();
}

TEST(Gradients, Cast) {
  GradientCase("Cast").input({2, 3}).attr("to", int64_t{11}).only_double().check();
  GradientCase("CastLike").input({2, 3}).given<double>({1}, {0}).only_double().check();
}

// The same seed draws the same numbers in every run, so that differences see one mask.
TEST(Gradients, Dropout) {
  GradientCase("Dropout").input({30}).check();
  GradientCase("Dropout")
      .input({3, 30})
      .given<float>({}, {0.4f})
      .fixed<bool>({}, {true})
      .attr("seed", int64_t{5})
      .check();
  GradientCase("Dropout", 11).input({30}).check();
}

}  // namespace
}  // namespace plimsoll
