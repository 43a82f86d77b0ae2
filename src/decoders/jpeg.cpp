// JPEG by libjpeg-turbo. It reports errors by longjmp, so no object with a destructor lives between setjmp
// and its calls.
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs stdio's types before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

struct Decoder {
  jpeg_decompress_struct library = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = {};
};

Decoder& decoder_of(j_common_ptr library) {
  return *static_cast<Decoder*>(library->client_data);
}

[[noreturn]] void on_error(j_common_ptr library) {
  Decoder& decoder = decoder_of(library);
  library->err->format_message(library, decoder.message);
  std::longjmp(decoder.escape, 1);
}

// Warnings are about damage that the library can guess its way around. Missing data is not.
void on_message(j_common_ptr library, int level) {
  if (level >= 0) return;
  const int code = library->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER) on_error(library);
}

// A small file can ask for passes over a large image without end.
void on_progress(j_common_ptr library) {
  constexpr int kMostScans = 500;
  if (library->is_decompressor &&
      reinterpret_cast<j_decompress_ptr>(library)->input_scan_number > kMostScans) {
    library->err->msg_code = JERR_BAD_PROGRESSION;
    on_error(library);
  }
}

// Inverted, as Adobe writes it.
void cmyk_to_rgb(const uint8_t* cmyk, int64_t count, bool inverted, uint8_t* rgb) {
  for (int64_t i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    for (int channel = 0; channel < 3; ++channel) {
      const int color = inverted ? cmyk[channel] : 255 - cmyk[channel];
      const int black = inverted ? cmyk[3] : 255 - cmyk[3];
      rgb[channel] = static_cast<uint8_t>((color * black + 127) / 255);
    }
  }
}

// Returns false if the image is not what the header said.
bool decode_with(Decoder& decoder, const Header& header, Bytes file, uint8_t* rgb) {
  jpeg_decompress_struct& library = decoder.library;
  jpeg_create_decompress(&library);
  library.client_data = &decoder;
  library.progress = &decoder.progress;
  library.mem->max_memory_to_use = static_cast<long>(header.library_bytes);
  jpeg_mem_src(&library, file.data(), file.size());
  jpeg_read_header(&library, TRUE);
  if (library.image_width != header.width || library.image_height != header.height) return false;
  const bool four = library.jpeg_color_space == JCS_CMYK || library.jpeg_color_space == JCS_YCCK;
  library.out_color_space = four ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&library);
  const auto width = static_cast<int64_t>(library.output_width);
  JSAMPARRAY row = four ? (*library.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&library), JPOOL_IMAGE,
                                                       library.output_width * 4, 1)
                        : nullptr;
  while (library.output_scanline < library.output_height) {
    uint8_t* to = rgb + static_cast<int64_t>(library.output_scanline) * width * 3;
    jpeg_read_scanlines(&library, four ? row : &to, 1);
    if (four) cmyk_to_rgb(row[0], width, library.saw_Adobe_marker != 0, to);
  }
  jpeg_finish_decompress(&library);
  return true;
}

}  // namespace

void decode_jpeg(const Header& header, Bytes file, uint8_t* rgb) {
  Decoder decoder;
  decoder.library.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = on_error;
  decoder.errors.emit_message = on_message;
  decoder.progress.progress_monitor = on_progress;
  decoder.library.client_data = &decoder;
  volatile bool same = true;
  volatile bool failed = false;
  if (setjmp(decoder.escape) == 0)
    same = decode_with(decoder, header, file, rgb);
  else
    failed = true;
  jpeg_destroy_decompress(&decoder.library);
  if (failed) damaged("a JPEG file cannot be decoded: {}", static_cast<const char*>(decoder.message));
  if (!same) damaged("a JPEG file contradicts itself about its size");
}

}  // namespace plimsoll::images
