#include "base/stream_sum.h"

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/processor.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plimsoll {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::Full128<uint8_t>;
using Lane = hn::Vec<Tag>;

constexpr size_t kLane = 16, kLanes = 4, kStride = kLanes * kLane, kStreams = 2;

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

// The first `half` bytes and as many behind them side by side: one stream alone keeps a core waiting for its
// memory.
void absorb_halves(Lane (&first)[kLanes], Lane (&second)[kLanes], const std::byte* at, size_t half) {
  constexpr size_t kAhead = 4096;  // bytes that are asked for before they are needed
  for (const std::byte* end = at + half; at < end; at += kStride) {
    __builtin_prefetch(at + kAhead);
    __builtin_prefetch(at + half + kAhead);
    absorb(first, at);
    absorb(second, at + half);
  }
}

#if defined(__x86_64__)
// The same with the lanes of a stream in one vector.
__attribute__((target("avx512f,vaes"))) void absorb_halves_wide(Lane (&first)[kLanes], Lane (&second)[kLanes],
                                                                const std::byte* at, size_t half) {
  __m512i a = _mm512_loadu_si512(first), b = _mm512_loadu_si512(second);
  for (const std::byte* end = at + half; at < end; at += kStride) {
    a = _mm512_aesenc_epi128(a, _mm512_loadu_si512(at));
    b = _mm512_aesenc_epi128(b, _mm512_loadu_si512(at + half));
  }
  _mm512_storeu_si512(first, a);
  _mm512_storeu_si512(second, b);
}
#endif

}  // namespace

uint64_t stream_sum(std::span<const std::byte> bytes, [[maybe_unused]] bool wide) noexcept {
  Lane first[kLanes], second[kLanes];
  begin(first, 0);
  begin(second, 1);
  const size_t half = bytes.size() / (kStreams * kStride) * kStride;
#if defined(__x86_64__)
  if (wide && processor().wide_aes) {
    absorb_halves_wide(first, second, bytes.data(), half);
  } else {
    absorb_halves(first, second, bytes.data(), half);
  }
#else
  absorb_halves(first, second, bytes.data(), half);
#endif
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
