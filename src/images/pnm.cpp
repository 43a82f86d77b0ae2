// Portable bitmaps, graymaps, pixmaps and arbitrary maps: P1 to P7.
#include <algorithm>
#include <string>

#include "images/formats.h"

namespace plimsoll::images {
namespace {

struct Pnm {
  int kind = 0;  // 1 to 7
  int64_t width = 0, height = 0, depth = 1;
  uint32_t largest = 1;  // the value of white
  size_t data = 0;       // where the pixels begin
  bool is_text() const { return kind <= 3; }
  bool is_bits() const { return kind == 1 || kind == 4; }
};

bool is_blank(uint8_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class Reader {
 public:
  Reader(Bytes file, size_t at) : file_(file), at_(at) {}
  // Blanks and comments, then a number of at most 9 digits.
  uint32_t number() {
    skip();
    if (at_ >= file_.size()) damaged("a PNM file ends after {} bytes, in the middle", file_.size());
    uint32_t value = 0;
    const size_t first = at_;
    for (; at_ < file_.size() && file_[at_] >= '0' && file_[at_] <= '9'; ++at_) {
      if (at_ - first == 9) damaged("a PNM file has a number of more than 9 digits at byte {}", first);
      value = value * 10 + (file_[at_] - '0');
    }
    if (at_ == first) damaged("a PNM file has no number at byte {}", at_);
    return value;
  }
  // Bits of text need no blanks between them.
  uint32_t bit() {
    skip();
    if (at_ >= file_.size()) damaged("a PNM file ends after {} bytes, in the middle", file_.size());
    if (file_[at_] != '0' && file_[at_] != '1') damaged("a PNM file has no bit at byte {}", at_);
    return file_[at_++] - '0';
  }
  std::string word() {
    skip();
    std::string text;
    while (at_ < file_.size() && !is_blank(file_[at_]) && text.size() < 16)
      text += static_cast<char>(file_[at_++]);
    return text;
  }
  void skip_line() {
    while (at_ < file_.size() && file_[at_] != '\n') ++at_;
  }
  size_t at() const { return at_; }

 private:
  void skip() {
    for (; at_ < file_.size(); ++at_) {
      if (file_[at_] == '#')
        skip_line();
      else if (!is_blank(file_[at_]))
        return;
    }
  }
  Bytes file_;
  size_t at_;
};

void read_arbitrary(Reader& reader, Pnm& pnm) {
  for (;;) {
    const std::string word = reader.word();
    if (word == "ENDHDR") return;
    if (word == "WIDTH")
      pnm.width = reader.number();
    else if (word == "HEIGHT")
      pnm.height = reader.number();
    else if (word == "DEPTH")
      pnm.depth = reader.number();
    else if (word == "MAXVAL")
      pnm.largest = reader.number();
    else if (word == "TUPLTYPE")
      reader.skip_line();
    else
      damaged("a PAM file has an unknown line in its header, '{}'", word);
  }
}

Pnm read_pnm(Bytes file) {
  Pnm pnm;
  pnm.kind = file[1] - '0';
  Reader reader(file, 2);
  if (pnm.kind == 7) {
    read_arbitrary(reader, pnm);
  } else {
    pnm.width = reader.number();
    pnm.height = reader.number();
    pnm.depth = pnm.kind == 3 || pnm.kind == 6 ? 3 : 1;
    if (!pnm.is_bits()) pnm.largest = reader.number();
  }
  pnm.data = std::min(reader.at() + 1, file.size());  // one blank ends the header
  if (pnm.largest < 1 || pnm.largest > 65535)
    damaged("a PNM file has values up to {}, expected 1 to 65535", pnm.largest);
  if (pnm.depth < 1 || pnm.depth > 4) damaged("a PAM file has {} channels, expected 1 to 4", pnm.depth);
  return pnm;
}

uint8_t scaled(const Pnm& pnm, uint32_t value) {
  if (pnm.largest == 255) return static_cast<uint8_t>(std::min(value, 255u));
  return static_cast<uint8_t>((std::min(value, pnm.largest) * 255u + pnm.largest / 2) / pnm.largest);
}

void write_pixel(const Pnm& pnm, const uint8_t* samples, uint8_t* rgb) {
  for (int channel = 0; channel < 3; ++channel) rgb[channel] = samples[pnm.depth >= 3 ? channel : 0];
}

void decode_bits(const Pnm& pnm, Bytes data, uint8_t* rgb) {
  const int64_t stride = (pnm.width + 7) / 8;
  for (int64_t y = 0; y < pnm.height; ++y) {
    for (int64_t x = 0; x < pnm.width; ++x, rgb += 3) {
      const uint8_t byte = data[static_cast<size_t>(y * stride + x / 8)];
      std::fill_n(rgb, 3, (byte >> (7 - x % 8) & 1) != 0 ? 0 : 255);  // 1 is black
    }
  }
}

void decode_text(const Pnm& pnm, Bytes file, uint8_t* rgb) {
  Reader reader(file, pnm.data);
  for (int64_t i = 0; i < pnm.width * pnm.height; ++i, rgb += 3) {
    uint8_t samples[4] = {};
    for (int64_t channel = 0; channel < pnm.depth; ++channel)
      samples[channel] = pnm.kind == 1 ? (reader.bit() != 0 ? 0 : 255) : scaled(pnm, reader.number());
    write_pixel(pnm, samples, rgb);
  }
}

void decode_samples(const Pnm& pnm, Bytes data, uint8_t* rgb) {
  const size_t width = pnm.largest > 255 ? 2 : 1;
  const uint8_t* next = data.data();
  for (int64_t i = 0; i < pnm.width * pnm.height; ++i, rgb += 3) {
    uint8_t samples[4] = {};
    for (int64_t channel = 0; channel < pnm.depth; ++channel, next += width)
      samples[channel] = scaled(pnm, width == 2 ? next[0] * 256u + next[1] : next[0]);
    write_pixel(pnm, samples, rgb);
  }
}

}  // namespace

Header read_pnm_header(Bytes file) {
  const Pnm pnm = read_pnm(file);
  return {Format::kPnm, pnm.width, pnm.height, 0, 0};
}

void decode_pnm(const Header&, Bytes file, uint8_t* rgb) {
  const Pnm pnm = read_pnm(file);
  if (pnm.is_text()) return decode_text(pnm, file, rgb);
  const Bytes data = file.subspan(pnm.data);
  const int64_t needed = pnm.is_bits() ? (pnm.width + 7) / 8 * pnm.height
                                       : pnm.width * pnm.height * pnm.depth * (pnm.largest > 255 ? 2 : 1);
  if (static_cast<int64_t>(data.size()) < needed)
    damaged("a PNM file has {} bytes of pixels, its header asks for {}", data.size(), needed);
  if (pnm.is_bits()) return decode_bits(pnm, data, rgb);
  decode_samples(pnm, data, rgb);
}

}  // namespace plimsoll::images
