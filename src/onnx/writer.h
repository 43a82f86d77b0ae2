// Graph -> ONNX bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

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

// A model without the bytes of the root's large initializers, for somebody who keeps them elsewhere.
struct SplitModel {
  struct Tensor {
    std::string name;  // in `model`
    const Edge* edge = nullptr;
    int64_t offset = 0;  // in the location; those that are absent have none
    bool is_absent = false;
  };
  std::string model;
  std::vector<Tensor> tensors;  // by rising offset
  int64_t bytes = 0;            // of all that are not absent, as they lie
  int64_t largest_absent = 0;
};
struct SplitOptions {
  std::string location, absent_location;
  uint64_t alignment = 64;
  std::function<bool(const Edge&)> is_absent;  // those of which only type and shape are written
};
SplitModel write_split_model(const Graph& root, const SplitOptions& options);

}  // namespace plimsoll
