// Stands in for the formats that were built without their library.
#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

[[noreturn, maybe_unused]] void missing(const char* format, const char* package) {
  fail(ErrorCode::kNotImplemented,
       "a {} image cannot be decoded: Plimsoll was built without its library (Debian package {})", format,
       package);
}

}  // namespace

#ifndef PLIMSOLL_WITH_JPEG
void decode_jpeg(const Header&, Bytes, uint8_t*) {
  missing("JPEG", "libjpeg-dev");
}
#endif
#ifndef PLIMSOLL_WITH_JPEG2000
void decode_jpeg2000(const Header&, Bytes, uint8_t*) {
  missing("JPEG 2000", "libopenjp2-7-dev");
}
#endif
#ifndef PLIMSOLL_WITH_PNG
void decode_png(const Header&, Bytes, uint8_t*) {
  missing("PNG", "libpng-dev");
}
#endif
#ifndef PLIMSOLL_WITH_TIFF
void decode_tiff(const Header&, Bytes, uint8_t*, uint8_t*) {
  missing("TIFF", "libtiff-dev");
}
#endif
#ifndef PLIMSOLL_WITH_WEBP
void decode_webp(const Header&, Bytes, uint8_t*) {
  missing("WebP", "libwebp-dev");
}
#endif

}  // namespace plimsoll::images
