// PNG by libpng. It reports errors by longjmp, so no object with a destructor lives between setjmp and its
// calls.
#include <png.h>

#include <algorithm>
#include <cstring>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

struct Source {
  Bytes file;
  size_t at = 0;
  char message[128] = {};
};

void read_bytes(png_structp library, png_bytep to, size_t count) {
  auto& source = *static_cast<Source*>(png_get_io_ptr(library));
  if (count > source.file.size() - source.at) png_error(library, "the file is cut short");
  std::memcpy(to, source.file.data() + source.at, count);
  source.at += count;
}

[[noreturn]] void on_error(png_structp library, png_const_charp message) {
  auto& source = *static_cast<Source*>(png_get_error_ptr(library));
  std::snprintf(source.message, sizeof(source.message), "%s", message);
  png_longjmp(library, 1);
}

void on_warning(png_structp, png_const_charp) {}

// Whatever it is becomes 8 bits of red, green and blue; alpha is dropped.
void ask_for_rgb(png_structp library, png_infop info) {
  png_set_expand(library);
  png_set_strip_16(library);
  png_set_strip_alpha(library);
  png_set_gray_to_rgb(library);
  png_set_interlace_handling(library);
  png_read_update_info(library, info);
}

bool read_image(png_structp library, png_infop info, const Header& header, uint8_t* rgb) {
  png_set_user_limits(library, 0x7fffffff, 0x7fffffff);
  png_set_chunk_cache_max(library, 128);
  png_set_chunk_malloc_max(library, 1 << 19);
  png_set_crc_action(library, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
  png_read_info(library, info);
  if (png_get_image_width(library, info) != header.width ||
      png_get_image_height(library, info) != header.height)
    return false;
  const int passes = png_get_interlace_type(library, info) == PNG_INTERLACE_ADAM7 ? 7 : 1;
  ask_for_rgb(library, info);
  const auto stride = static_cast<size_t>(header.width) * 3;
  if (png_get_rowbytes(library, info) != stride) return false;
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < header.height; ++y)
      png_read_row(library, rgb + static_cast<size_t>(y) * stride, nullptr);
  }
  return true;
}

}  // namespace

void decode_png(const Header& header, Bytes file, uint8_t* rgb) {
  Source source{file};
  png_structp library = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, on_error, on_warning);
  png_infop info = library != nullptr ? png_create_info_struct(library) : nullptr;
  volatile bool failed = info == nullptr, same = true;
  if (!failed) {
    png_set_read_fn(library, &source, read_bytes);
    if (setjmp(png_jmpbuf(library)) == 0)
      same = read_image(library, info, header, rgb);
    else
      failed = true;
  }
  png_destroy_read_struct(&library, &info, nullptr);
  if (failed) damaged("a PNG file cannot be decoded: {}", static_cast<const char*>(source.message));
  if (!same) damaged("a PNG file contradicts itself about its size");
}

}  // namespace plimsoll::images
