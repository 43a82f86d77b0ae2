// JPEG 2000, a bare code stream or in a JP2 file, by OpenJPEG.
#include <openjpeg.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

struct Source {
  Bytes file;
  size_t at = 0;
};

OPJ_SIZE_T read_bytes(void* to, OPJ_SIZE_T count, void* data) {
  auto& source = *static_cast<Source*>(data);
  const size_t taken = std::min(count, source.file.size() - source.at);
  if (taken == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, source.file.data() + source.at, taken);
  source.at += taken;
  return taken;
}
OPJ_OFF_T skip_bytes(OPJ_OFF_T count, void* data) {
  auto& source = *static_cast<Source*>(data);
  if (count < 0 || static_cast<size_t>(count) > source.file.size() - source.at) return -1;
  source.at += static_cast<size_t>(count);
  return count;
}
OPJ_BOOL seek(OPJ_OFF_T to, void* data) {
  auto& source = *static_cast<Source*>(data);
  if (to < 0 || static_cast<size_t>(to) > source.file.size()) return OPJ_FALSE;
  source.at = static_cast<size_t>(to);
  return OPJ_TRUE;
}

void keep_message(const char* text, void* data) {
  auto* message = static_cast<char*>(data);
  if (message[0] == 0) std::snprintf(message, 128, "%s", text);
  message[std::strcspn(message, "\n")] = 0;
}

// Streams and codecs are the same type to OpenJPEG.
template <auto destroy>
struct Free {
  template <typename T>
  void operator()(T* thing) const {
    destroy(thing);
  }
};

// One sample of one component as 8 bits.
int sample(const opj_image_comp_t& c, int64_t x, int64_t y) {
  const int64_t column = std::min<int64_t>(x / c.dx, c.w - 1), row = std::min<int64_t>(y / c.dy, c.h - 1);
  int64_t value = c.data[row * c.w + column];
  if (c.sgnd != 0) value += int64_t{1} << (c.prec - 1);
  const int64_t largest = (int64_t{1} << c.prec) - 1;
  value = std::clamp<int64_t>(value, 0, largest);
  return static_cast<int>(c.prec == 8 ? value : c.prec > 8 ? value >> (c.prec - 8) : value * 255 / largest);
}

uint8_t byte_of(double value) {
  return static_cast<uint8_t>(std::clamp(value + 0.5, 0.0, 255.0));
}

void write_rgb(const opj_image_t& image, const Header& header, uint8_t* rgb) {
  const bool gray = image.numcomps < 3;
  const bool luma = image.color_space == OPJ_CLRSPC_SYCC;
  for (int64_t y = 0; y < header.height; ++y) {
    for (int64_t x = 0; x < header.width; ++x, rgb += 3) {
      int s[3];
      for (int i = 0; i < 3; ++i) s[i] = sample(image.comps[gray ? 0 : i], x, y);
      if (!gray && luma) {
        const double blue = s[1] - 128, red = s[2] - 128;
        rgb[0] = byte_of(s[0] + 1.402 * red);
        rgb[1] = byte_of(s[0] - 0.344136 * blue - 0.714136 * red);
        rgb[2] = byte_of(s[0] + 1.772 * blue);
      } else {
        for (int i = 0; i < 3; ++i) rgb[i] = static_cast<uint8_t>(s[i]);
      }
    }
  }
}

bool is_usable(const opj_image_t& image) {
  for (uint32_t i = 0; i < (image.numcomps < 3 ? 1u : 3u); ++i) {
    const opj_image_comp_t& c = image.comps[i];
    if (c.data == nullptr || c.w == 0 || c.h == 0 || c.dx == 0 || c.dy == 0 || c.prec == 0 || c.prec > 31)
      return false;
  }
  return image.numcomps > 0;
}

}  // namespace

void decode_jpeg2000(const Header& header, Bytes file, uint8_t* rgb) {
  Source source{file};
  char message[128] = {};
  const auto fail_with = [&] {
    damaged("a JPEG 2000 file cannot be decoded: {}", static_cast<const char*>(message));
  };
  const std::unique_ptr<opj_stream_t, Free<opj_stream_destroy>> stream(opj_stream_create(1 << 16, OPJ_TRUE));
  const std::unique_ptr<opj_codec_t, Free<opj_destroy_codec>> codec(
      opj_create_decompress(file[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
  if (!stream || !codec) fail_with();
  opj_stream_set_user_data(stream.get(), &source, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.size());
  opj_stream_set_read_function(stream.get(), read_bytes);
  opj_stream_set_skip_function(stream.get(), skip_bytes);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_set_error_handler(codec.get(), keep_message, message);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  if (opj_setup_decoder(codec.get(), &parameters) == OPJ_FALSE ||
      opj_decoder_set_strict_mode(codec.get(), OPJ_TRUE) == OPJ_FALSE)
    fail_with();
  opj_image_t* read = nullptr;
  const OPJ_BOOL has_header = opj_read_header(stream.get(), codec.get(), &read);
  const std::unique_ptr<opj_image_t, Free<opj_image_destroy>> image(read);
  if (has_header == OPJ_FALSE || !image) fail_with();
  if (image->x1 - image->x0 != header.width || image->y1 - image->y0 != header.height)
    damaged("a JPEG 2000 file contradicts itself about its size");
  if (opj_decode(codec.get(), stream.get(), image.get()) == OPJ_FALSE ||
      opj_end_decompress(codec.get(), stream.get()) == OPJ_FALSE || !is_usable(*image))
    fail_with();
  write_rgb(*image, header, rgb);
}

}  // namespace plimsoll::images
