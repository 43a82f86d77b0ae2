// Kernels that do little with each element, against the rate at which a core reads as many bytes: of a
// quarter of a megabyte, which a cache holds, and of 48 megabytes. What computes much (exp, erf, powers)
// shows a small share and its price for an element.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support.h"

namespace plimsoll::micro {

inline constexpr int64_t kCols = 768;  // of rows, where a kernel has rows

// Inputs and outputs of `count` elements each.
struct Operands {
  explicit Operands(int64_t n)
      : count(n), rows(n / kCols), a(floats(n)), b(floats(n)), c(floats(n)), y(floats(n)) {}
  int64_t count, rows;
  Buffer a, b, c, y;
};

struct Kernel {
  std::string name;
  double elements_moved;  // read and written, for each element
  std::function<void(const Operands&)> call;
};

// As rows/NAME/near and rows/NAME/far.
inline bool register_rows(const std::vector<Kernel>& kernels) {
  for (const auto& [where, count] :
       {std::pair("near", int64_t{32 * kCols}), {"far", int64_t{6144 * kCols}}}) {
    for (const Kernel& kernel : kernels) {
      const auto bytes = static_cast<int64_t>(kernel.elements_moved * static_cast<double>(floats(count)));
      benchmark::RegisterBenchmark(("rows/" + kernel.name + "/" + where).c_str(),
                                   [kernel, count = count, bytes](benchmark::State& state) {
                                     const Operands operands(count);
                                     measure_movement(state, bytes, count, [&] { kernel.call(operands); });
                                   })
          ->MinTime(0.1);
    }
  }
  return true;
}

}  // namespace plimsoll::micro
