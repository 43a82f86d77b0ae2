// Pieces of images, given in parts of their height and width, brought to one size with corners aligned.
#include <cmath>

#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kRois = 1, kImages = 2, kSize = 3;

struct CropAttrs {
  bool nearest = false;
  float outside = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CropAttrs>();
  const std::string_view mode = c.text("mode", "bilinear");
  if (mode != "bilinear" && mode != "nearest")
    c.reject("attribute 'mode': expected bilinear or nearest, found '{}'", mode);
  a->nearest = mode == "nearest";
  a->outside = c.real("extrapolation_value", 0.0f);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kRois);
  for (size_t i : {kImages, kSize}) c.expect_type(i, types(ElementType::kInt32));
  c.expect_rank(kX, 4, 4);
  c.expect_rank(kRois, 2, 2);
  c.expect_rank(kImages, 1, 1);
  c.expect_rank(kSize, 1, 1);
  if (c.ranked(kRois)) unify(c, c.dims(kRois)[1], Dim(4));
  if (c.ranked(kSize)) unify(c, c.dims(kSize)[0], Dim(2));
  if (!c.ranked(kX) || !c.ranked(kRois)) return c.set_unranked_output(0, c.type(kX));
  Dim count = c.dims(kRois)[0], height = c.unknown("height"), width = c.unknown("width");
  if (c.ranked(kImages)) count = unify(c, count, c.dims(kImages)[0]);
  if (const auto size = c.values(kSize)) height = (*size)[0], width = (*size)[1];
  for (const Dim& d : {height, width}) {
    if (d.is_constant() && d.value() < 1) c.reject("crop_size: expected at least 1, found {}", d.value());
  }
  c.set_output(0, c.type(kX), std::vector<Dim>{count, c.dims(kX)[1], height, width});
}

// Where output position i of `count` lies among `size` elements; not between them, if outside.
double position_of(int64_t i, int64_t count, double begin, double end, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  if (count == 1) return 0.5 * (begin + end) * last;
  if (i == count - 1) return end * last;
  return begin * last + static_cast<double>(i) * ((end - begin) * last / static_cast<double>(count - 1));
}
bool is_inside(double at, int64_t size) {
  return at >= 0 && at <= static_cast<double>(size - 1);
}

class Crop {
 public:
  Crop(const RunContext& c, int64_t roi) : c_(c), a_(c.attrs<CropAttrs>()), roi_(roi) {
    read_floats(c.inputs[kRois], roi * 4, 4, box_);
    image_ = c.inputs[kImages].as<int32_t>()[roi];
    if (image_ < 0 || image_ >= c.inputs[kX].dims[0])
      fail(ErrorCode::kInvalidArgument, "{}: batch index {} is outside [0, {})", c.node->label(), image_,
           c.inputs[kX].dims[0]);
  }

  void run() const {
    const auto y = c_.outputs[0].dims, x = c_.inputs[kX].dims;
    for (int64_t row = 0; row < y[2]; ++row) {
      const double at_y = position_of(row, y[2], box_[0], box_[2], x[2]);
      for (int64_t column = 0; column < y[3]; ++column) {
        const double at_x = position_of(column, y[3], box_[1], box_[3], x[3]);
        for (int64_t channel = 0; channel < y[1]; ++channel) {
          const double value = is_inside(at_y, x[2]) && is_inside(at_x, x[3]) ? sampled(channel, at_y, at_x)
                                                                              : double{a_.outside};
          write_floats(c_.outputs[0], ((roi_ * y[1] + channel) * y[2] + row) * y[3] + column, 1, &value);
        }
      }
    }
  }

 private:
  double pixel(int64_t channel, double row, double column) const {
    const auto x = c_.inputs[kX].dims;
    double value;
    read_floats(
        c_.inputs[kX],
        ((image_ * x[1] + channel) * x[2] + static_cast<int64_t>(row)) * x[3] + static_cast<int64_t>(column),
        1, &value);
    return value;
  }
  double sampled(int64_t channel, double y, double x) const {
    if (a_.nearest) return pixel(channel, std::round(y), std::round(x));
    const double top = std::floor(y), left = std::floor(x), below = std::ceil(y), right = std::ceil(x);
    const auto across = [&](double row) {
      const double first = pixel(channel, row, left);
      return first + (pixel(channel, row, right) - first) * (x - left);
    };
    const double upper = across(top);
    return upper + (across(below) - upper) * (y - top);
  }

  const RunContext& c_;
  const CropAttrs& a_;
  int64_t roi_, image_ = 0;
  double box_[4];
};

void run(const RunContext& c) {
  for (int64_t roi = 0; roi < c.outputs[0].dims[0]; ++roi) Crop(c, roi).run();
}

}  // namespace

extern const OpDef op_microsoft_crop_and_resize = {.domain = kMicrosoftDomain,
                                                   .name = "CropAndResize",
                                                   .inputs = {4, 4},
                                                   .attrs = attrs,
                                                   .infer = infer,
                                                   .run = run};

}  // namespace plimsoll
