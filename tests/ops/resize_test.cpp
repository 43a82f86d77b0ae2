#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/op_case.h"
#include "ops/symbolic_case.h"

namespace plimsoll {
namespace {

using Dims = std::vector<TestDim>;
using Floats = std::vector<float>;
constexpr ElementType kFloat = ElementType::kFloat;

Floats from_one(size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

// Resize of opset 18 with scales.
OpCase& scaled(OpCase& c, const std::vector<int64_t>& dims, const Floats& data, const Floats& scales) {
  return c.input<float>(dims, data).absent().input<float>({static_cast<int64_t>(scales.size())}, scales);
}

// The expected numbers are those of the ONNX specification's own examples.
TEST(Resize, NearestRepeats) {
  OpCase up("Resize", 18);
  scaled(up, {1, 1, 2, 2}, from_one(4), {1, 1, 2, 3})
      .attr("mode", "nearest")
      .run()
      .expect<float>(0, {1, 1, 4, 6},
                     {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  OpCase down("Resize", 18);
  scaled(down, {1, 1, 2, 4}, from_one(8), {1, 1, 0.6f, 0.6f}).run().expect<float>(0, {1, 1, 1, 2}, {1, 3});
}

TEST(Resize, NearestRoundsAsAsked) {
  auto row = [](const char* mode, const char* coordinates, const std::vector<int32_t>& expected) {
    OpCase("Resize", 18)
        .input<int32_t>({4}, {1, 2, 3, 4})
        .absent()
        .absent()
        .input<int64_t>({1}, {8})
        .attr("nearest_mode", mode)
        .attr("coordinate_transformation_mode", coordinates)
        .run()
        .expect<int32_t>(0, {8}, expected);
  };
  row("ceil", "half_pixel", {1, 2, 2, 3, 3, 4, 4, 4});
  row("floor", "align_corners", {1, 1, 1, 2, 2, 3, 3, 4});
  row("round_prefer_ceil", "asymmetric", {1, 2, 2, 3, 3, 4, 4, 4});
  row("round_prefer_floor", "asymmetric", {1, 1, 2, 2, 3, 3, 4, 4});
  EXPECT_THROW(row("odd", "asymmetric", {}), Error);
  EXPECT_THROW(row("floor", "odd", {}), Error);
}

// ONNX 1.5's own example of it.
TEST(Resize, OfOpset10RoundsUpWhereItShrinks) {
  OpCase("Resize", 10)
      .input<float>({1, 1, 2, 4}, from_one(8))
      .input<float>({4}, {1, 1, 0.6f, 0.6f})
      .run()
      .expect<float>(0, {1, 1, 1, 2}, {1, 3});
  OpCase("Resize", 10)
      .input<float>({2}, from_one(2))
      .input<float>({1}, {2})
      .run()
      .expect<float>(0, {4}, {1, 1, 2, 2});
}

TEST(Resize, LinearFollowsTheCoordinates) {
  OpCase up("Resize", 18);
  scaled(up, {1, 1, 2, 2}, from_one(4), {1, 1, 2, 2})
      .attr("mode", "linear")
      .run()
      .expect<float>(0, {1, 1, 4, 4},
                     {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
  OpCase down("Resize", 18);
  scaled(down, {1, 1, 2, 4}, from_one(8), {1, 1, 0.6f, 0.6f})
      .attr("mode", "linear")
      .run()
      .expect<float>(0, {1, 1, 1, 2}, {2.6666665f, 4.3333331f});
  OpCase corners("Resize", 18);
  scaled(corners, {1, 1, 2, 4}, from_one(8), {1, 1, 0.6f, 0.6f})
      .attr("mode", "linear")
      .attr("coordinate_transformation_mode", "align_corners")
      .run()
      .expect<float>(0, {1, 1, 1, 2}, {1, 3.142857f});
}

TEST(Resize, CubicMatchesTheSpecification) {
  OpCase c("Resize", 18);
  scaled(c, {1, 1, 4, 4}, from_one(16), {1, 1, 2, 2}).attr("mode", "cubic").run();
  const Floats first = {0.47265625f, 0.76953125f, 1.24609375f, 1.875f,
                        2.28125f,    2.91015625f, 3.38671875f, 3.68359375f};
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(c.result().as<float>()[i], first[i], 1e-5);
  OpCase excluded("Resize", 18);
  scaled(excluded, {1, 1, 4, 4}, from_one(16), {1, 1, 0.8f, 0.8f})
      .attr("mode", "cubic")
      .attr("cubic_coeff_a", -0.5f)
      .attr("exclude_outside", int64_t{1})
      .run()
      .expect<float>(0, {1, 1, 3, 3},
                     {1.36812675f, 2.6695014f, 4.0133367f, 6.57362535f, 7.875f, 9.2188353f, 11.94896657f,
                      13.25034122f, 14.59417652f},
                     1e-4);
}

TEST(Resize, AntialiasMatchesTheSpecification) {
  OpCase c("Resize", 18);
  scaled(c, {1, 1, 4, 4}, from_one(16), {1, 1, 0.6f, 0.6f})
      .attr("mode", "linear")
      .attr("antialias", int64_t{1})
      .run()
      .expect<float>(0, {1, 1, 2, 2}, {2.875f, 4.5f, 9.375f, 11.0f}, 1e-4);
}

TEST(Resize, CropsAndExtrapolates) {
  auto crop = [](const Floats& roi, const Floats& expected) {
    OpCase("Resize", 13)
        .input<float>({1, 1, 4, 4}, from_one(16))
        .input<float>({static_cast<int64_t>(roi.size())}, roi)
        .input<float>({0}, {})
        .input<int64_t>({4}, {1, 1, 3, 3})
        .attr("mode", "linear")
        .attr("coordinate_transformation_mode", "tf_crop_and_resize")
        .attr("extrapolation_value", 10.0f)
        .run()
        .expect<float>(0, {1, 1, 3, 3}, expected, 1e-4);
  };
  crop({0, 0, 0.4f, 0.6f, 1, 1, 0.6f, 0.8f}, {7.6f, 7.9f, 8.2f, 8.8f, 9.1f, 9.4f, 10, 10.3f, 10.6f});
  crop({0, 0, 0.4f, 0.6f, 1, 1, 1.2f, 1.7f}, {7.6f, 10, 10, 12.4f, 10, 10, 10, 10, 10});
  EXPECT_THROW(crop({0, 0, 1, 1}, {}), Error);
}

TEST(Resize, KeepsTheAspectRatio) {
  auto sized = [](const char* policy, const std::vector<int64_t>& dims) {
    OpCase c("Resize", 18);
    c.input<float>({1, 1, 2, 4}, from_one(8))
        .absent()
        .absent()
        .input<int64_t>({2}, {7, 8})
        .attr("axes", std::vector<int64_t>{2, 3})
        .attr("keep_aspect_ratio_policy", policy)
        .run();
    EXPECT_EQ(std::vector<int64_t>(c.result().dims.begin(), c.result().dims.end()), dims);
  };
  sized("stretch", {1, 1, 7, 8});
  sized("not_larger", {1, 1, 4, 8});
  sized("not_smaller", {1, 1, 7, 14});
}

// The element-by-element path (double) against the row loops (float), on both layouts.
TEST(Resize, RowLoopsAgreeWithTheObviousOnes) {
  const int64_t channels = 5, h = 9, w = 13;
  Floats nchw(static_cast<size_t>(channels * h * w));
  for (size_t i = 0; i < nchw.size(); ++i) nchw[i] = static_cast<float>((i * 7919) % 101) / 10.0f;
  Floats nhwc(nchw.size());
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t p = 0; p < h * w; ++p)
      nhwc[static_cast<size_t>(p * channels + c)] = nchw[static_cast<size_t>(c * h * w + p)];
  }
  const std::vector<double> wide(nchw.begin(), nchw.end());
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const auto& [oh, ow] : {std::pair<int64_t, int64_t>{18, 26}, {20, 31}, {4, 13}, {9, 40}, {1, 1}}) {
      OpCase slow("Resize", 18), rows("Resize", 18), last("Resize", 18);
      slow.input<double>({1, channels, h, w}, wide)
          .absent()
          .absent()
          .input<int64_t>({4}, {1, channels, oh, ow});
      rows.input<float>({1, channels, h, w}, nchw)
          .absent()
          .absent()
          .input<int64_t>({4}, {1, channels, oh, ow});
      last.input<float>({1, h, w, channels}, nhwc)
          .absent()
          .absent()
          .input<int64_t>({4}, {1, oh, ow, channels});
      slow.attr("mode", mode).run();
      rows.attr("mode", mode).threads(2).run();
      last.attr("mode", mode).threads(3).run();
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t p = 0; p < oh * ow; ++p) {
          const auto expected = static_cast<float>(slow.result().as<double>()[c * oh * ow + p]);
          EXPECT_NEAR(rows.result().as<float>()[c * oh * ow + p], expected, 1e-4) << mode << oh << "x" << ow;
          EXPECT_NEAR(last.result().as<float>()[p * channels + c], expected, 1e-4) << mode << oh << "x" << ow;
        }
      }
    }
  }
}

// Against floats that are dequantized before and quantized behind: within one step, and mostly equal.
template <typename T>
void quantized_resize(const std::vector<int64_t>& dims, const std::vector<int64_t>& sizes, const char* mode,
                      const char* coordinates, int threads) {
  SCOPED_TRACE(testing::Message() << mode << " " << coordinates << " " << sizes.back() << " of "
                                  << dims.back());
  const float x_scale = 0.05f, y_scale = 0.0437f;
  const int low = std::numeric_limits<T>::min(), x_zero = low + 100, y_zero = low + 90;
  size_t count = 1;
  for (int64_t d : dims) count *= static_cast<size_t>(d);
  std::vector<T> bytes;
  Floats numbers;
  for (size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<T>(low + static_cast<int>(i * 7919 % 256)));
    numbers.push_back(static_cast<float>(bytes.back() - x_zero) * x_scale);
  }
  const auto rank = static_cast<int64_t>(sizes.size());
  OpCase floats("Resize", 19), op("QLinearResize", 1, std::string(kPlimsollDomain));
  floats.input<float>(dims, numbers).absent().absent().template input<int64_t>({rank}, sizes);
  floats.attr("mode", mode).attr("coordinate_transformation_mode", coordinates).run();
  op.input<T>(dims, bytes).template input<float>({}, {x_scale});
  op.template input<T>({}, {static_cast<T>(x_zero)}).template input<float>({}, {y_scale});
  op.template input<T>({}, {static_cast<T>(y_zero)}).absent().template input<int64_t>({rank}, sizes);
  op.attr("mode", mode).attr("coordinate_transformation_mode", coordinates).threads(threads).run();
  const TensorView &expected = floats.result(), &found = op.result();
  ASSERT_EQ(found.elements(), expected.elements());
  int64_t apart = 0;
  for (int64_t i = 0; i < found.elements(); ++i) {
    const float whole = std::nearbyint(expected.as<float>()[i] / y_scale) + static_cast<float>(y_zero);
    const int step =
        static_cast<int>(std::clamp(whole, static_cast<float>(low), static_cast<float>(low + 255)));
    ASSERT_NEAR(found.as<T>()[i], step, 1) << i;
    apart += found.as<T>()[i] != step ? 1 : 0;
  }
  EXPECT_LE(apart, found.elements() / 50 + 1);
}

TEST(Resize, OfBytesIsWithinOneStep) {
  for (const char* coordinates : {"half_pixel", "align_corners", "asymmetric"}) {
    for (const char* mode : {"linear", "cubic"}) {
      for (const auto& [h, w] : {std::pair<int64_t, int64_t>{18, 26}, {4, 70}, {9, 40}, {9, 13}, {1, 1}}) {
        quantized_resize<uint8_t>({2, 3, 9, 13}, {2, 3, h, w}, mode, coordinates, 2);
        quantized_resize<int8_t>({1, 9, 13, 21}, {1, h, w, 21}, mode, coordinates, 1);
      }
    }
    quantized_resize<int8_t>({3, 4, 5}, {3, 4, 11}, "linear", coordinates, 1);
    quantized_resize<uint8_t>({3, 4, 5, 2}, {5, 7, 8, 2}, "linear", coordinates, 1);  // three axes
  }
}

TEST(Resize, IsSymbolic) {
  SymbolicCase sizes("Resize", 13);
  EXPECT_EQ(sizes.input(kFloat, Dims{"n", 3, "h", "w"})
                .absent()
                .absent()
                .list(Dims{"n", 3, "a", "b"})
                .infer()
                .dims(),
            "[n, 3, a, b]");
  SymbolicCase twice("Resize", 13);
  EXPECT_EQ(twice.input(kFloat, Dims{"n", 3, "h", "w"}).absent().reals({1, 1, 2, 0.5f}).infer().dims(),
            "[n, 3, 2*h, floor((w)/(2))]");
  SymbolicCase unknown("Resize", 13);
  unknown.input(kFloat, Dims{"n", 3}).absent().absent().input(ElementType::kInt64, Dims{2}).infer();
  EXPECT_TRUE(unknown.facts().type.dims[0].depends_on_data());
}

TEST(Resize, RefusesWhatCannotBe) {
  auto scales = [](const Floats& list) {
    OpCase c("Resize", 18);
    scaled(c, {2, 2}, from_one(4), list).run();
  };
  EXPECT_THROW(scales({1}), Error);
  EXPECT_THROW(scales({1, 0}), Error);
  EXPECT_THROW(scales({1, -1}), Error);
  EXPECT_THROW(scales({1, NAN}), Error);
  EXPECT_THROW(scales({1, INFINITY}), Error);
  EXPECT_THROW(scales({1e18f, 1e18f}), Error);
  EXPECT_THROW(OpCase("Resize", 18).input<float>({2}, {1, 2}).run(), Error);
  EXPECT_THROW(OpCase("Resize", 18).input<float>({0}, {}).absent().absent().input<int64_t>({1}, {3}).run(),
               Error);
  OpCase("Resize", 18)
      .input<float>({2}, {1, 2})
      .absent()
      .absent()
      .input<int64_t>({1}, {0})
      .run()
      .expect<float>(0, {0}, {});
}

TEST(Upsample, IsTheOldResize) {
  OpCase("Upsample", 9)
      .input<float>({1, 1, 2, 2}, from_one(4))
      .input<float>({4}, {1, 1, 2, 3})
      .attr("mode", "nearest")
      .run()
      .expect<float>(0, {1, 1, 4, 6},
                     {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  Attribute a;
  const Floats scales = {1, 2};
  a.name = "scales", a.type = AttributeType::kFloats, a.floats = scales;
  OpCase("Upsample", 7)
      .input<float>({1, 2}, {1, 2})
      .attr(a)
      .attr("mode", "linear")
      .run()
      .expect<float>(0, {1, 4}, {1, 1.5f, 2, 2});
}

}  // namespace
}  // namespace plimsoll
