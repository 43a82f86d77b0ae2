#include "memory/arena_image.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/checked.h"

namespace plimsoll {
namespace {

struct Range {
  uintptr_t begin = 0, end = 0;
  uint64_t offset = 0;
  size_t place = 0;
};

// Where addresses lead.
class Map {
 public:
  explicit Map(std::span<const Place> places) {
    for (size_t p = 0; p < places.size(); ++p) {
      uint64_t offset = 0;
      for (const std::span<const std::byte> piece : places[p].pieces) {
        const auto begin = reinterpret_cast<uintptr_t>(piece.data());
        ranges_.push_back({begin, begin + piece.size(), offset, p});
        offset += (piece.size() + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
      }
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
  }
  // The end of a range counts as its own where no other begins.
  const Range* find(uint64_t address) const {
    auto next = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                 [](uint64_t a, const Range& range) { return a < range.begin; });
    if (next == ranges_.begin()) return nullptr;
    --next;
    return address <= next->end ? &*next : nullptr;
  }

 private:
  std::vector<Range> ranges_;
};

// Memory of this process but its stack. False if the system does not tell.
bool read_mapped(std::vector<Range>& mapped) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  if (file == nullptr) return false;
  std::array<char, 4600> line;
  while (std::fgets(line.data(), line.size(), file.get()) != nullptr) {
    unsigned long begin = 0, end = 0;
    if (std::sscanf(line.data(), "%lx-%lx", &begin, &end) != 2) return false;
    if (std::strstr(line.data(), "[stack]") == nullptr) mapped.push_back({begin, end});
  }
  return !mapped.empty();
}

bool contains(std::span<const Range> mapped, uint64_t address) {
  return std::any_of(mapped.begin(), mapped.end(),
                     [&](const Range& range) { return address >= range.begin && address < range.end; });
}

}  // namespace

std::optional<std::vector<std::byte>> write_image(const BumpArena& arena, const void* root,
                                                  std::span<const Place> places, size_t room) {
  ArenaImage::Header header;
  std::vector<std::byte> bytes;
  for (const std::span<const std::byte> piece : arena.pieces()) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
    bytes.resize((bytes.size() + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment);
  }
  const Map map(places);
  const Range* const found = map.find(reinterpret_cast<uintptr_t>(root));
  std::vector<Range> mapped;
  if (found == nullptr || found->place != 0 || !read_mapped(mapped)) return {};
  header = {bytes.size(), found->offset + (reinterpret_cast<uintptr_t>(root) - found->begin), room,
            places.size()};
  std::vector<uint64_t> masks(ArenaImage::mask_words(header.bytes) * places.size());
  for (size_t word = 0; word < bytes.size() / sizeof(uint64_t); ++word) {
    uint64_t value;
    std::memcpy(&value, bytes.data() + word * sizeof value, sizeof value);
    constexpr uint64_t kFirstPages = 1 << 16;
    if (value < kFirstPages) continue;
    if (const Range* range = map.find(value)) {
      masks[range->place * ArenaImage::mask_words(header.bytes) + word / 64] |= uint64_t{1} << (word % 64);
      value = range->offset + (value - range->begin);
    } else if (contains(mapped, value)) {
      return {};
    }
    std::memcpy(bytes.data() + word * sizeof value, &value, sizeof value);
  }
  std::vector<std::byte> image(sizeof header);
  std::memcpy(image.data(), &header, sizeof header);
  image.insert(image.end(), bytes.begin(), bytes.end());
  const auto masked = std::as_bytes(std::span(masks));
  image.insert(image.end(), masked.begin(), masked.end());
  return image;
}

std::optional<std::vector<std::byte>> common_image(std::span<const std::byte> a,
                                                   std::span<const std::byte> b) {
  if (a.size() != b.size()) return {};
  std::vector<std::byte> image(a.begin(), a.end());
  const auto of_user = [](uint64_t value) { return value >> 32 != 0 && value >> 47 == 0; };
  for (size_t at = 0; at + sizeof(uint64_t) <= a.size(); at += sizeof(uint64_t)) {
    uint64_t first, second;
    std::memcpy(&first, a.data() + at, sizeof first);
    std::memcpy(&second, b.data() + at, sizeof second);
    if (first == second) continue;
    if (!of_user(first) || !of_user(second)) return {};
    std::memset(image.data() + at, 0, sizeof first);
  }
  // Where one had an address and the other a number, the masks differ too, and the image is none any more.
  const std::optional<ArenaImage> one = ArenaImage::in(a), other = ArenaImage::in(b);
  if (!one || !other || !one->has_same_addresses(*other)) return {};
  return image;
}

std::optional<ArenaImage> ArenaImage::in(std::span<const std::byte> bytes) {
  ArenaImage image;
  if (bytes.size() < sizeof image.header_) return {};
  std::memcpy(&image.header_, bytes.data(), sizeof image.header_);
  const Header& header = image.header_;
  constexpr uint64_t kMost = uint64_t{1} << 40, kMostPlaces = 16;
  if (header.bytes % kPieceAlignment != 0 || header.bytes > kMost || header.room > kMost ||
      header.root >= header.bytes || header.places == 0 || header.places > kMostPlaces)
    return {};
  const size_t masks = mask_words(header.bytes) * header.places * sizeof(uint64_t);
  if (bytes.size() != sizeof header + header.bytes + masks) return {};
  image.bytes_ = bytes.subspan(sizeof header, header.bytes);
  image.masks_ = bytes.last(masks);
  return image;
}

bool ArenaImage::has_same_addresses(const ArenaImage& other) const {
  return std::equal(masks_.begin(), masks_.end(), other.masks_.begin(), other.masks_.end());
}

std::byte* ArenaImage::load(BumpArena& arena, std::span<const std::byte* const> begins) const {
  const std::span<std::byte> to = arena.adopt(bytes_.size(), header_.room);
  std::memcpy(to.data(), bytes_.data(), bytes_.size());
  const size_t count = mask_words(header_.bytes);
  for (size_t place = 0; place < header_.places; ++place) {
    const auto begin = reinterpret_cast<uintptr_t>(place == 0 ? to.data() : begins[place]);
    for (size_t i = 0; i < count; ++i) {
      uint64_t mask;
      std::memcpy(&mask, masks_.data() + (place * count + i) * sizeof mask, sizeof mask);
      for (; mask != 0; mask &= mask - 1) {
        std::byte* const word =
            to.data() + (i * 64 + static_cast<size_t>(std::countr_zero(mask))) * sizeof begin;
        uint64_t value;
        std::memcpy(&value, word, sizeof value);
        value += begin;
        std::memcpy(word, &value, sizeof value);
      }
    }
  }
  return to.data();
}

}  // namespace plimsoll
