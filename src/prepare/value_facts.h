// What planning asks of the facts of a value.
#pragma once

#include "tensor/tensor.h"

namespace plimsoll {

// Bytes of a value with these facts.
Dim value_bytes(const Facts& facts);
// Its shape does not depend on data.
bool is_static(const Facts& facts);
// Every element is known and they are few, so that nothing need be computed.
inline constexpr int64_t kMaxKnownBytes = 64 << 10;
bool is_known(const Facts& facts);

}  // namespace plimsoll
