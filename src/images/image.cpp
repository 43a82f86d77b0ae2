#include "images/image.h"

#include <cstring>
#include <string_view>

#include "images/formats.h"

namespace plimsoll::images {
namespace {

bool starts_with(Bytes file, std::string_view magic, size_t at = 0) {
  return file.size() >= at + magic.size() && std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
}

Format format_of(Bytes file) {
  using namespace std::string_view_literals;
  if (starts_with(file, "BM"sv)) return Format::kBmp;
  if (starts_with(file, "\xff\xd8\xff"sv)) return Format::kJpeg;
  if (starts_with(file, "\x89PNG\r\n\x1a\n"sv)) return Format::kPng;
  if (starts_with(file, "II*\0"sv) || starts_with(file, "MM\0*"sv)) return Format::kTiff;
  if (starts_with(file, "RIFF"sv) && starts_with(file, "WEBP"sv, 8)) return Format::kWebp;
  if (starts_with(file, "\0\0\0\x0cjP  \r\n\x87\n"sv) || starts_with(file, "\xff\x4f\xff\x51"sv))
    return Format::kJpeg2000;
  if (file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '7') return Format::kPnm;
  return Format::kUnknown;
}

Header read_format(Bytes file) {
  switch (format_of(file)) {
    case Format::kBmp:
      return read_bmp_header(file);
    case Format::kJpeg:
      return read_jpeg_header(file);
    case Format::kJpeg2000:
      return read_jpeg2000_header(file);
    case Format::kPng:
      return read_png_header(file);
    case Format::kPnm:
      return read_pnm_header(file);
    case Format::kTiff:
      return read_tiff_header(file);
    case Format::kWebp:
      return read_webp_header(file);
    case Format::kUnknown:
      break;
  }
  damaged(
      "expected an image (BMP, JPEG, JPEG 2000, PNG, PNM, TIFF or WebP), found {} bytes of something else",
      file.size());
}

}  // namespace

Header read_header(Bytes file) {
  const Header header = read_format(file);
  if (header.width < 1 || header.height < 1)
    damaged("an image of {} x {} pixels has none", header.width, header.height);
  if (header.width > kMostPixels || header.height > kMostPixels / header.width)
    damaged("an image claims {} x {} pixels, more than {}", header.width, header.height, kMostPixels);
  return header;
}

void decode(const Header& header, Bytes file, uint8_t* rgb, uint8_t* workspace) {
  switch (header.format) {
    case Format::kBmp:
      return decode_bmp(header, file, rgb);
    case Format::kJpeg:
      return decoders().jpeg(header, file, rgb);
    case Format::kJpeg2000:
      return decoders().jpeg2000(header, file, rgb);
    case Format::kPng:
      return decoders().png(header, file, rgb);
    case Format::kPnm:
      return decode_pnm(header, file, rgb);
    case Format::kTiff:
      return decoders().tiff(header, file, rgb, workspace);
    case Format::kWebp:
      return decoders().webp(header, file, rgb);
    case Format::kUnknown:
      break;
  }
}

}  // namespace plimsoll::images
