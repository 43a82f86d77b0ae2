// numpy's .npy files.
#pragma once

#include <plimsoll/value.h>

#include <string>
#include <string_view>
#include <vector>

#include "files.h"

namespace plimsoll::cli {

// What a file of numbers says of itself, without its data.
struct NpyLayout {
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> shape;
  size_t data_offset = 0;
};
// `start`: the file's beginning, at least its header; `file_bytes`: all of it. Throws kInvalidArgument.
NpyLayout read_npy_layout(const std::string& path, std::string_view start, size_t file_bytes);

// Versions 1 to 3, row-major, little-endian, numbers and strings. Throws kIo, kInvalidArgument.
Value read_npy(const std::string& path);
// The same without a copy, where that can be: `file` is what the value's memory is then.
Value map_npy(const std::string& path, std::shared_ptr<FileMapping>& file);
// Types that numpy does not have become the next wider one: bfloat16 and float8 float32, int4 int8.
void write_npy(NewFiles& files, const std::string& path, const Value& value);

}  // namespace plimsoll::cli
