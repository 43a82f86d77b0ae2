// Headers and decoders, one per format. A decoder gets the header that read_header made of the same file.
#pragma once

#include "base/fail.h"
#include "images/image.h"

namespace plimsoll::images {

template <typename... Args>
[[noreturn]] void damaged(fmt::format_string<Args...> format, Args&&... args) {
  fail(ErrorCode::kInvalidArgument, "{}", fmt::format(format, std::forward<Args>(args)...));
}

// Numbers in a file; reading behind its end throws.
class Cursor {
 public:
  Cursor(Bytes file, const char* format) : file_(file), format_(format) {}
  size_t at = 0;
  size_t left() const { return at < file_.size() ? file_.size() - at : 0; }
  Bytes take(size_t count) {
    if (count > left()) damaged("a {} file ends after {} bytes, in the middle", format_, file_.size());
    at += count;
    return file_.subspan(at - count, count);
  }
  uint32_t big(size_t bytes) {
    uint32_t value = 0;
    for (const uint8_t byte : take(bytes)) value = value << 8 | byte;
    return value;
  }
  uint32_t little(size_t bytes) {
    uint32_t value = 0, shift = 0;
    for (const uint8_t byte : take(bytes)) {
      value |= static_cast<uint32_t>(byte) << shift;
      shift += 8;
    }
    return value;
  }

 private:
  Bytes file_;
  const char* format_;
};

Header read_bmp_header(Bytes file);
Header read_jpeg_header(Bytes file);
Header read_jpeg2000_header(Bytes file);
Header read_png_header(Bytes file);
Header read_pnm_header(Bytes file);
Header read_tiff_header(Bytes file);
Header read_webp_header(Bytes file);

void decode_bmp(const Header& header, Bytes file, uint8_t* rgb);
void decode_pnm(const Header& header, Bytes file, uint8_t* rgb);

// Those that stand on libraries: linked in, or, by the shared library, loaded when the first of them is
// needed (src/decoders). A dozen libraries at every start would take as long as all the rest of it.
struct Decoders {
  using Decode = void (*)(const Header& header, Bytes file, uint8_t* rgb);
  Decode jpeg, jpeg2000, png, webp;
  void (*tiff)(const Header& header, Bytes file, uint8_t* rgb, uint8_t* workspace);
};
// Throws kNotImplemented if they cannot be loaded.
const Decoders& decoders();

}  // namespace plimsoll::images
