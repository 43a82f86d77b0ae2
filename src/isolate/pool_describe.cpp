#include "isolate/pool_describe.h"

#include <fmt/core.h>

#include <cstring>

namespace plimsoll {

std::string describe_end(const Receipt& receipt) {
  switch (receipt.limit_hit ? Ending::kMemoryLimit : receipt.ending) {
    case Ending::kMemoryLimit:
      return fmt::format("reached the memory limit of {} bytes", receipt.limit_bytes);
    case Ending::kExited:
      return fmt::format("exited with code {}", receipt.exit_code);
    case Ending::kSignalled:
      return fmt::format("was ended by signal {} ({})", receipt.signal, sigabbrev_np(receipt.signal));
    case Ending::kWallTime:
      return fmt::format("was not over in time and was ended after {:.0f} ms", receipt.wall_ms);
    case Ending::kCpuTime:
      return fmt::format("reached its CPU time and was ended after {:.0f} ms of it", receipt.cpu_ms);
    default:
      return fmt::format("was ended: {}", ending_name(receipt.ending));
  }
}

Outcome::Kind kind_of_end(const Receipt& receipt) noexcept {
  switch (receipt.limit_hit ? Ending::kMemoryLimit : receipt.ending) {
    case Ending::kMemoryLimit:
      return Outcome::Kind::kMemoryLimit;
    case Ending::kWallTime:
    case Ending::kCpuTime:
      return Outcome::Kind::kTimeout;
    case Ending::kCancelled:
      return Outcome::Kind::kCancelled;
    default:
      return Outcome::Kind::kWorkerDied;
  }
}

}  // namespace plimsoll
