#include "decoders/decode.h"

namespace plimsoll::images {
namespace {
constexpr Decoders kDecoders = {
    .jpeg = decode_jpeg,
    .jpeg2000 = decode_jpeg2000,
    .png = decode_png,
    .webp = decode_webp,
    .tiff = decode_tiff,
};
}  // namespace

const Decoders& decoders() {
  return kDecoders;
}

}  // namespace plimsoll::images

const plimsoll::images::Decoders* plimsoll_image_decoders() {
  return &plimsoll::images::kDecoders;
}
