#include "kernels/conv_chain.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "kernels/depthwise.h"
#include "kernels/parallel.h"

namespace plimsoll::kernels {
namespace {

// Of the rows between two convolutions, all together: half of a small second-level cache.
constexpr int64_t kNearBytes = 256 << 10;

int64_t row_elements(const ConvShape& s) {
  return s.out_w * s.out_c;
}

// Rows of each convolution's output that are held at once.
using Rows = std::array<int64_t, kMostChained>;

Rows rows_held(std::span<const ChainedConv> chain, int64_t last_rows) {
  Rows rows{};
  rows[chain.size() - 1] = last_rows;
  for (size_t i = chain.size() - 1; i-- > 0;) {
    const ConvShape& next = chain[i + 1].shape;
    rows[i] = std::min(chain[i].shape.out_h, (rows[i + 1] - 1) * next.stride_h + next.kernel_h);
  }
  return rows;
}

int64_t held_bytes(std::span<const ChainedConv> chain, const Rows& rows) {
  int64_t bytes = 0;
  for (size_t i = 0; i + 1 < chain.size(); ++i)
    bytes += round_up(checked_mul(rows[i] * row_elements(chain[i].shape), sizeof(float)), 64);
  return bytes;
}

// As many rows of output to a band as keep what is between near.
int64_t band_rows(std::span<const ChainedConv> chain) {
  int64_t rows = 1;
  while (rows < chain.back().shape.out_h && held_bytes(chain, rows_held(chain, rows + 1)) <= kNearBytes)
    ++rows;
  return rows;
}

ConvShape part_of(const ConvShape& whole, int64_t in_rows, int64_t pad_top, int64_t out_rows) {
  ConvShape s = whole;
  s.in_h = in_rows, s.pad_top = pad_top, s.out_h = out_rows;
  return s;
}

// Of the convolutions themselves, one at a time.
int64_t working_bytes(std::span<const ChainedConv> chain, const Rows& rows) {
  size_t most = 0;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].depthwise) continue;
    for (int64_t n = 1; n <= rows[i]; ++n)
      most = std::max(most, conv_scratch_bytes<float>(part_of(chain[i].shape, n, 0, n), 1));
  }
  return round_up(static_cast<int64_t>(most), 64);
}

// One thread's walk down one image.
class ChainWalk {
 public:
  ChainWalk(std::span<const ChainedConv> chain, const float* x, const float* addend, float* y,
            const Rows& rows, std::byte* scratch)
      : chain_(chain), x_(x), addend_(addend), y_(y) {
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      held_[i].rows = reinterpret_cast<float*>(scratch);
      scratch += round_up(rows[i] * row_elements(chain[i].shape) * static_cast<int64_t>(sizeof(float)), 64);
    }
    working_ = scratch;
  }

  // Rows [first, last) of the output; never before those of the last call.
  void make(int64_t first, int64_t last) {
    const size_t end = chain_.size() - 1;
    const int64_t at = first * row_elements(chain_[end].shape);
    compute(end, first, last, y_ + at, addend_ == nullptr ? nullptr : addend_ + at);
  }

 private:
  struct Held {
    float* rows = nullptr;
    int64_t first = 0, last = 0;
  };

  // The output's rows [first, last) of a convolution that others stand behind.
  const float* need(size_t i, int64_t first, int64_t last) {
    Held& held = held_[i];
    const int64_t row = row_elements(chain_[i].shape);
    if (first > held.first) {
      const int64_t kept = std::max<int64_t>(0, held.last - first);
      if (kept > 0)
        std::memmove(held.rows, held.rows + (first - held.first) * row,
                     static_cast<size_t>(kept * row) * sizeof(float));
      held.first = first;
      held.last = first + kept;
    }
    if (last > held.last) compute(i, held.last, last, held.rows + (held.last - held.first) * row, nullptr);
    held.last = std::max(held.last, last);
    return held.rows + (first - held.first) * row;
  }

  void compute(size_t i, int64_t first, int64_t last, float* to, const float* addend) {
    const ChainedConv& conv = chain_[i];
    const ConvShape& s = conv.shape;
    const int64_t top = first * s.stride_h - s.pad_top;
    const int64_t begin = std::clamp<int64_t>(top, 0, s.in_h);
    const int64_t end = std::clamp<int64_t>((last - 1) * s.stride_h - s.pad_top + s.kernel_h, begin, s.in_h);
    const float* from = i == 0 ? x_ + begin * s.in_w * s.in_c : begin < end ? need(i - 1, begin, end) : x_;
    const ConvShape part = part_of(s, end - begin, begin - top, last - first);
    const ConvEpilogue<float> epilogue{conv.bias, addend, conv.activation};
    if (conv.depthwise) return depthwise(part, from, conv.packed, to, epilogue, 1);
    kernels::conv(part, from, conv.packed, to, epilogue, working_, 1);
  }

  const std::span<const ChainedConv> chain_;
  const float* x_;
  const float* addend_;
  float* y_;
  std::byte* working_ = nullptr;
  std::array<Held, kMostChained> held_;
};

}  // namespace

int64_t conv_chain_scratch_bytes(std::span<const ChainedConv> chain, int threads) {
  const Rows rows = rows_held(chain, band_rows(chain));
  return checked_mul(threads, checked_add(held_bytes(chain, rows), working_bytes(chain, rows)));
}

void conv_chain(std::span<const ChainedConv> chain, int64_t batch, const float* x, const float* addend,
                float* y, std::byte* scratch, int threads) {
  const int64_t rows = band_rows(chain);
  const Rows held = rows_held(chain, rows);
  const int64_t own_bytes = conv_chain_scratch_bytes(chain, 1);
  const ConvShape &in = chain.front().shape, &out = chain.back().shape;
  const int64_t in_image = in.in_h * in.in_w * in.in_c, out_image = out.out_h * row_elements(out);
  const int64_t all = batch * out.out_h, workers = std::min<int64_t>(threads, all);
  parallel_for(threads, workers, [&](int64_t worker) {
    for (int64_t row = all * worker / workers, end = all * (worker + 1) / workers; row < end;) {
      const int64_t image = row / out.out_h, stop = std::min(end, (image + 1) * out.out_h);
      ChainWalk walk(chain, x + image * in_image, addend == nullptr ? nullptr : addend + image * out_image,
                     y + image * out_image, held, scratch + worker * own_bytes);
      for (; row < stop; row = std::min(stop, row + rows))
        walk.make(row - image * out.out_h, std::min(stop, row + rows) - image * out.out_h);
    }
  });
}

}  // namespace plimsoll::kernels
