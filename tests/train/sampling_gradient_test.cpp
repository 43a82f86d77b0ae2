// Resampling, transforms and what else is linear in its input against central differences.
#include "train/gradient_case.h"

namespace plimsoll {
namespace {

using Ints = std::vector<int64_t>;

TEST(Gradients, ResizeByScales) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"}) {
      SCOPED_TRACE(std::string(mode) + " " + coordinates);
      for (const std::vector<float>& scales :
           {std::vector<float>{1, 1, 2, 1.5f}, std::vector<float>{1, 1, 0.6f, 0.5f}}) {
        GradientCase("Resize")
            .input({1, 2, 4, 6})
            .absent()
            .fixed<float>({4}, scales)
            .attr("mode", mode)
            .attr("coordinate_transformation_mode", coordinates)
            .check();
      }
    }
  }
}

TEST(Gradients, ResizeBySizes) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const int64_t antialias : {0, 1}) {
      GradientCase("Resize")
          .input({1, 2, 5, 6})
          .absent()
          .absent()
          .fixed<int64_t>({2}, {3, 9})
          .attr("mode", mode)
          .attr("axes", Ints{2, 3})
          .attr("antialias", std::string(mode) == "nearest" ? int64_t{0} : antialias)
          .check();
    }
  }
  GradientCase("Resize")
      .input({1, 2, 4, 6})
      .absent()
      .absent()
      .fixed<int64_t>({2}, {7, 8})
      .attr("mode", "cubic")
      .attr("axes", Ints{-2, -1})
      .attr("keep_aspect_ratio_policy", "not_larger")
      .attr("exclude_outside", int64_t{1})
      .check();
}

TEST(Gradients, ResizeOfARegion) {
  GradientCase("Resize")
      .input({1, 1, 4, 6})
      .fixed<float>({8}, {0, 0, 0.2f, -0.1f, 1, 1, 0.7f, 1.2f})
      .absent()
      .fixed<int64_t>({4}, {1, 1, 5, 4})
      .attr("mode", "linear")
      .attr("coordinate_transformation_mode", "tf_crop_and_resize")
      .attr("extrapolation_value", 3.0f)
      .check();
  GradientCase("Resize")
      .input({2, 3, 4, 3, 2})
      .absent()
      .fixed<float>({5}, {1, 1, 2, 2, 3})
      .attr("mode", "linear")
      .check();
  GradientCase("Resize")
      .input({2, 2, 4})
      .symbol(0, "n")
      .symbol(2, "w")
      .absent()
      .fixed<float>({3}, {1, 1, 2})
      .attr("mode", "linear")
      .check();
}

TEST(Gradients, Upsample) {
  for (const char* mode : {"nearest", "linear"}) {
    GradientCase("Upsample", 9)
        .input({1, 2, 3, 4})
        .fixed<float>({4}, {1, 1, 2, 3})
        .attr("mode", mode)
        .check();
    GradientCase("Upsample", 7)
        .input({1, 2, 3, 4})
        .attr("scales", std::vector<float>{1, 1, 2, 2})
        .attr("mode", mode)
        .check();
  }
}

TEST(Gradients, GridSample) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      for (const int64_t align : {0, 1}) {
        SCOPED_TRACE(std::string(mode) + " " + padding + " " + std::to_string(align));
        GradientCase("GridSample")
            .input({2, 2, 5, 7})
            .input({2, 3, 4, 2}, -1.4, 1.4)
            .attr("mode", mode)
            .attr("padding_mode", padding)
            .attr("align_corners", align)
            .check(1e-5);
      }
    }
  }
  GradientCase("GridSample").input({1, 2, 3, 4, 5}).input({1, 2, 2, 3, 3}, -1.2, 1.2).check(1e-5);
  GradientCase("GridSample", 16)
      .input({1, 2, 4, 5})
      .input({1, 2, 3, 2}, -0.9, 0.9)
      .attr("mode", "bilinear")
      .check(1e-5);
}

TEST(Gradients, AffineGrid) {
  for (const int64_t align : {0, 1}) {
    GradientCase("AffineGrid")
        .input({2, 2, 3})
        .fixed<int64_t>({4}, {2, 3, 4, 5})
        .attr("align_corners", align)
        .check();
    GradientCase("AffineGrid")
        .input({1, 3, 4})
        .fixed<int64_t>({5}, {1, 2, 3, 4, 5})
        .attr("align_corners", align)
        .check();
  }
}

TEST(Gradients, Determinants) {
  GradientCase("Det").input({3, 3}).check();
  GradientCase("Det").input({2, 2, 4, 4}).check();
  GradientCase("Det").at({3, 3}, {1, 2, 3, 2, 4, 6, -1, 0.5, 2}).check();  // singular
  GradientCase("Det").at({2, 2}, {0, 0, 0, 0}).check();
  GradientCase("Det").input({1, 1}).check();
  GradientCase("Inverse", 1, "com.microsoft").at({2, 2, 2}, {2, 0.3, -0.4, 1.5, 1, 0.2, 0.1, -2}).check(1e-5);
}

TEST(Gradients, CumProd) {
  for (const int64_t exclusive : {0, 1}) {
    for (const int64_t reverse : {0, 1}) {
      GradientCase("CumProd", 26)
          .input({2, 4, 3})
          .fixed<int64_t>({}, {1})
          .attr("exclusive", exclusive)
          .attr("reverse", reverse)
          .check();
      GradientCase("CumProd", 26)
          .at({5}, {1.5, 0, -2, 0, 3})
          .fixed<int64_t>({}, {-1})
          .attr("exclusive", exclusive)
          .attr("reverse", reverse)
          .check();
    }
  }
}

TEST(Gradients, Movements) {
  GradientCase("CenterCropPad").input({4, 7, 3}).fixed<int64_t>({2}, {7, 4}).attr("axes", Ints{0, 1}).check();
  GradientCase("ReverseSequence").input({4, 3, 2}).fixed<int64_t>({3}, {4, 1, 2}).check();
  GradientCase("Compress")
      .input({4, 3})
      .given<bool>({4}, {true, false, true, true})
      .attr("axis", int64_t{0})
      .check();
  GradientCase("Compress").input({2, 3}).given<bool>({5}, {true, false, true, true, false}).check();
  GradientCase("MaxUnpool")
      .input({1, 1, 2, 2})
      .fixed<int64_t>({1, 1, 2, 2}, {0, 3, 8, 15})
      .attr("kernel_shape", Ints{2, 2})
      .attr("strides", Ints{2, 2})
      .check();
  GradientCase("MaxUnpool")
      .input({1, 1, 2, 2})
      .fixed<int64_t>({1, 1, 2, 2}, {0, 3, 8, 15})
      .fixed<int64_t>({4}, {1, 1, 5, 5})
      .attr("kernel_shape", Ints{2, 2})
      .attr("strides", Ints{2, 2})
      .check();
  GradientCase("Col2Im")
      .input({2, 12, 4})
      .fixed<int64_t>({2}, {5, 4})
      .fixed<int64_t>({2}, {2, 3})
      .attr("strides", Ints{3, 1})
      .check();
  GradientCase("Col2Im")
      .input({1, 8, 9})
      .fixed<int64_t>({2}, {4, 4})
      .fixed<int64_t>({2}, {2, 2})
      .attr("dilations", Ints{2, 2})
      .attr("pads", Ints{1, 0, 0, 1})
      .check();
  GradientCase("Range").at({}, {0.5}).fixed<double>({}, {4.2}).at({}, {0.7}).only_double().check();
}

TEST(Gradients, LocalResponses) {
  for (const int64_t size : {1, 2, 3, 4}) {
    GradientCase("LRN")
        .input({2, 5, 3})
        .attr("size", size)
        .attr("alpha", 0.3f)
        .attr("beta", 0.6f)
        .attr("bias", 1.5f)
        .check();
  }
}

TEST(Gradients, Fourier) {
  for (const int64_t inverse : {0, 1}) {
    GradientCase("DFT").input({2, 6, 2}).attr("inverse", inverse).check();
    GradientCase("DFT").input({2, 6, 1}).attr("inverse", inverse).check();
    GradientCase("DFT").input({5, 3, 2}).absent().fixed<int64_t>({}, {0}).attr("inverse", inverse).check();
    GradientCase("DFT").input({2, 6, 2}).fixed<int64_t>({}, {4}).attr("inverse", inverse).check();
    GradientCase("DFT").input({2, 6, 2}).fixed<int64_t>({}, {8}).attr("inverse", inverse).check();
  }
  GradientCase("DFT", 17).input({2, 7, 1}).attr("onesided", int64_t{1}).check();
}

TEST(Gradients, SkipLayerNormalization) {
  GradientCase("SkipLayerNormalization", 1, "com.microsoft")
      .input({2, 3, 4})
      .input({2, 3, 4})
      .input({4})
      .input({4})
      .input({4})
      .attr("epsilon", 1e-3f)
      .check();
}

}  // namespace
}  // namespace plimsoll
