// TIFF by libtiff: whatever its colors, compression and tiles are, as 32-bit pixels in the workspace.
#include <tiffio.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

#include "decoders/decode.h"

namespace plimsoll::images {
namespace {

struct Source {
  Bytes file;
  uint64_t at = 0;
  char message[128] = {};
};

Source& source_of(thandle_t handle) {
  return *static_cast<Source*>(handle);
}

tmsize_t read_bytes(thandle_t handle, void* to, tmsize_t count) {
  Source& source = source_of(handle);
  if (source.at >= source.file.size() || count <= 0) return 0;
  const size_t taken =
      std::min(static_cast<size_t>(count), source.file.size() - static_cast<size_t>(source.at));
  std::memcpy(to, source.file.data() + source.at, taken);
  source.at += taken;
  return static_cast<tmsize_t>(taken);
}
tmsize_t write_bytes(thandle_t, void*, tmsize_t) {
  return 0;
}
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  Source& source = source_of(handle);
  const uint64_t base = whence == SEEK_CUR ? source.at : whence == SEEK_END ? source.file.size() : 0;
  source.at = base + offset;
  return source.at;
}
int close_file(thandle_t) {
  return 0;
}
toff_t size_of(thandle_t handle) {
  return source_of(handle).file.size();
}
int map_nothing(thandle_t, void**, toff_t*) {
  return 0;
}
void unmap_nothing(thandle_t, void*, toff_t) {}

int on_error(TIFF*, void* data, const char*, const char* format, va_list arguments) {
  auto& source = *static_cast<Source*>(data);
  if (source.message[0] == 0) std::vsnprintf(source.message, sizeof(source.message), format, arguments);
  return 1;
}
int on_warning(TIFF*, void*, const char*, const char*, va_list) {
  return 1;
}

struct Close {
  void operator()(TIFF* file) const { TIFFClose(file); }
};
using File = std::unique_ptr<TIFF, Close>;

File open(Source& source, int64_t most_bytes) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) damaged("a TIFF file cannot be opened: no memory");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(most_bytes));
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, &source);
  File file(TIFFClientOpenExt("image", "rm", &source, read_bytes, write_bytes, seek, close_file, size_of,
                              map_nothing, unmap_nothing, options));
  TIFFOpenOptionsFree(options);
  return file;
}

}  // namespace

void decode_tiff(const Header& header, Bytes bytes, uint8_t* rgb, uint8_t* workspace) {
  Source source{bytes};
  const File file = open(source, header.library_bytes);
  const auto fail_with = [&] {
    damaged("a TIFF file cannot be decoded: {}", static_cast<const char*>(source.message));
  };
  if (!file) fail_with();
  uint32_t width = 0, height = 0;
  TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height);
  if (width != header.width || height != header.height)
    damaged("a TIFF file contradicts itself about its size");
  auto* pixels = reinterpret_cast<uint32_t*>(workspace);
  const int done = TIFFReadRGBAImageOriented(file.get(), width, height, pixels, ORIENTATION_TOPLEFT, 1);
  if (done == 0 || source.message[0] != 0) fail_with();
  for (int64_t i = 0; i < header.width * header.height; ++i, rgb += 3) {
    rgb[0] = static_cast<uint8_t>(TIFFGetR(pixels[i]));
    rgb[1] = static_cast<uint8_t>(TIFFGetG(pixels[i]));
    rgb[2] = static_cast<uint8_t>(TIFFGetB(pixels[i]));
  }
}

}  // namespace plimsoll::images
