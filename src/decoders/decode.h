// The decoders that stand on libraries; without its library each says so.
#pragma once

#include "images/formats.h"

namespace plimsoll::images {

void decode_jpeg(const Header& header, Bytes file, uint8_t* rgb);
void decode_jpeg2000(const Header& header, Bytes file, uint8_t* rgb);
void decode_png(const Header& header, Bytes file, uint8_t* rgb);
void decode_tiff(const Header& header, Bytes file, uint8_t* rgb, uint8_t* workspace);
void decode_webp(const Header& header, Bytes file, uint8_t* rgb);

}  // namespace plimsoll::images

// Where the shared library finds them in the one that it loads.
extern "C" const plimsoll::images::Decoders* plimsoll_image_decoders();
