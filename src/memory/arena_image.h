// The bytes of an arena, written down so that they can be used at other addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "memory/bump_arena.h"

namespace plimsoll {

// Memory that an arena may point into: pieces that an image has one behind the other, each from a multiple of
// kPieceAlignment on.
struct Place {
  std::vector<std::span<const std::byte>> pieces;
};
inline Place place_of(const BumpArena& arena) {
  return {arena.pieces()};
}
inline constexpr size_t kPieceAlignment = 64;

// What is in `arena` and reaches everything else in it from `root`, with every address of one of the places
// as its number there. The first place is the arena itself. `room`: bytes for what will be allocated beside
// it. Nothing if a word of it is an address of other memory that this process has, which nobody could find
// again.
std::optional<std::vector<std::byte>> write_image(const BumpArena& arena, const void* root,
                                                  std::span<const Place> places, size_t room);

// Of images of two arenas that were filled in the same way at different addresses, the one that both are: a
// number that looked like an address in one of them would not in the other. Addresses of memory that is gone
// are what was left behind in bytes that nobody reads: zeros. Nothing if they differ in more.
std::optional<std::vector<std::byte>> common_image(std::span<const std::byte> a,
                                                   std::span<const std::byte> b);

// An image in the bytes of a file, which must be those that write_image() gave.
class ArenaImage {
 public:
  ArenaImage() = default;
  // Nothing if these cannot be the bytes of an image.
  static std::optional<ArenaImage> in(std::span<const std::byte> bytes);

  // Puts it into a new arena, for places that begin at these addresses (that of the first is not looked at).
  // Returns where the first place begins now; the root is at root_offset().
  std::byte* load(BumpArena& arena, std::span<const std::byte* const> begins) const;
  size_t root_offset() const { return header_.root; }
  bool has_same_addresses(const ArenaImage& other) const;

 private:
  friend std::optional<std::vector<std::byte>> write_image(const BumpArena&, const void*,
                                                           std::span<const Place>, size_t);
  struct Header {
    uint64_t bytes = 0, root = 0, room = 0, places = 0;
  };
  static size_t mask_words(uint64_t bytes) { return (bytes / sizeof(uint64_t) + 63) / 64; }

  Header header_;
  std::span<const std::byte> bytes_, masks_;  // a bit for each word, for each place
};

}  // namespace plimsoll
