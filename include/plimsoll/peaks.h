// What one core of this machine can do at most, measured: the roof that a profile is held against.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll {

struct Peaks {
  double gflops = 0;                // fused multiply-adds of float in registers, 2 operations each
  double gigabytes_per_second = 0;  // read from memory
  // The same where so many bytes are read again and again, from caches; the fewest bytes first.
  struct Cached {
    int64_t bytes = 0;
    double gigabytes_per_second = 0;
  };
  std::vector<Cached> cached;
};

// With the instructions in use (Env::GetInstructionSet), in some hundred milliseconds, with 64 MiB of its
// own.
Peaks MeasurePeaks();

}  // namespace plimsoll
