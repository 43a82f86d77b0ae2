#pragma once

#include "prepare/prepared_model.h"

namespace plimsoll {

// Where a model is: a path, or bytes of the caller.
struct ModelLocation {
  std::string path;
  std::span<const std::byte> bytes;  // where the path is empty
  // Changes the graph as it was read, before anything else looks at it.
  std::function<void(Graph&)> rewrite = nullptr;

  std::unique_ptr<PreparedModel> read(const PrepareOptions& options, Budget& budget) const;
};

// Throws kInvalidArgument for a compiled file: what is written anew, trained or made smaller is an ONNX
// model.
void expect_onnx_file(const std::string& path);

// Writes the model after optimization to `path`; with `fused`, with our own operators too. What was odd about
// it goes to `warnings`.
void save_optimized(const ModelLocation& model, PrepareOptions options, bool fused, Budget& budget,
                    const std::string& path, Graph* warnings);

}  // namespace plimsoll
