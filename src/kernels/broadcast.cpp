#include "kernels/broadcast.h"

#include <algorithm>

namespace plimsoll::kernels {
namespace {

// Strides of an operand along the dimensions of the output: 0 where it is 1 or missing.
void aligned_strides(std::span<const int64_t> output, std::span<const int64_t> operand, int64_t* strides) {
  int64_t stride = 1;
  for (size_t i = 0; i < output.size(); ++i) {
    const size_t axis = output.size() - 1 - i;
    const int64_t dim = i < operand.size() ? operand[operand.size() - 1 - i] : 1;
    strides[axis] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
}

}  // namespace

Broadcast::Broadcast(std::span<const int64_t> output,
                     std::initializer_list<std::span<const int64_t>> operands)
    : operands_(static_cast<int>(operands.size())) {
  int64_t all[kMaxOperands][kMaxBroadcastRank];
  int n = 0;
  for (std::span<const int64_t> operand : operands) aligned_strides(output, operand, all[n++]);
  // From the innermost dimension outwards, stored innermost first.
  for (size_t axis = output.size(); axis-- > 0;) {
    elements_ *= output[axis];
    if (output[axis] == 1) continue;
    bool merges = rank_ > 0;
    for (int k = 0; merges && k < operands_; ++k)
      merges = all[k][axis] == strides_[k][rank_ - 1] * dims_[rank_ - 1];
    if (merges) {
      dims_[rank_ - 1] *= output[axis];
      continue;
    }
    dims_[rank_] = output[axis];
    for (int k = 0; k < operands_; ++k) strides_[k][rank_] = all[k][axis];
    ++rank_;
  }
  if (elements_ == 0) return;
  for (; rank_ < 2; ++rank_) dims_[rank_] = 1;
  int64_t stride = 1;
  for (int i = 0; i < rank_; ++i) {
    output_strides_[i] = stride;
    stride *= dims_[i];
  }
  cols_per_block_ = std::min(dims_[0], kBlockElements);
  rows_per_block_ = std::min(dims_[1], std::max<int64_t>(1, kBlockElements / cols_per_block_));
  col_blocks_ = (dims_[0] + cols_per_block_ - 1) / cols_per_block_;
  row_blocks_ = (dims_[1] + rows_per_block_ - 1) / rows_per_block_;
  tasks_ = elements_ / (dims_[0] * dims_[1]) * row_blocks_ * col_blocks_;
}

BroadcastBlock Broadcast::block(int64_t task) const {
  const int64_t col = task % col_blocks_ * cols_per_block_;
  task /= col_blocks_;
  const int64_t row = task % row_blocks_ * rows_per_block_;
  task /= row_blocks_;
  BroadcastBlock b = {};
  b.rows = std::min(rows_per_block_, dims_[1] - row);
  b.cols = std::min(cols_per_block_, dims_[0] - col);
  b.output = row * output_strides_[1] + col;
  b.output_row = output_strides_[1];
  for (int k = 0; k < operands_; ++k) {
    b.col_stride[k] = strides_[k][0];
    b.row_stride[k] = strides_[k][1];
    b.offset[k] = row * strides_[k][1] + col * strides_[k][0];
  }
  for (int i = 2; i < rank_; ++i) {
    const int64_t index = task % dims_[i];
    task /= dims_[i];
    b.output += index * output_strides_[i];
    for (int k = 0; k < operands_; ++k) b.offset[k] += index * strides_[k][i];
  }
  return b;
}

void Broadcast::for_each_block(int threads, BlockFunction call, const void* function) const {
  if (tasks_ == 0) return;
  parallel_for(elements_ < kMinParallel ? 1 : threads, tasks_, [&](int64_t i) { call(function, block(i)); });
}

}  // namespace plimsoll::kernels
