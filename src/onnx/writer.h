// Graph -> ONNX bytes.
#pragma once

#include <cstdint>
#include <string>

#include "graph/graph.h"

namespace plimsoll {

struct WriteOptions {
  // Protobuf readers take at most 2 GiB. A larger model gets its initializers in a second file, NAME.data.
  int64_t max_file_bytes = (int64_t{1} << 31) - 1;
};

// Writes beside `path` first, then renames, so that nobody sees half a file and the model may be written
// over the file it was read from. Tensors are streamed, not copied. Throws kIo, having left nothing behind.
//
// Values that share a visible name, or have none, are renamed; the model's inputs and outputs keep theirs.
// Domains that nodes use are imported. Documentation of nodes and graphs, training information and
// quantization annotations are not in a Graph and not written.
void write_model(const Graph& root, const std::string& path, const WriteOptions& options = {});

// The same in memory, all in one. Throws kInvalidArgument above options.max_file_bytes.
std::string write_model_bytes(const Graph& root, const WriteOptions& options = {});

}  // namespace plimsoll
