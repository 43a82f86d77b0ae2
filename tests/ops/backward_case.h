// Operators of ours that gradients make of layers: expected numbers are those of the definition, worked out
// by hand or as quotients of differences. A file may name them with anything, so they refuse what does not
// fit.
#pragma once

#include <string>

#include "ops/op_case.h"

namespace plimsoll {

inline constexpr const char* kOurs = "ai.plimsoll";

// `why` is a part of what the refusal says.
inline void refuses(OpCase& op, const std::string& why) {
  try {
    op.run();
    ADD_FAILURE() << "was not refused; expected: " << why;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
  }
}

}  // namespace plimsoll
