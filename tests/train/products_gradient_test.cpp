// Matrix products, convolutions and poolings against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

TEST(Gradients, MatMulOfBatches) {
  GradientCase("MatMul").input({3, 4}).input({4, 5}).check();
  GradientCase("MatMul").input({2, 3, 4}).input({4, 5}).check();
  GradientCase("MatMul").input({2, 3, 4}).symbol(0, "n").input({4, 5}).check();
  GradientCase("MatMul").input({2, 3, 4}).input({2, 4, 5}).check();
  GradientCase("MatMul").input({3, 4}).input({2, 4, 5}).check();
  GradientCase("MatMul").input({2, 1, 3, 4}).input({5, 4, 2}).check();
}

TEST(Gradients, MatMulOfVectors) {
  GradientCase("MatMul").input({4}).input({4, 5}).check();
  GradientCase("MatMul").input({4}).input({2, 4, 5}).check();
  GradientCase("MatMul").input({3, 4}).input({4}).check();
  GradientCase("MatMul").input({2, 3, 4}).input({4}).check();
  GradientCase("MatMul").input({4}).input({4}).check();
}

TEST(Gradients, Gemm) {
  for (int64_t a : {0, 1}) {
    for (int64_t b : {0, 1}) {
      GradientCase("Gemm")
          .input(a == 0 ? std::vector<int64_t>{3, 4} : std::vector<int64_t>{4, 3})
          .input(b == 0 ? std::vector<int64_t>{4, 5} : std::vector<int64_t>{5, 4})
          .input({5})
          .attr("transA", a)
          .attr("transB", b)
          .attr("alpha", 0.5f)
          .attr("beta", 1.5f)
          .check();
    }
  }
  GradientCase("Gemm").input({3, 4}).input({4, 5}).check();
  GradientCase("Gemm").input({3, 4}).input({4, 5}).input({3, 1}).check();
  GradientCase("Gemm").input({3, 4}).input({4, 5}).input({}).check();
}

TEST(Gradients, Conv) {
  // Channels that become known later only, as behind a Resize whose scales are computed.
  GradientCase("Conv").input({1, 2, 5, 5}).symbol(1, "channels").input({3, 2, 3, 3}).check();
  GradientCase("Conv")
      .input({1, 4, 5, 5})
      .symbol(1, "channels")
      .input({6, 2, 3, 3})
      .attr("group", int64_t{2})
      .check();
  GradientCase("Conv").input({2, 3, 7, 6}).input({4, 3, 3, 2}).input({4}).check();
  GradientCase("Conv").input({2, 3, 5, 6}).input({4, 3, 1, 1}).check();
  GradientCase("Conv").input({2, 3, 5, 6}).input({4, 3, 1, 1}).attr("strides", Ints{2, 2}).check();
  GradientCase("Conv")
      .input({2, 3, 8, 9})
      .symbol(0, "n")
      .input({4, 3, 3, 3})
      .attr("strides", Ints{2, 2})
      .attr("pads", Ints{1, 1, 1, 1})
      .check();
  GradientCase("Conv")
      .input({1, 2, 8, 9})
      .input({3, 2, 3, 2})
      .attr("dilations", Ints{2, 3})
      .attr("pads", Ints{2, 0, 1, 3})
      .check();
  GradientCase("Conv")
      .input({2, 3, 11})
      .input({4, 3, 4})
      .attr("strides", Ints{3})
      .attr("pads", Ints{1, 2})
      .check();
}

TEST(Gradients, ConvOfManyChannels) {
  GradientCase("Conv").input({2, 33, 5, 5}).input({40, 33, 3, 3}).attr("pads", Ints{1, 1, 1, 1}).check();
  GradientCase("Conv").input({2, 64, 6, 6}).input({35, 64, 3, 3}).attr("strides", Ints{2, 2}).check();
  GradientCase("Conv").input({2, 64, 6, 6}).input({48, 64, 1, 1}).check();
}

TEST(Gradients, ConvOfSymbolicSizes) {
  GradientCase("Conv")
      .input({2, 3, 8, 9})
      .symbol(2, "h")
      .symbol(3, "w")
      .input({4, 3, 3, 3})
      .attr("pads", Ints{1, 1, 1, 1})
      .check();
}

TEST(Gradients, ConvSamePadding) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    GradientCase("Conv")
        .input({1, 2, 6, 7})
        .input({3, 2, 4, 3})
        .attr("auto_pad", mode)
        .attr("strides", Ints{2, 1})
        .check();
  }
}

TEST(Gradients, ConvOfGroups) {
  GradientCase("Conv").input({2, 6, 5, 5}).input({4, 3, 3, 3}).attr("group", int64_t{2}).check();
  GradientCase("Conv")
      .input({2, 4, 6, 5})
      .input({4, 1, 3, 3})
      .attr("group", int64_t{4})
      .attr("pads", Ints{1, 1, 1, 1})
      .check();
  GradientCase("Conv")
      .input({2, 20, 7, 6})
      .input({20, 1, 3, 3})
      .attr("group", int64_t{20})
      .attr("strides", Ints{2, 2})
      .attr("pads", Ints{1, 1, 1, 1})
      .check();
  GradientCase("Conv").input({1, 3, 5, 5}).input({6, 1, 3, 3}).attr("group", int64_t{3}).check();
}

TEST(Gradients, ConvOfVolumes) {
  GradientCase("Conv")
      .input({2, 2, 4, 5, 6})
      .input({3, 2, 2, 3, 2})
      .attr("strides", Ints{1, 2, 1})
      .attr("pads", Ints{1, 0, 1, 0, 1, 0})
      .check();
  GradientCase("Conv").input({1, 4, 3, 5, 4}).input({4, 1, 2, 3, 3}).attr("group", int64_t{4}).check();
}

TEST(Gradients, ConvTranspose) {
  GradientCase("ConvTranspose").input({2, 3, 4, 5}).input({3, 2, 3, 3}).input({2}).check();
  GradientCase("ConvTranspose")
      .input({1, 4, 3, 4})
      .input({4, 1, 3, 3})
      .attr("group", int64_t{2})
      .attr("strides", Ints{2, 2})
      .attr("pads", Ints{1, 1, 1, 1})
      .attr("output_padding", Ints{1, 1})
      .check();
  GradientCase("ConvTranspose").input({1, 2, 3, 4}).input({2, 3, 2, 2}).attr("strides", Ints{2, 2}).check();
  GradientCase("ConvTranspose")
      .input({1, 2, 3, 4})
      .input({2, 3, 3, 3})
      .attr("strides", Ints{2, 2})
      .attr("output_shape", Ints{6, 8})
      .check();
  GradientCase("ConvTranspose")
      .input({1, 2, 3, 4})
      .input({2, 3, 3, 3})
      .attr("strides", Ints{2, 2})
      .attr("auto_pad", "SAME_UPPER")
      .check();
  GradientCase("ConvTranspose").input({1, 2, 3, 4, 3}).input({2, 2, 2, 2, 2}).check();
}

TEST(Gradients, MaxPool) {
  GradientCase("MaxPool").distinct({2, 3, 6, 7}).attr("kernel_shape", Ints{2, 3}).check();
  GradientCase("MaxPool")
      .distinct({2, 3, 7, 7})
      .attr("kernel_shape", Ints{3, 3})
      .attr("strides", Ints{2, 2})
      .attr("pads", Ints{1, 1, 1, 1})
      .check();
  GradientCase("MaxPool")
      .distinct({1, 2, 8, 8})
      .attr("kernel_shape", Ints{2, 2})
      .attr("dilations", Ints{2, 3})
      .attr("ceil_mode", int64_t{1})
      .attr("strides", Ints{2, 2})
      .check();
  GradientCase("MaxPool")
      .distinct({2, 3, 9})
      .attr("kernel_shape", Ints{3})
      .attr("auto_pad", "SAME_UPPER")
      .check();
  GradientCase("MaxPool").distinct({1, 2, 4, 4, 4}).attr("kernel_shape", Ints{2, 2, 2}).outputs(2).check();
}

TEST(Gradients, AveragePool) {
  GradientCase("AveragePool").input({2, 3, 6, 7}).attr("kernel_shape", Ints{2, 3}).check();
  for (int64_t counted : {0, 1}) {
    GradientCase("AveragePool")
        .input({2, 3, 7, 7})
        .symbol(0, "n")
        .attr("kernel_shape", Ints{3, 3})
        .attr("strides", Ints{2, 2})
        .attr("pads", Ints{1, 1, 1, 1})
        .attr("count_include_pad", counted)
        .attr("ceil_mode", int64_t{1})
        .check();
  }
  GradientCase("AveragePool").input({2, 3, 9}).attr("kernel_shape", Ints{3}).check();
}

TEST(Gradients, LpPool) {
  GradientCase("LpPool").input({2, 3, 6, 7}).attr("kernel_shape", Ints{2, 3}).check();
  GradientCase("LpPool").input({2, 3, 6, 7}).attr("kernel_shape", Ints{2, 3}).attr("p", int64_t{3}).check();
}

TEST(Gradients, GlobalPools) {
  GradientCase("GlobalAveragePool").input({2, 3, 4, 5}).check();
  GradientCase("GlobalAveragePool").input({2, 3, 4, 5}).symbol(3, "w").check();
  GradientCase("GlobalMaxPool").distinct({2, 3, 4, 5}).check();
  GradientCase("GlobalLpPool").input({2, 3, 4, 5}).check();
  GradientCase("GlobalLpPool").input({2, 3, 4, 5}, 0.1, 2).attr("p", int64_t{3}).check();
}

}  // namespace
}  // namespace plimsoll
