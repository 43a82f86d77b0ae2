// TensorProto and SparseTensorProto -> TensorData.
#pragma once

#include "graph/graph.h"
#include "onnx/message.h"
#include "onnx/reader.h"

namespace plimsoll::onnx {

// Decodes tensors of one model. `source` is null for bytes in memory; `root` hears of what is odd but means
// something, which is an Error where it is null.
class TensorReader {
 public:
  TensorReader(BumpArena& arena, ModelSource* source, const LoadOptions& options, Graph* root = nullptr)
      : arena_(arena),
        source_(source),
        options_(options),
        root_(root),
        dense_bytes_left_(options.max_dense_bytes) {}

  struct Named {
    std::string_view name;
    TensorData data;
  };
  // The number of elements is proven to agree with the bytes present before anything is allocated. The caller
  // of the reader may have another one for an `initializer`.
  Named read(Message tensor, bool initializer = false);
  struct NamedSparse {
    std::string_view name;
    SparseData data;
  };
  // Its dense form fits what options.max_dense_bytes leaves.
  NamedSparse read_sparse(Message tensor);
  // The dense tensor of a sparse one.
  TensorData densify(std::string_view name, const SparseData& sparse);

 private:
  struct Parts;
  static Parts scan(Message tensor);
  const TensorData* given(const Parts& parts, ElementType type) const;
  std::span<const std::byte> external_bytes(const Parts& parts, int64_t needed);
  std::span<const std::byte> external_file(const std::string& subject, std::string_view location);
  std::span<const std::byte> decode(Message tensor, const Parts& parts, int64_t needed);
  std::span<const std::byte> legal_bools(std::span<const std::byte> bytes);

  BumpArena& arena_;
  ModelSource* source_;
  const LoadOptions& options_;
  Graph* root_;
  int64_t dense_bytes_left_;
};

// The number of elements of `dims`. Throws kInvalidModel naming `subject` on a negative size, too many
// dimensions, or a product whose bytes overflow even without its zeros.
int64_t count_elements(std::string_view subject, ElementType type, std::span<const int64_t> dims);
ElementType checked_element_type(std::string_view subject, int64_t code);

}  // namespace plimsoll::onnx
