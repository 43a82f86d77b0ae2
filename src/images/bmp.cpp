// Windows bitmaps: every header since OS/2's, palettes, bit fields, and both run length codings.
#include <algorithm>
#include <array>
#include <bit>

#include "images/formats.h"

namespace plimsoll::images {
namespace {

struct Bmp {
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0, compression = 0;
  size_t pixels = 0;  // where they begin
  std::array<uint32_t, 3> masks = {};
  std::array<uint8_t, 256 * 3> palette = {};
};
enum Compression : uint32_t { kNone = 0, kRle8 = 1, kRle4 = 2, kFields = 3, kAlphaFields = 6 };

void read_palette(Cursor& cursor, Bmp& bmp, uint32_t colors, size_t entry) {
  const size_t count = colors == 0 ? size_t{1} << bmp.bits : colors;
  for (size_t i = 0; i < std::min<size_t>(count, 256); ++i) {
    if (cursor.at + entry > bmp.pixels) break;  // a short palette: the rest is black
    const Bytes color = cursor.take(entry);
    for (size_t channel = 0; channel < 3; ++channel) bmp.palette[i * 3 + channel] = color[2 - channel];
  }
}

void check(const Bmp& bmp) {
  const auto one_of = [&](std::initializer_list<uint32_t> allowed) {
    return std::find(allowed.begin(), allowed.end(), bmp.bits) != allowed.end();
  };
  const bool fits = bmp.compression == kNone   ? one_of({1, 2, 4, 8, 16, 24, 32})
                    : bmp.compression == kRle8 ? bmp.bits == 8
                    : bmp.compression == kRle4 ? bmp.bits == 4
                    : bmp.compression == kFields || bmp.compression == kAlphaFields ? one_of({16, 32})
                                                                                    : false;
  if (!fits)
    damaged("a BMP file of {} bits a pixel and compression {} is not known", bmp.bits, bmp.compression);
}

Bmp read_bmp(Bytes file) {
  Cursor cursor(file, "BMP");
  cursor.take(10);
  Bmp bmp;
  bmp.pixels = cursor.little(4);
  const size_t header = cursor.at;
  const uint32_t size = cursor.little(4);
  uint32_t colors = 0;
  if (size == 12) {
    bmp.width = cursor.little(2);
    bmp.height = cursor.little(2);
    cursor.take(2);
    bmp.bits = cursor.little(2);
  } else if (size >= 40) {
    bmp.width = static_cast<int32_t>(cursor.little(4));
    bmp.height = static_cast<int32_t>(cursor.little(4));
    cursor.take(2);
    bmp.bits = cursor.little(2);
    bmp.compression = cursor.little(4);
    cursor.take(12);
    colors = cursor.little(4);
    cursor.take(4);
  } else {
    damaged("a BMP file has a header of {} bytes", size);
  }
  bmp.top_down = bmp.height < 0;
  bmp.height = bmp.top_down ? -bmp.height : bmp.height;
  check(bmp);
  bmp.masks = bmp.bits == 16 ? std::array<uint32_t, 3>{0x7c00, 0x3e0, 0x1f}
                             : std::array<uint32_t, 3>{0xff0000, 0xff00, 0xff};
  if (bmp.compression == kFields || bmp.compression == kAlphaFields) {
    for (uint32_t& mask : bmp.masks) mask = cursor.little(4);
  }
  // Masks of a 40-byte header stand behind it, before the palette.
  cursor.at = std::max(header + size, size == 40 ? cursor.at : 0);
  if (bmp.bits <= 8) read_palette(cursor, bmp, colors, size == 12 ? 3 : 4);
  return bmp;
}

uint8_t field(uint32_t value, uint32_t mask) {
  if (mask == 0) return 0;
  const int shift = std::countr_zero(mask);
  const uint64_t largest = mask >> shift;
  return static_cast<uint8_t>((static_cast<uint64_t>((value & mask) >> shift) * 255 + largest / 2) / largest);
}

void decode_row(const Bmp& bmp, const uint8_t* row, uint8_t* rgb) {
  for (int64_t x = 0; x < bmp.width; ++x, rgb += 3) {
    if (bmp.bits <= 8) {
      const int64_t bit = x * bmp.bits;
      const uint32_t index = row[bit / 8] >> (8 - bmp.bits - bit % 8) & ((1u << bmp.bits) - 1);
      std::copy_n(bmp.palette.data() + index * 3, 3, rgb);
    } else if (bmp.bits == 24) {
      for (int channel = 0; channel < 3; ++channel) rgb[channel] = row[x * 3 + 2 - channel];
    } else {
      const size_t bytes = bmp.bits / 8;
      uint32_t value = 0;
      for (size_t i = bytes; i-- > 0;) value = value << 8 | row[static_cast<size_t>(x) * bytes + i];
      for (size_t channel = 0; channel < 3; ++channel) rgb[channel] = field(value, bmp.masks[channel]);
    }
  }
}

// Pairs of (count, color); a count of 0 ends a row (0), the image (1), moves (2) or announces single pixels.
class RunLengths {
 public:
  RunLengths(const Bmp& bmp, Bytes file, uint8_t* rgb) : bmp_(bmp), cursor_(file, "BMP"), rgb_(rgb) {
    cursor_.at = bmp.pixels;
    std::fill_n(rgb, bmp.width * bmp.height * 3, uint8_t{0});
  }
  void decode() {
    while (y_ < bmp_.height) {
      const uint32_t count = cursor_.little(1), value = cursor_.little(1);
      if (count > 0) {
        for (uint32_t i = 0; i < count; ++i) put(nibble(value, i));
      } else if (value == 0) {
        x_ = 0, ++y_;
      } else if (value == 1) {
        return;
      } else if (value == 2) {
        x_ += cursor_.little(1), y_ += cursor_.little(1);
      } else {
        single(value);
      }
    }
  }

 private:
  uint32_t nibble(uint32_t value, uint32_t i) const {
    if (bmp_.bits == 8) return value;
    return i % 2 == 0 ? value >> 4 : value & 15;
  }
  void single(uint32_t count) {
    const size_t bytes = bmp_.bits == 8 ? count : (count + 1) / 2;
    const Bytes values = cursor_.take(bytes);
    for (uint32_t i = 0; i < count; ++i) put(nibble(values[bmp_.bits == 8 ? i : i / 2], i));
    if (bytes % 2 != 0) cursor_.take(1);
  }
  void put(uint32_t index) {
    if (x_ >= bmp_.width || y_ >= bmp_.height) damaged("a BMP file has a run beyond the end of row {}", y_);
    const int64_t row = bmp_.top_down ? y_ : bmp_.height - 1 - y_;
    std::copy_n(bmp_.palette.data() + index * 3, 3, rgb_ + (row * bmp_.width + x_) * 3);
    ++x_;
  }
  const Bmp& bmp_;
  Cursor cursor_;
  uint8_t* rgb_;
  int64_t x_ = 0, y_ = 0;
};

}  // namespace

Header read_bmp_header(Bytes file) {
  const Bmp bmp = read_bmp(file);
  return {Format::kBmp, bmp.width, bmp.height, 0, 0};
}

void decode_bmp(const Header&, Bytes file, uint8_t* rgb) {
  const Bmp bmp = read_bmp(file);
  if (bmp.compression == kRle8 || bmp.compression == kRle4) return RunLengths(bmp, file, rgb).decode();
  const int64_t stride = (bmp.width * bmp.bits + 31) / 32 * 4;
  Cursor cursor(file, "BMP");
  cursor.at = bmp.pixels;
  // The last row may lack its padding.
  const int64_t last = (bmp.width * bmp.bits + 7) / 8;
  const Bytes data = cursor.take(static_cast<size_t>(stride * (bmp.height - 1) + last));
  for (int64_t y = 0; y < bmp.height; ++y) {
    const int64_t row = bmp.top_down ? y : bmp.height - 1 - y;
    decode_row(bmp, data.data() + y * stride, rgb + row * bmp.width * 3);
  }
}

}  // namespace plimsoll::images
