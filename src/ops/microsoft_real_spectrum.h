// What Rfft and Irfft of com.microsoft ask of their attributes.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

inline void check_real_spectrum(AttrContext& c) {
  const struct {
    std::string_view name;
    int64_t expected;
  } kAll[] = {{"normalized", 0}, {"onesided", 1}, {"signal_ndim", 1}};
  for (const auto& one : kAll) {
    if (const int64_t found = c.integer(one.name, one.expected); found != one.expected)
      c.reject("attribute '{}': expected {}, found {}", one.name, one.expected, found);
  }
}

}  // namespace plimsoll
