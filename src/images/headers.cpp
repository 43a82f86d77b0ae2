// Headers of the formats that libraries decode: read here, so that sizes are known, and refused, before any
// library runs.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "images/formats.h"

namespace plimsoll::images {

// Start of frame: height, width. A progressive file holds all its coefficients, 2 bytes each, up to 4 per
// pixel and padded to whole blocks; a sequential one some rows.
Header read_jpeg_header(Bytes file) {
  Cursor cursor(file, "JPEG");
  cursor.take(2);
  for (;;) {
    uint32_t marker = cursor.big(1);
    if (marker != 0xff) damaged("a JPEG file has no marker at byte {}", cursor.at - 1);
    while (marker == 0xff) marker = cursor.big(1);
    if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd8)) continue;
    if (marker == 0xd9 || marker == 0xda) damaged("a JPEG file has no frame");
    const uint32_t length = cursor.big(2);
    if (length < 2) damaged("a JPEG file has a segment of {} bytes", length);
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
    if (!frame) {
      cursor.take(length - 2);
      continue;
    }
    cursor.take(1);
    Header header;
    header.format = Format::kJpeg;
    header.height = cursor.big(2);
    header.width = cursor.big(2);
    const bool progressive = marker == 0xc2 || marker == 0xc6 || marker == 0xca || marker == 0xce;
    const int64_t row = round_up(header.width, 64) * 4;
    header.library_bytes = (1 << 20) + row * 256 + (progressive ? row * round_up(header.height, 64) * 2 : 0);
    return header;
  }
}

Header read_png_header(Bytes file) {
  Cursor cursor(file, "PNG");
  cursor.take(8);
  const uint32_t length = cursor.big(4);
  if (length != 13 || cursor.big(4) != 0x49484452) damaged("a PNG file does not begin with its header chunk");
  Header header;
  header.format = Format::kPng;
  header.width = cursor.big(4);
  header.height = cursor.big(4);
  // Two rows of at most 8 bytes a pixel, and the decompressor.
  header.library_bytes = (1 << 20) + std::min<int64_t>(header.width, kMostPixels) * 32;
  return header;
}

namespace {

// Of a VP8, VP8L or VP8X chunk that begins at the cursor.
Header read_webp_chunk(Cursor& cursor) {
  Header header;
  header.format = Format::kWebp;
  const uint32_t kind = cursor.little(4);
  cursor.little(4);
  if (kind == 0x20385056) {  // "VP8 "
    cursor.take(3);
    if (cursor.big(3) != 0x9d012a) damaged("a WebP file has no key frame");
    header.width = cursor.little(2) & 0x3fff;
    header.height = cursor.little(2) & 0x3fff;
  } else if (kind == 0x4c385056) {  // "VP8L"
    if (cursor.little(1) != 0x2f) damaged("a WebP file has no lossless signature");
    const uint32_t bits = cursor.little(4);
    header.width = (bits & 0x3fff) + 1;
    header.height = (bits >> 14 & 0x3fff) + 1;
  } else if (kind == 0x58385056) {  // "VP8X"
    if ((cursor.little(1) & 2) != 0) damaged("a WebP file is an animation; expected one image");
    cursor.take(3);
    header.width = static_cast<int64_t>(cursor.little(3)) + 1;
    header.height = static_cast<int64_t>(cursor.little(3)) + 1;
  } else {
    damaged("a WebP file begins with an unknown chunk");
  }
  return header;
}

}  // namespace

// A lossless image is held whole, 4 bytes a pixel; so is the alpha of a lossy one.
Header read_webp_header(Bytes file) {
  Cursor cursor(file, "WebP");
  cursor.take(12);
  Header header = read_webp_chunk(cursor);
  header.library_bytes = (4 << 20) + header.width * (header.height + 64) * 5;
  return header;
}

// SIZ: the marker segment of the code stream, which a JP2 file wraps in boxes.
Header read_jpeg2000_header(Bytes file) {
  constexpr uint8_t kMarker[] = {0xff, 0x4f, 0xff, 0x51};
  const auto found = std::search(file.begin(), file.end(), std::begin(kMarker), std::end(kMarker));
  Cursor cursor(file, "JPEG 2000");
  cursor.take(static_cast<size_t>(found - file.begin()));
  cursor.take(4 + 4);  // the markers, length and capabilities
  const int64_t right = cursor.big(4), bottom = cursor.big(4), left = cursor.big(4), top = cursor.big(4);
  cursor.take(16);
  const int64_t components = cursor.big(2);
  if (components < 1 || components > 16384) damaged("a JPEG 2000 file has {} components", components);
  Header header;
  header.format = Format::kJpeg2000;
  header.width = right - left;
  header.height = bottom - top;
  // Samples are 32 bits, in the image and once more in its tiles, with what the code blocks keep.
  const int64_t pixels = header.width > 0 && header.height > 0 && header.width <= kMostPixels / header.height
                             ? header.width * header.height
                             : 0;
  header.library_bytes = (1 << 20) + pixels * components * 10 + static_cast<int64_t>(file.size()) * 2;
  return header;
}

namespace {

// Tags ImageWidth (256) and ImageLength (257) of the first directory.
void read_tiff_directory(Cursor& cursor, bool big, Header& header) {
  const auto number = [&](size_t bytes) { return big ? cursor.big(bytes) : cursor.little(bytes); };
  const uint32_t entries = number(2);
  for (uint32_t i = 0; i < entries; ++i) {
    const uint32_t tag = number(2), type = number(2);
    number(4);
    const size_t value = cursor.at;
    const uint32_t size = type == 3 ? number(2) : number(4);
    cursor.at = value + 4;
    if (tag == 256) header.width = size;
    if (tag == 257) header.height = size;
  }
}

}  // namespace

// The workspace takes the pixels as libtiff makes them, 4 bytes each; the library decodes a strip or tile at
// a time.
Header read_tiff_header(Bytes file) {
  Cursor cursor(file, "TIFF");
  const bool big = cursor.take(4)[0] == 'M';
  cursor.at = big ? cursor.big(4) : cursor.little(4);
  Header header;
  header.format = Format::kTiff;
  read_tiff_directory(cursor, big, header);
  if (header.width > 0 && header.height > 0 && header.width <= kMostPixels / header.height) {
    header.workspace_bytes = header.width * header.height * 4;
    header.library_bytes = (1 << 20) + header.width * header.height * 8;
  }
  return header;
}

}  // namespace plimsoll::images
