// Small random problems that mix everything a problem may contain.
#pragma once

#include <random>

#include "plan/placement.h"

namespace plimsoll::plan {

struct RandomShape {
  int buffers = 30;
  int64_t times = 20;
  int64_t longest = 8;     // lifetime
  int64_t largest = 1000;  // size
  int spaces = 1;
  bool zero_sizes = false;
  bool alignments = false;  // 1 to 128 instead of 1
};

inline Problem random_problem(unsigned seed, const RandomShape& shape) {
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  Problem problem;
  for (int i = 0; i < shape.buffers; ++i) {
    Buffer b;
    b.size = pick(1, shape.largest);
    if (shape.zero_sizes && pick(0, 5) == 0) b.size = 0;
    b.lower = pick(0, shape.times - 1);
    b.upper = b.lower + pick(1, shape.longest);
    b.alignment = shape.alignments ? int64_t{1} << pick(0, 7) : 1;
    b.space = static_cast<int>(pick(0, shape.spaces - 1));
    problem.buffers.push_back(b);
  }
  return problem;
}

}  // namespace plimsoll::plan
