#include <algorithm>

#include "images/image.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

enum class PixelFormat : uint8_t { kRgb, kBgr, kGray };
struct DecoderAttrs {
  PixelFormat pixels = PixelFormat::kRgb;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<DecoderAttrs>();
  const std::string_view name = c.text("pixel_format", "RGB");
  if (name != "RGB" && name != "BGR" && name != "Grayscale")
    c.reject("attribute 'pixel_format': expected RGB, BGR or Grayscale, found '{}'", name);
  a->pixels = name == "RGB" ? PixelFormat::kRgb : name == "BGR" ? PixelFormat::kBgr : PixelFormat::kGray;
  return a;
}

// What is wrong with an image, with the node's name.
template <typename F>
decltype(auto) naming(const Node& node, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", node.label(), error.what());
  }
}

images::Bytes file_of(const TensorView& view) {
  return {view.as<uint8_t>(), static_cast<size_t>(view.elements())};
}

images::Header header_of(const NodeContext& c) {
  return naming(c.node(), [&] { return images::read_header(file_of(*c.constant(0))); });
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kUint8));
  c.expect_rank(0, 1, 1);
  const Dim channels = c.attrs<DecoderAttrs>().pixels == PixelFormat::kGray ? 1 : 3;
  std::vector<Dim> dims{Dim(), Dim(), channels};
  if (c.constant(0) != nullptr) {
    const images::Header header = header_of(c);
    dims[0] = header.height;
    dims[1] = header.width;
  } else {
    dims[0] = c.unknown("height");
    dims[1] = c.unknown("width");
  }
  c.set_output(0, ElementType::kUint8, dims);
}

// Gray is made from colors, which need a place of their own. Then what the library may take from the heap: it
// is counted here, and the pages are never touched.
struct DecoderChoice {
  int64_t colors = 0, workspace = 0;
};

const void* select(SelectContext& c) {
  auto* choice = c.make<DecoderChoice>();
  if (c.constant(0) == nullptr) return choice;
  const images::Header header = header_of(c);
  if (c.attrs<DecoderAttrs>().pixels == PixelFormat::kGray)
    choice->colors = c.scratch(Dim(header.width * header.height * 3));
  choice->workspace = c.scratch(Dim(header.workspace_bytes));
  c.scratch(Dim(header.library_bytes));
  return choice;
}

// ITU-R 601-2, in 16 bits of fraction.
void write_gray(const uint8_t* rgb, int64_t count, uint8_t* gray) {
  for (int64_t i = 0; i < count; ++i, rgb += 3)
    gray[i] = static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

void run(const RunContext& c) {
  const auto& choice = c.choice<DecoderChoice>();
  const PixelFormat pixels = c.attrs<DecoderAttrs>().pixels;
  auto* y = c.outputs[0].as<uint8_t>();
  uint8_t* rgb = pixels == PixelFormat::kGray ? c.scratch_as<uint8_t>(choice.colors) : y;
  const images::Bytes file = file_of(c.inputs[0]);
  const int64_t count = c.outputs[0].dims[0] * c.outputs[0].dims[1];
  naming(*c.node, [&] {
    images::decode(images::read_header(file), file, rgb, c.scratch_as<uint8_t>(choice.workspace));
  });
  if (pixels == PixelFormat::kGray) return write_gray(rgb, count, y);
  if (pixels == PixelFormat::kBgr) {
    for (int64_t i = 0; i < count; ++i) std::swap(y[i * 3], y[i * 3 + 2]);
  }
}

}  // namespace

extern const OpDef op_image_decoder = {
    .name = "ImageDecoder",
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
};

}  // namespace plimsoll
