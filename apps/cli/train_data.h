// Examples to train on: one .npy file per input, mapped, its first dimension the examples.
#pragma once

#include <plimsoll/model.h>

#include <map>
#include <string>
#include <vector>

#include "npy.h"

namespace plimsoll::cli {

// A .npy file in memory as the kernel pages it in.
class MappedNpy {
 public:
  explicit MappedNpy(const std::string& path);  // throws kIo, kInvalidArgument
  MappedNpy(MappedNpy&& other) noexcept;
  MappedNpy& operator=(MappedNpy&&) = delete;
  ~MappedNpy();
  const std::string& path() const { return path_; }
  const NpyLayout& layout() const { return layout_; }
  int64_t rows() const { return layout_.shape.empty() ? 0 : layout_.shape[0]; }
  const std::byte* row(int64_t index) const;
  size_t row_bytes() const { return row_bytes_; }
  // Asks the kernel to read a row before it is needed.
  void expect_row(int64_t index) const;

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0, row_bytes_ = 0;
  NpyLayout layout_;
};

// An order of the examples that seed and epoch decide.
std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch);

// The files of a folder that hold a model's inputs, in their order.
class TrainData {
 public:
  // FOLDER/NAME.npy for every input, '/' and ':' in names as '_'. Throws kIo, and kInvalidArgument of files
  // that do not have equally many examples, or whose type or shape is not the model's. Integers of other
  // widths are taken for int64.
  TrainData(const std::string& folder, const std::vector<ValueInfo>& inputs);
  int64_t rows() const { return files_[0].rows(); }
  // Of a batch of so many.
  Shapes shapes(int64_t batch) const;
  // Memory for a batch, to be filled again and again.
  std::vector<Value> make_batch(int64_t batch) const;
  void fill(std::vector<Value>& batch, const int64_t* rows) const;
  void expect(const int64_t* rows, int64_t count) const;

 private:
  std::vector<ValueInfo> inputs_;
  std::vector<MappedNpy> files_;
};

}  // namespace plimsoll::cli
