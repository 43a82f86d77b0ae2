// Encoded images to pixels. Nothing here knows tensors; Errors say what is wrong with the image, without a
// prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::images {

using Bytes = std::span<const uint8_t>;

enum class Format : uint8_t { kUnknown, kBmp, kJpeg, kJpeg2000, kPng, kPnm, kTiff, kWebp };

// What an image says of itself before it is decoded.
struct Header {
  Format format = Format::kUnknown;
  int64_t width = 0, height = 0;
  // What decoding takes besides the pixels, at most: the library's own memory on the heap, or `workspace`
  // below.
  int64_t library_bytes = 0;
  int64_t workspace_bytes = 0;
};

// Larger images are refused whatever they hold.
inline constexpr int64_t kMostPixels = int64_t{1} << 28;

// Reads and checks the header only; allocates nothing. Throws kInvalidArgument for what is no image of a
// known format, is cut short, or claims more than kMostPixels.
Header read_header(Bytes file);

// Decodes to red, green, blue, one byte each, rows from the top, into `rgb` of width * height * 3 bytes;
// `workspace` has the bytes that the header asked for. Throws kInvalidArgument for a damaged file, one that
// is cut short, or one whose header was a lie, and kNotImplemented for a format that was built without its
// library.
void decode(const Header& header, Bytes file, uint8_t* rgb, uint8_t* workspace);

}  // namespace plimsoll::images
