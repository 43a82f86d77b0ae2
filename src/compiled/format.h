// The bytes of a compiled file.
//
//   header    one page; a checksum over itself, and one over the tables
//   tables    the graph, the placements, a checksum for each block of what follows, the original's path
//   payload   weights as they are, then packed ones, each in whole pages
//   images    what one program makes of all that when it opens it, if that can be written down: the model's
//             (ArenaImage), behind its size; then for each placed shape its sizes and its plan's, likewise
//
// Every byte is under one of the checksums, the gaps included. Little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

namespace plimsoll::compiled {

inline constexpr std::array<char, 8> kMagic = {'P', 'L', 'I', 'M', 'S', 'O', 'L', '\n'};
inline constexpr uint32_t kFormat = 3;
inline constexpr uint64_t kHeaderBytes = 4096;
inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kBlockBytes = 1 << 20;  // of the payload, under one checksum

struct Range {
  uint64_t offset = 0, size = 0;
  uint64_t end() const { return offset + size; }
};

struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t format = kFormat;
  uint32_t threads = 0;
  std::array<char, 16> instruction_set{};  // filled up with zeros, as the next
  std::array<char, 64> build{};            // of the library that packed: its formats are its own
  uint64_t file_bytes = 0;
  Range graph, placements, blocks, original;  // of the tables
  Range weights, packed;                      // of the payload
  uint64_t largest_absent = 0;                // bytes of the largest tensor that is there in packed form only
  uint64_t layout = 0;                        // Weights::layout()
  Range images;                               // the rest of the file
  std::array<char, 64> program{};             // whose images they are: program_id()
  uint64_t images_sum = 0;
  uint64_t original_bytes = 0, original_sum = 0;
  uint64_t tables_sum = 0;  // of everything between the header and the payload
  uint64_t header_sum = 0;  // of the header's page, with 0 here
};
static_assert(std::is_trivially_copyable_v<Header> && sizeof(Header) <= kHeaderBytes);

}  // namespace plimsoll::compiled
