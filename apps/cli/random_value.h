// Reproducible data for models whose inputs nobody gave.
#pragma once

#include <plimsoll/value.h>

#include <string>

namespace plimsoll::cli {

// The same name, type, shape and seed give the same bytes on every machine. Floats lie in [-1, 1), integers
// in [0, 100); a name that says mask gets ones, one that says token type or segment gets zeros.
Value random_value(const std::string& name, ElementType type, const std::vector<int64_t>& shape,
                   uint64_t seed);

}  // namespace plimsoll::cli
