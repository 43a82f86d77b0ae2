// A part of an image. An operator of ONNX's experimental days that old converters write and ONNX Runtime
// still has.
#include "ops/microsoft_decomposed.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct CropAttrs {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
  int64_t height = -1, width = -1;  // from there on; -1: up to the other border
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CropAttrs>();
  const auto border = c.integers("border");
  if (border.size() != 4) c.reject("attribute 'border': expected 4 numbers, found {}", border.size());
  a->left = border[0], a->top = border[1], a->right = border[2], a->bottom = border[3];
  const auto scale = c.integers("scale");
  if (!scale.empty() && scale.size() != 2)
    c.reject("attribute 'scale': expected 2 numbers, found {}", scale.size());
  if (!scale.empty()) a->height = scale[0], a->width = scale[1];
  for (int64_t number : {a->left, a->top, a->right, a->bottom}) {
    if (number < 0 || number > INT32_MAX) c.reject("attribute 'border': expected sizes, found {}", number);
  }
  for (int64_t number : scale) {
    if (number < 0 || number > INT32_MAX) c.reject("attribute 'scale': expected sizes, found {}", number);
  }
  return a;
}

// What is left of one dimension.
Dim cropped(const InferContext& c, Dim size, int64_t before, int64_t after, int64_t wanted) {
  const int64_t least = wanted < 0 ? before + after : before + wanted;
  if (size.is_constant() && size.value() < least)
    c.reject("{} pixels are fewer than {}", size.value(), least);
  return wanted < 0 ? size - Dim(before + after) : Dim(wanted);
}

void infer(InferContext& c) {
  const auto& a = c.attrs<CropAttrs>();
  c.expect_type(0, kFloatTypes);
  c.expect_rank(0, 4, 4);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const auto x = c.dims(0);
  c.set_output(0, c.type(0),
               std::vector<Dim>{x[0], x[1], cropped(c, x[2], a.top, a.bottom, a.height),
                                cropped(c, x[3], a.left, a.right, a.width)});
}

void decompose(DecomposeContext& c) {
  const auto& a = c.attrs<CropAttrs>();
  Edge* first = c.build.integers({a.top, a.left});
  Edge* end = c.build.integers({a.top + a.height, a.left + a.width});
  if (a.height < 0) {
    Edge* sizes = c.op("Shape", {c.in(0)}, c.attributes().set("start", int64_t{2}));
    end = c.op("Sub", {sizes, c.build.integers({a.bottom, a.right})});
  }
  c.op_into(0, "Slice", {c.in(0), first, end, c.build.integers({2, 3})});
}

}  // namespace

extern const OpDef op_crop = {
    .name = "Crop", .inputs = {1, 1}, .attrs = attrs, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
