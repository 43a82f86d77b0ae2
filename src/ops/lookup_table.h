// Keys to numbers: a hash table that lives in an arena, for what attributes list.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>

#include "memory/bump_arena.h"

namespace plimsoll {

inline uint64_t mix_bits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
inline uint64_t hash_key(int64_t key) {
  return mix_bits(static_cast<uint64_t>(key) + 0x9e3779b97f4a7c15u);
}
// All NaN are one key, and so are both zeros.
inline uint64_t hash_key(double key) {
  if (std::isnan(key)) return 1;
  return mix_bits(key == 0 ? 0 : std::bit_cast<uint64_t>(key));
}
inline uint64_t hash_key(std::string_view key) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix_bits(hash);
}
inline bool same_key(int64_t a, int64_t b) {
  return a == b;
}
inline bool same_key(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}
inline bool same_key(std::string_view a, std::string_view b) {
  return a == b;
}

// Key is int64_t, double or std::string_view, whose characters must outlive the table. Open addressing, at
// most half full, so that a miss is short.
template <typename Key>
class LookupTable {
 public:
  LookupTable() = default;
  LookupTable(BumpArena& arena, size_t most)
      : slots_(arena.array<Slot>(std::bit_ceil(std::max<size_t>(most, 2) * 2))) {}

  // Of equal keys the last one counts.
  void insert(Key key, int32_t value) { slots_[position(key)] = {key, value}; }
  // -1 if it is not there.
  int32_t find(Key key) const { return slots_.empty() ? -1 : slots_[position(key)].value; }

 private:
  struct Slot {
    Key key{};
    int32_t value = -1;
  };
  size_t position(Key key) const {
    size_t at = hash_key(key) & (slots_.size() - 1);
    while (slots_[at].value >= 0 && !same_key(slots_[at].key, key)) at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::span<Slot> slots_;
};

}  // namespace plimsoll
