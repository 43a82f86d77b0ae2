#include "base/stream_sum.h"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace plimsoll {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::Full128<uint8_t>;
using Lane = hn::Vec<Tag>;

constexpr size_t kLane = 16, kLanes = 4, kStride = kLanes * kLane, kStreams = 2;
constexpr size_t kAhead = 4096;  // bytes that are asked for before they are needed

Lane load(const std::byte* at) {
  return hn::LoadU(Tag(), reinterpret_cast<const uint8_t*>(at));
}

// One round of AES on the state, which can be undone, then the data. On x86 that is one instruction.
void absorb(Lane (&state)[kLanes], const std::byte* at) {
  for (size_t i = 0; i < kLanes; ++i) state[i] = hn::AESRound(state[i], load(at + i * kLane));
}

// Every bit of it changes with every bit of the state: two changes in different lanes cancel each other by
// chance alone.
Lane mix(Lane state) {
  for (int round = 0; round < 4; ++round) state = hn::AESRound(state, hn::Zero(Tag()));
  return state;
}

void begin(Lane (&state)[kLanes], size_t stream) {
  for (size_t i = 0; i < kLanes; ++i) {
    std::array<std::byte, kLane> number{};
    number[0] = static_cast<std::byte>(1 + stream * kLanes + i);
    state[i] = load(number.data());
  }
}

}  // namespace

// The two halves side by side: one stream alone keeps a core waiting for its memory.
uint64_t stream_sum(std::span<const std::byte> bytes) noexcept {
  Lane first[kLanes], second[kLanes];
  begin(first, 0);
  begin(second, 1);
  const size_t half = bytes.size() / (kStreams * kStride) * kStride;
  const std::byte* at = bytes.data();
  for (size_t done = 0; done < half; done += kStride, at += kStride) {
    __builtin_prefetch(at + kAhead);
    __builtin_prefetch(at + half + kAhead);
    absorb(first, at);
    absorb(second, at + half);
  }
  std::array<std::byte, kStreams * kStride> rest{};
  const std::span<const std::byte> left = bytes.subspan(kStreams * half);
  std::copy(left.begin(), left.end(), rest.begin());
  absorb(first, rest.data());
  absorb(second, rest.data() + kStride);

  std::array<std::byte, kLane> size{};
  const uint64_t count = bytes.size();
  std::memcpy(size.data(), &count, sizeof count);
  Lane sum = load(size.data());
  for (size_t i = 0; i < kLanes; ++i) sum = mix(hn::Xor(mix(hn::Xor(sum, mix(first[i]))), mix(second[i])));
  std::array<uint64_t, 2> words;
  hn::StoreU(sum, Tag(), reinterpret_cast<uint8_t*>(words.data()));
  return words[0] ^ words[1];
}

}  // namespace plimsoll
