// numpy's .npy files.
#pragma once

#include <plimsoll/value.h>

#include <string>

#include "files.h"

namespace plimsoll::cli {

// Versions 1 to 3, row-major, little-endian, numbers and strings. Throws kIo, kInvalidArgument.
Value read_npy(const std::string& path);
// Types that numpy does not have become the next wider one: bfloat16 and float8 float32, int4 int8.
void write_npy(NewFiles& files, const std::string& path, const Value& value);

}  // namespace plimsoll::cli
