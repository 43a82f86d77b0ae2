// Scores of a tile of queries at a time: the memory is that of a few rows, not of the whole matrix.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/copy.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/softmax.h"
#include "kernels/unary.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/float_blocks.h"

namespace plimsoll {
namespace {

// Rows of one head: `stride` elements apart.
template <typename W>
struct Rows {
  const W* data = nullptr;
  int64_t stride = 0;
};

// Where a row of a head starts in a 3-D [batch, rows, heads * size] or 4-D [batch, heads, rows, size] tensor.
struct HeadRows {
  int64_t rows, heads, size;
  bool flat;
  int64_t row(int64_t batch, int64_t head, int64_t i) const {
    return flat ? ((batch * rows + i) * heads + head) * size : ((batch * heads + head) * rows + i) * size;
  }
  int64_t stride() const { return flat ? heads * size : size; }
};

// Keys that a query sees, but for the mask.
struct Range {
  int64_t first = 0, last = 0;
};

template <typename W>
class AttentionRun {
 public:
  explicit AttentionRun(const RunContext& c)
      : c_(c), a_(c.attrs<AttentionAttrs>()), b_(c.bound_as<BoundAttention>()) {
    total_ = b_.past + b_.keys;
    flat_ = c.inputs[kAttentionQ].rank() == 3;
    scale_ =
        a_.has_scale ? static_cast<W>(a_.scale) : static_cast<W>(1 / std::sqrt(static_cast<double>(b_.head)));
    if (c.has_input(kAttentionMask)) read_mask_strides();
  }

  void run() {
    check_lengths();
    write_present(1, kAttentionK, kAttentionPastK, b_.head);
    write_present(2, kAttentionV, kAttentionPastV, b_.value_head);
    const int64_t tiles = (b_.queries + kAttentionTile - 1) / kAttentionTile;
    const int64_t units = b_.batch * b_.q_heads * tiles;
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t thread) {
      Scratch s = scratch_of(thread);
      int64_t loaded = -1;
      for (int64_t i = units * thread / c_.threads; i < units * (thread + 1) / c_.threads; ++i) {
        const int64_t unit = i / tiles, batch = unit / b_.q_heads, head = unit % b_.q_heads;
        const int64_t group = head / (b_.q_heads / b_.kv_heads);
        if (std::exchange(loaded, batch * b_.kv_heads + group) != loaded) load_head(batch, group, s);
        const int64_t first = i % tiles * kAttentionTile;
        run_tile(batch, head, first, std::min(kAttentionTile, b_.queries - first), s);
      }
    });
  }

 private:
  struct Scratch {
    W *scores, *query, *result, *key_copy, *value_copy, *packed_keys, *packed_values;
    Rows<W> keys, values;
  };

  Scratch scratch_of(int64_t thread) const {
    W* next = reinterpret_cast<W*>(c_.scratch) + thread * b_.per_thread;
    auto take = [&](int64_t count) { return std::exchange(next, next + count); };
    Scratch s;
    s.scores = take(b_.scores), s.query = take(b_.query), s.result = take(b_.result);
    s.key_copy = take(b_.key_copy), s.value_copy = take(b_.value_copy);
    s.packed_keys = take(b_.packed_keys), s.packed_values = take(b_.packed_values);
    return s;
  }

  void check_lengths() const {
    if (!c_.has_input(kAttentionValid)) return;
    for (int64_t i = 0; i < b_.batch; ++i) {
      const int64_t length = c_.inputs[kAttentionValid].as<int64_t>()[i];
      if (length < 0 || length > total_)
        fail(ErrorCode::kInvalidArgument, "{}: nonpad_kv_seqlen[{}] is {}, expected 0 to {}",
             c_.node->label(), i, length, total_);
    }
  }

  // ---- keys and values ---------------------------------------------------------------------------

  HeadRows current(int64_t size) const { return {b_.keys, b_.kv_heads, size, flat_}; }

  // Past and current rows of all heads, one behind the other.
  void write_present(size_t output, size_t input, size_t past, int64_t size) const {
    if (!c_.has_output(output)) return;
    const TensorView& y = c_.outputs[output];
    const TensorView& x = c_.inputs[input];
    const int64_t width = element_bits(y.type) / 8, row = size * width;
    const HeadRows rows = current(size);
    kernels::parallel_for(c_.threads, b_.batch * b_.kv_heads, [&](int64_t i) {
      std::byte* to = y.data + i * total_ * row;
      if (b_.past > 0) kernels::copy_bytes(to, c_.inputs[past].data + i * b_.past * row, b_.past * row);
      const int64_t batch = i / b_.kv_heads, head = i % b_.kv_heads;
      for (int64_t k = 0; k < b_.keys; ++k)
        kernels::copy_bytes(to + (b_.past + k) * row, x.data + rows.row(batch, head, k) * width, row);
    });
  }

  // Rows of one head where they are, or copied together and widened.
  Rows<W> rows_of(int64_t batch, int64_t head, size_t input, size_t past, size_t present, int64_t size,
                  W* copy, int64_t copy_size) const {
    if (copy_size == 0) {
      if (b_.past > 0)
        return {c_.outputs[present].as<W>() + (batch * b_.kv_heads + head) * total_ * size, size};
      const HeadRows rows = current(size);
      return {c_.inputs[input].as<W>() + rows.row(batch, head, 0), rows.stride()};
    }
    if (b_.past > 0)
      read_floats(c_.inputs[past], (batch * b_.kv_heads + head) * b_.past * size, b_.past * size, copy);
    const HeadRows rows = current(size);
    for (int64_t i = 0; i < b_.keys; ++i)
      read_floats(c_.inputs[input], rows.row(batch, head, i), size, copy + (b_.past + i) * size);
    return {copy, size};
  }

  void load_head(int64_t batch, int64_t head, Scratch& s) const {
    s.keys = rows_of(batch, head, kAttentionK, kAttentionPastK, 1, b_.head, s.key_copy, b_.key_copy);
    s.values =
        rows_of(batch, head, kAttentionV, kAttentionPastV, 2, b_.value_head, s.value_copy, b_.value_copy);
    if (!b_.packs) return;
    kernels::pack_b<W>(b_.head, total_, {s.keys.data, 1, s.keys.stride}, s.packed_keys);
    kernels::pack_b<W>(total_, b_.value_head, {s.values.data, s.values.stride, 1}, s.packed_values);
  }

  // ---- a tile --------------------------------------------------------------------------------------

  void run_tile(int64_t batch, int64_t head, int64_t first, int64_t count, Scratch& s) const {
    if (count <= 0) return;
    multiply_keys(queries_of(batch, head, first, count, s), count, s);
    for (int64_t i = 0; i < count; ++i) finish_row(batch, head, first + i, s.scores + i * total_);
    multiply_values(batch, head, first, count, s);
  }

  Rows<W> queries_of(int64_t batch, int64_t head, int64_t first, int64_t count, Scratch& s) const {
    const TensorView& q = c_.inputs[kAttentionQ];
    const HeadRows rows{b_.queries, b_.q_heads, b_.head, flat_};
    if (b_.query == 0) return {q.as<W>() + rows.row(batch, head, first), rows.stride()};
    for (int64_t i = 0; i < count; ++i)
      read_floats(q, rows.row(batch, head, first + i), b_.head, s.query + i * b_.head);
    return {s.query, b_.head};
  }

  void multiply_keys(Rows<W> q, int64_t count, Scratch& s) const {
    if (b_.packs) {
      kernels::GemmEpilogue<W> epilogue;
      if constexpr (std::is_same_v<W, float>) epilogue.alpha = scale_;
      kernels::gemm_packed_as<W>({count, b_.head, total_}, {q.data, q.stride, 1}, s.packed_keys,
                                 {s.scores, total_}, epilogue, nullptr, 1);
      if constexpr (std::is_same_v<W, double>) {  // alpha is a float
        for (int64_t i = 0; i < count * total_; ++i) s.scores[i] *= scale_;
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < total_; ++j)
        s.scores[i * total_ + j] =
            scale_ * dot(q.data + i * q.stride, s.keys.data + j * s.keys.stride, b_.head);
    }
  }

  void multiply_values(int64_t batch, int64_t head, int64_t first, int64_t count, Scratch& s) const {
    const TensorView& y = c_.outputs[0];
    const HeadRows rows{b_.queries, b_.q_heads, b_.value_head, flat_};
    const bool direct = b_.result == 0 && y.type == element_type_of<W>();
    W* to = direct ? y.as<W>() + rows.row(batch, head, first) : s.result;
    const int64_t stride = direct ? rows.stride() : b_.value_head;
    bool done = false;
    if (b_.packs) {
      kernels::gemm_packed_as<W>({count, total_, b_.value_head}, {s.scores, total_, 1}, s.packed_values,
                                 {to, stride}, {}, nullptr, 1);
      done = true;
    }
    for (int64_t i = 0; i < count && !done; ++i) {
      W* row = to + i * stride;
      std::fill_n(row, b_.value_head, W{0});
      for (int64_t j = 0; j < total_; ++j) {
        const W p = s.scores[i * total_ + j];
        if (p == 0) continue;
        const W* value = s.values.data + j * s.values.stride;
        for (int64_t k = 0; k < b_.value_head; ++k) row[k] += p * value[k];
      }
    }
    if (direct) return;
    for (int64_t i = 0; i < count; ++i)
      write_floats(y, rows.row(batch, head, first + i), b_.value_head, to + i * b_.value_head);
  }

  // ---- a row of scores -------------------------------------------------------------------------------

  void read_mask_strides() {
    const TensorView& mask = c_.inputs[kAttentionMask];
    int64_t stride = 1;
    for (size_t i = 0; i < mask.rank(); ++i) {
      const int64_t dim = mask.dims[mask.rank() - 1 - i];
      mask_stride_[3 - i] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
    mask_keys_ = mask.dims.back() == 1 ? total_ : mask.dims.back();
  }

  Range range_of(int64_t batch, int64_t query) const {
    Range r{0, std::min(total_, mask_keys_)};
    int64_t offset = b_.past;
    if (c_.has_input(kAttentionValid)) {
      const int64_t valid = c_.inputs[kAttentionValid].as<int64_t>()[batch];
      offset = valid - b_.queries;
      r.last = std::min(r.last, valid);
    }
    const int64_t position = offset + query;
    if (a_.causal) r.last = std::min(r.last, position + 1);
    if (a_.right >= 0) r.last = std::min(r.last, position + a_.right + 1);
    if (a_.left >= 0) r.first = std::max<int64_t>(0, position - a_.left);
    r.last = std::max<int64_t>(r.last, 0);
    r.first = std::min(r.first, r.last);
    return r;
  }

  void cap(W* row) const {
    if (!(a_.softcap > 0)) return;
    const W limit = static_cast<W>(a_.softcap);
    for (int64_t j = 0; j < total_; ++j) row[j] /= limit;
    if constexpr (std::is_same_v<W, float>) {
      kernels::unary_f32({kernels::UnaryKind::kTanh}, row, row, total_);
    } else {
      kernels::unary_f64({kernels::UnaryKind::kTanh}, row, row, total_);
    }
    for (int64_t j = 0; j < total_; ++j) row[j] *= limit;
  }

  // Adds the mask; true if any key is left to attend to.
  bool add_mask(int64_t batch, int64_t head, int64_t query, Range r, W* row) const {
    if (!c_.has_input(kAttentionMask)) return r.first < r.last;
    const TensorView& mask = c_.inputs[kAttentionMask];
    const int64_t start = batch * mask_stride_[0] + head * mask_stride_[1] + query * mask_stride_[2];
    const int64_t step = mask_stride_[3];
    constexpr W kNever = -std::numeric_limits<W>::infinity();
    bool any = false;
    if (mask.type == ElementType::kBool) {
      const auto* flags = mask.as<uint8_t>() + start;
      for (int64_t j = r.first; j < r.last; ++j) {
        if (flags[j * step] == 0) row[j] = kNever;
        any = any || flags[j * step] != 0;
      }
      return any;
    }
    visit_numeric(mask.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* bias = mask.as<T>() + start;
      for (int64_t j = r.first; j < r.last; ++j) {
        const W value = static_cast<W>(load_element(bias[j * step]));
        row[j] = value == kNever ? kNever : row[j] + value;
        any = any || value != kNever;
      }
    });
    return any;
  }

  void emit(int64_t mode, int64_t batch, int64_t head, int64_t query, const W* row) const {
    if (a_.scores_mode != mode || !c_.has_output(3)) return;
    write_floats(c_.outputs[3], ((batch * b_.q_heads + head) * b_.queries + query) * total_, total_, row);
  }

  void finish_row(int64_t batch, int64_t head, int64_t query, W* row) const {
    emit(0, batch, head, query, row);
    cap(row);
    emit(1, batch, head, query, row);
    const Range r = range_of(batch, query);
    const bool any = add_mask(batch, head, query, r, row);
    if (a_.scores_mode == 2 && c_.has_output(3)) {
      constexpr W kNever = -std::numeric_limits<W>::infinity();
      std::fill(row, row + r.first, kNever);
      std::fill(row + r.last, row + total_, kNever);
      emit(2, batch, head, query, row);
    }
    if (any) {
      std::fill(row, row + r.first, W{0});
      std::fill(row + r.last, row + total_, W{0});
      softmax(row + r.first, r.last - r.first);
    } else {
      std::fill_n(row, total_, W{0});
    }
    emit(3, batch, head, query, row);
  }

  void softmax(W* row, int64_t count) const {
    if constexpr (std::is_same_v<W, float>) {
      if (!a_.double_softmax) return kernels::softmax_rows_f32(false, row, row, 1, count);
    }
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < count; ++j) largest = std::max(largest, static_cast<double>(row[j]));
    for (int64_t j = 0; j < count; ++j) sum += std::exp(static_cast<double>(row[j]) - largest);
    for (int64_t j = 0; j < count; ++j)
      row[j] = static_cast<W>(std::exp(static_cast<double>(row[j]) - largest) / sum);
  }

  const RunContext& c_;
  const AttentionAttrs& a_;
  const BoundAttention& b_;
  int64_t total_ = 0;
  bool flat_ = false;
  W scale_ = 1;
  int64_t mask_stride_[4] = {0, 0, 0, 0};
  int64_t mask_keys_ = std::numeric_limits<int64_t>::max();
};

}  // namespace

void run_attention(const RunContext& c) {
  if (computes_in_double(c.inputs[kAttentionQ].type, c.inputs[kAttentionV].type))
    return AttentionRun<double>(c).run();
  AttentionRun<float>(c).run();
}

}  // namespace plimsoll
