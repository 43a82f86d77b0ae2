// Runs a test once for every instruction set that this machine and this build have.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include "kernels/instructions.h"

namespace plimsoll {

inline void use_targets(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

template <typename F>
void for_each_target(F&& f) {
  const int64_t there = hwy::SupportedTargets();
  for (int64_t rest = there & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    use_targets(target | (there & kernels::kOwnInstructions));
    SCOPED_TRACE(hwy::TargetName(target));
    f();
  }
  use_targets(0);
}

// The same with and without the instructions that kernels name for themselves.
template <typename F>
void for_each_form(F&& f) {
  const int64_t there = hwy::SupportedTargets();
  const int64_t forms[] = {HWY_AVX2, HWY_AVX2 | kernels::kAvxVnni, HWY_AVX3, HWY_AVX3 | kernels::kAvx512Vnni,
                           HWY_AVX3 | kernels::kAvx512Vnni | kernels::kAmxInt8 | kernels::kAmxBf16};
  for (int64_t rest = there & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    if (target != HWY_AVX2 && target != HWY_AVX3) {
      use_targets(target);
      f();
    }
    for (int64_t form : forms) {
      if ((form & target) == 0 || (form & there) != form) continue;
      use_targets(form);
      SCOPED_TRACE(testing::Message() << "own instructions " << (form >> 40));
      f();
    }
  }
  use_targets(0);
}

}  // namespace plimsoll
