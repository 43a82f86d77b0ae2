#include "plimsoll/peaks.h"

#include <cstring>

#include "kernels/peak.h"
#include "memory/mapping.h"

namespace plimsoll {

Peaks MeasurePeaks() {
  constexpr int64_t kBytes = 64 << 20;
  const Mapping memory(kBytes);
  std::memset(memory.data(), 1, kBytes);  // pages of zeros would all be one page
  const auto* floats = reinterpret_cast<const float*>(memory.data());
  const auto rate = [&](int64_t bytes) {
    return kernels::read_peak({floats, static_cast<size_t>(bytes) / sizeof(float)});
  };
  Peaks peaks{kernels::fma_peak(), rate(kBytes), {}};
  for (int64_t bytes = 16 << 10; bytes < kBytes; bytes *= 4) peaks.cached.push_back({bytes, rate(bytes)});
  return peaks;
}

}  // namespace plimsoll
