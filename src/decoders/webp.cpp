// WebP by libwebp, straight into the pixels.
#include <webp/decode.h>

#include "decoders/decode.h"

namespace plimsoll::images {

void decode_webp(const Header& header, Bytes file, uint8_t* rgb) {
  int width = 0, height = 0;
  if (WebPGetInfo(file.data(), file.size(), &width, &height) == 0) damaged("a WebP file cannot be decoded");
  if (width != header.width || height != header.height)
    damaged("a WebP file contradicts itself about its size");
  const auto bytes = static_cast<size_t>(header.width * header.height * 3);
  if (WebPDecodeRGBInto(file.data(), file.size(), rgb, bytes, static_cast<int>(header.width * 3)) == nullptr)
    damaged("a WebP file cannot be decoded: it is damaged or cut short");
}

}  // namespace plimsoll::images
