// Examples to train on: one .npy file per input, its first dimension the examples.
#pragma once

#include <plimsoll/model.h>

#include <span>
#include <string>
#include <vector>

#include "npy.h"

namespace plimsoll::cli {

// A .npy file whose rows are read where they are wanted. Not mapped: pages of a mapping would count as memory
// of the process, and a file that shrinks meanwhile would end it.
class NpyFile {
 public:
  explicit NpyFile(const std::string& path);  // throws kIo, kInvalidArgument
  NpyFile(NpyFile&& other) noexcept;
  NpyFile& operator=(NpyFile&&) = delete;
  ~NpyFile();
  const std::string& path() const { return path_; }
  const NpyLayout& layout() const { return layout_; }
  int64_t rows() const { return layout_.shape.empty() ? 0 : layout_.shape[0]; }
  size_t row_bytes() const { return row_bytes_; }
  // Bytes [offset, offset + to.size()) of the rows from `row` on. Throws kIo.
  void read(int64_t row, size_t offset, std::span<std::byte> to) const;
  // Asks the kernel to read a row before it is needed.
  void expect_row(int64_t index) const;

 private:
  size_t place(int64_t row) const { return layout_.data_offset + static_cast<size_t>(row) * row_bytes_; }

  std::string path_;
  int descriptor_ = -1;
  size_t row_bytes_ = 0;
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
  std::vector<NpyFile> files_;
};

}  // namespace plimsoll::cli
