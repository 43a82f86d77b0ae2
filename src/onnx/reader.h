// ONNX bytes -> Graph.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx/model_source.h"

namespace plimsoll {

struct LoadOptions {
  MappedFile::Access access = MappedFile::Access::kMap;
  MappedFile::Admit admit;    // told the size of every file that is read into memory, before
  bool strict = false;        // what other runtimes let pass is an Error too (Graph::warn)
  bool external_data = true;  // false: a tensor outside the model's own file is an Error
  // What all sparse tensors together may take as dense ones.
  int64_t max_dense_bytes = int64_t{64} << 20;

  using Sizes = std::map<std::string, int64_t, std::less<>>;
  using Tensors = std::map<std::string, TensorData, std::less<>>;
  using Files = std::map<std::string, std::span<const std::byte>, std::less<>>;
  // Sizes for dimensions that have none, by name and by denotation. Two that differ for one dimension are an
  // Error (kInvalidArgument).
  Sizes sizes_by_name, sizes_by_denotation;
  // Instead of initializers of the model's graph, whose type and shape they must have (kInvalidArgument): of
  // any, and of those whose data is in another file, which is not opened then. The bytes outlive the graph.
  Tensors initializers, external_initializers;
  Files external_files;  // instead of files of these names
  // What the file says of shapes and is not to be believed: that dimensions of one name have one size, and
  // that these values are scalars.
  struct Loose {
    bool names = false;
    std::vector<std::string> scalars;
    bool is_empty() const { return !names && scalars.empty(); }
  };
  Loose loose;
  std::string* graph_description = nullptr;  // where to put the graph's own doc_string

  // Nothing stands for anything in the file.
  bool is_empty() const {
    return sizes_by_name.empty() && sizes_by_denotation.empty() && initializers.empty() &&
           external_initializers.empty() && external_files.empty() && loose.is_empty();
  }
};

// Fills `root`, which must be new, from the file at `path`. Names are copied into the graph's arena;
// tensor data and string elements stay in the files, which `source` owns from now on, except typed
// fields that need decoding: those go into the arena. The nodes of every graph are in an order in
// which values are made before they are used.
//
// An input with an initializer is in `inputs` and in `initializers`: its data is a default that the
// caller may override. Dimensions without a name or a size become symbols of their own ("x.d0").
// Declared types of inputs and outputs are in their facts; those of other values are not read.
//
// Throws kIo, kInvalidModel, kNotImplemented (opaque types), kBudgetExceeded,
// kOutOfMemory; `root` is then of no use.
void read_model(const std::string& path, Graph& root, ModelSource& source, const LoadOptions& options = {});

// The same from bytes in memory, which must outlive `root`. External data comes from `source`, which is that
// of a folder, or is an Error.
void read_model(std::span<const std::byte> bytes, Graph& root, const LoadOptions& options = {},
                ModelSource* source = nullptr);

}  // namespace plimsoll
