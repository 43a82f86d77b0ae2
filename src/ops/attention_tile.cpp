#include "ops/attention_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/gemm.h"
#include "kernels/score_rows.h"
#include "kernels/softmax.h"
#include "kernels/unary.h"
#include "ops/elementwise.h"

namespace plimsoll {
namespace {

// Rows of one head: `stride` elements apart.
template <typename W>
struct Rows {
  const W* data = nullptr;
  int64_t stride = 0;
};

// Keys that a query sees, but for the mask.
struct Range {
  int64_t first = 0, last = 0;
};

template <typename W>
class AttentionRun {
 public:
  explicit AttentionRun(const AttentionProblem& p) : p_(p), s_(p.choice) {
    const double root =
        std::sqrt(static_cast<double>(std::max<int64_t>(p.head, 1)));  // nothing times inf is NaN
    scale_ = static_cast<W>(p.scale.value_or(1 / root));
  }

  void run() {
    const int threads = p_.context.threads;
    const int64_t tiles = (p_.queries + kAttentionTile - 1) / kAttentionTile;
    const int64_t units = p_.batch * p_.q_heads * tiles;
    kernels::parallel_for(threads, threads, [&](int64_t thread) {
      Work w = work_of(thread);
      int64_t loaded = -1;
      for (int64_t i = units * thread / threads; i < units * (thread + 1) / threads; ++i) {
        const int64_t unit = i / tiles, batch = unit / p_.q_heads, head = unit % p_.q_heads;
        const int64_t group = head / (p_.q_heads / p_.kv_heads);
        const int64_t wanted = batch * p_.kv_heads + group;
        if (std::exchange(loaded, wanted) != wanted) load_head(batch, group, w);
        const int64_t first = i % tiles * kAttentionTile;
        run_tile(batch, head, first, std::min(kAttentionTile, p_.queries - first), w);
      }
    });
  }

 private:
  struct Work {
    W *scores, *query, *result, *key_copy, *value_copy, *packed_keys, *packed_values;
    Rows<W> keys, values;
    int64_t rows = 0;  // of them
  };

  Work work_of(int64_t thread) const {
    W* next = p_.context.scratch_as<W>(s_.work_at) + thread * s_.per_thread;
    auto take = [&](int64_t count) { return std::exchange(next, next + count); };
    Work w;
    w.scores = take(s_.scores), w.query = take(s_.query), w.result = take(s_.result);
    w.key_copy = take(s_.keys), w.value_copy = take(s_.values);
    w.packed_keys = take(s_.packed_keys), w.packed_values = take(s_.packed_values);
    return w;
  }

  // ---- keys and values ---------------------------------------------------------------------------

  static void read(const HeadRows& rows, int64_t at, int64_t count, W* to) {
    read_floats({rows.data, rows.type, false, {}}, at, count, to);
  }

  // Rows [i, i + count) of a head of a cache.
  static void read_cache(const HeadRows& cache, int64_t b, int64_t h, int64_t i, int64_t count, int64_t size,
                         W* to) {
    if constexpr (std::is_same_v<W, float>) {
      if (cache.quantized()) {
        for (int64_t j = 0; j < count; ++j) read_quantized_row(cache, b, h, i + j, size, to + j * size);
        return;
      }
    }
    read(cache, cache.at(b, h, i), count * size, to);
  }

  void read_new_row(const HeadRows& rows, const RowChange& change, int64_t b, int64_t h, int64_t i,
                    int64_t size, W* to) const {
    if constexpr (std::is_same_v<W, float>) {
      if (change) return read_changed_row(p_, rows, change, b, h, i, size, to);
    }
    read(rows, rows.at(b, h, i), size, to);
  }

  // The past keys of a beam are spread over the beams that it came from.
  void read_past(const HeadRows& cache, int64_t b, int64_t h, int64_t past, int64_t size, W* to) const {
    if (p_.beam_of_key == nullptr) return read_cache(cache, b, h, 0, past, size, to);
    const int64_t group = b / p_.beams * p_.beams;
    for (int64_t j = 0; j < past; ++j)
      read_cache(cache, group + p_.beam_of_key[b * p_.beam_stride + j], h, j, 1, size, to + j * size);
  }

  // Rows of one head where they are, or copied together and widened.
  Rows<W> rows_of(int64_t b, int64_t h, const HeadRows& rows, const HeadRows& past, const HeadRows& present,
                  const RowChange& change, int64_t size, W* copy, bool copies) const {
    const HeadRows& cache = present ? present : past;
    const int64_t kept = p_.lengths[b].past;
    if (!copies) {
      if (present || kept > 0) return {reinterpret_cast<const W*>(cache.data) + cache.at(b, h, 0), cache.row};
      return {reinterpret_cast<const W*>(rows.data) + rows.at(b, h, 0), rows.row};
    }
    if (kept > 0) read_past(cache, b, h, kept, size, copy);
    W* next = copy + kept * size;
    if (present && p_.keys > 0) {
      read_cache(present, b, h, kept, p_.keys, size, next);
    } else {
      for (int64_t i = 0; i < p_.keys; ++i) read_new_row(rows, change, b, h, i, size, next + i * size);
    }
    return {copy, size};
  }

  void load_head(int64_t b, int64_t h, Work& w) const {
    w.rows = p_.lengths[b].rows;
    w.keys = rows_of(b, h, p_.k, p_.past_k, p_.present_k, p_.change_k, p_.head, w.key_copy, s_.keys > 0);
    w.values =
        rows_of(b, h, p_.v, p_.past_v, p_.present_v, p_.change_v, p_.value_head, w.value_copy, s_.values > 0);
    if (!s_.packs) return;
    kernels::pack_b<W>(p_.head, w.rows, {w.keys.data, 1, w.keys.stride}, w.packed_keys);
    kernels::pack_b<W>(w.rows, p_.value_head, {w.values.data, w.values.stride, 1}, w.packed_values);
  }

  // ---- a tile --------------------------------------------------------------------------------------

  void run_tile(int64_t batch, int64_t head, int64_t first, int64_t count, Work& w) const {
    if (count <= 0) return;
    multiply_keys(queries_of(batch, head, first, count, w), count, w);
    if constexpr (std::is_same_v<W, float>) {
      if (is_plain(w)) return finish_together(batch, head, first, count, w);
    }
    for (int64_t i = 0; i < count; ++i) finish_row(batch, head, first + i, w.scores + i * s_.stride, w.rows);
    multiply_values(batch, head, first, count, w);
  }

  // Nothing but a mask that is added.
  bool is_plain(const Work& w) const {
    const TensorView* mask = p_.mask.view;
    return p_.as_written && !p_.nan_is_zero && p_.fill.mask.view == nullptr && s_.packs && s_.result == 0 &&
           w.rows > 0 && (mask == nullptr || (mask->type == ElementType::kFloat && p_.mask.strides[3] == 1));
  }

  // Rows are divided by their sums when they are multiplied: that is shorter than they are.
  void finish_together(int64_t batch, int64_t head, int64_t first, int64_t count, Work& w) const {
    float factors[kAttentionTile];
    const TensorView* mask = p_.mask.view;
    const float* added =
        mask == nullptr ? nullptr : mask->as<float>() + start_of(p_.mask, batch, head, first);
    kernels::score_rows_f32(w.scores, count, w.rows, s_.stride, added, p_.mask.strides[2], factors);
    multiply_values(batch, head, first, count, w);
    float* y = reinterpret_cast<float*>(p_.y.data) + p_.y.at(batch, head, first);
    kernels::scale_rows_f32(y, count, p_.value_head, p_.y.row, factors);
  }

  Rows<W> queries_of(int64_t batch, int64_t head, int64_t first, int64_t count, Work& w) const {
    if (s_.query == 0) return {reinterpret_cast<const W*>(p_.q.data) + p_.q.at(batch, head, first), p_.q.row};
    for (int64_t i = 0; i < count; ++i)
      read_new_row(p_.q, p_.change_q, batch, head, first + i, p_.head, w.query + i * p_.head);
    return {w.query, p_.head};
  }

  void multiply_keys(Rows<W> q, int64_t count, Work& w) const {
    if (w.rows == 0) return;
    if (s_.packs) {
      kernels::GemmEpilogue<W> epilogue;
      if constexpr (std::is_same_v<W, float>) epilogue.alpha = scale_;  // which is a float
      kernels::gemm_packed_as<W>({count, p_.head, w.rows}, {q.data, q.stride, 1}, w.packed_keys,
                                 {w.scores, s_.stride}, epilogue, nullptr, 1);
      if constexpr (std::is_same_v<W, double>) {
        for (int64_t i = 0; i < count; ++i) {
          for (int64_t j = 0; j < w.rows; ++j) w.scores[i * s_.stride + j] *= scale_;
        }
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < w.rows; ++j)
        w.scores[i * s_.stride + j] =
            scale_ * dot(q.data + i * q.stride, w.keys.data + j * w.keys.stride, p_.head);
    }
  }

  void multiply_values(int64_t batch, int64_t head, int64_t first, int64_t count, Work& w) const {
    const bool direct = s_.result == 0;
    W* to = direct ? reinterpret_cast<W*>(p_.y.data) + p_.y.at(batch, head, first) : w.result;
    const int64_t stride = direct ? p_.y.row : p_.value_head;
    bool done = false;
    if (s_.packs && w.rows > 0) {
      kernels::gemm_packed_as<W>({count, w.rows, p_.value_head}, {w.scores, s_.stride, 1}, w.packed_values,
                                 {to, stride}, {}, nullptr, 1);
      done = true;
    }
    for (int64_t i = 0; i < count && !done; ++i) {
      W* row = to + i * stride;
      std::fill_n(row, p_.value_head, W{0});
      for (int64_t j = 0; j < w.rows; ++j) {
        const W p = w.scores[i * s_.stride + j];
        if (p == 0) continue;
        const W* value = w.values.data + j * w.values.stride;
        for (int64_t k = 0; k < p_.value_head; ++k) row[k] += p * value[k];
      }
    }
    if (direct) return;
    const TensorView y{p_.y.data, p_.y.type, false, {}};
    for (int64_t i = 0; i < count; ++i)
      write_floats(y, p_.y.at(batch, head, first + i), p_.value_head, to + i * p_.value_head);
  }

  // ---- a row of scores -------------------------------------------------------------------------------

  static constexpr W kNever = -std::numeric_limits<W>::infinity();

  Range range_of(int64_t batch, int64_t query) const {
    Range r{0, p_.lengths[batch].visible};
    const int64_t position = p_.lengths[batch].position + query;
    if (p_.mask.view != nullptr) r.last = std::min(r.last, p_.mask.keys);
    if (p_.causal) r.last = std::min(r.last, position + 1);
    if (p_.right >= 0) r.last = std::min(r.last, position + p_.right + 1);
    r.last = std::max<int64_t>(r.last, 0);
    if (p_.left >= 0) r.first = std::max<int64_t>(0, position - p_.left);
    if (p_.window >= 0) r.first = std::max(r.first, r.last - p_.window);
    r.first = std::min(r.first, r.last);
    return r;
  }

  void cap(W* row, int64_t count) const {
    if (!(p_.softcap > 0)) return;
    const W limit = static_cast<W>(p_.softcap);
    for (int64_t j = 0; j < count; ++j) row[j] /= limit;
    if constexpr (std::is_same_v<W, float>) {
      kernels::unary_f32({kernels::UnaryKind::kTanh}, row, row, count);
    } else {
      kernels::unary_f64({kernels::UnaryKind::kTanh}, row, row, count);
    }
    for (int64_t j = 0; j < count; ++j) row[j] *= limit;
  }

  static int64_t start_of(const AttentionMask& mask, int64_t batch, int64_t head, int64_t query) {
    return batch * mask.strides[0] + head * mask.strides[1] + query * mask.strides[2];
  }

  void fill(int64_t batch, int64_t head, int64_t query, Range r, W* row) const {
    if (p_.fill.mask.view == nullptr) return;
    const auto* flags = p_.fill.mask.view->as<uint8_t>() + start_of(p_.fill.mask, batch, head, query);
    const int64_t step = p_.fill.mask.strides[3];
    const W value = static_cast<W>(p_.fill.value);
    for (int64_t j = r.first; j < r.last; ++j)
      row[j] = (flags[j * step] != 0) == p_.fill.where ? value : row[j];
  }

  // A mask of the type of the scores, or of 16 bits.
  static void add_written(const TensorView& mask, int64_t start, int64_t step, Range r, W* row) {
    if (mask.type != element_type_of<W>() || step != 1) {
      W value;
      for (int64_t j = r.first; j < r.last; ++j) {
        read_floats(mask, start + j * step, 1, &value);
        row[j] += value;
      }
      return;
    }
    const W* from = mask.as<W>() + start;
    for (int64_t j = r.first; j < r.last; ++j) row[j] += from[j];
  }

  // Adds the mask; true if any key is left to attend to.
  bool add_mask(int64_t batch, int64_t head, int64_t query, Range r, W* row) const {
    if (p_.mask.view == nullptr) return r.first < r.last || p_.as_written;
    const TensorView& mask = *p_.mask.view;
    const int64_t start = start_of(p_.mask, batch, head, query), step = p_.mask.strides[3];
    if (p_.as_written) {
      add_written(mask, start, step, r, row);
      return true;
    }
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

  void add_padding(int64_t batch, int64_t query, Range r, W* row) const {
    const AttentionPadding& pad = p_.padding;
    const W filter = static_cast<W>(pad.filter);
    if (pad.flags != nullptr) {
      const int32_t* flags = pad.flags + batch * pad.batch + query * pad.query;
      for (int64_t j = r.first; j < r.last; ++j) {
        if (flags[j] <= 0) row[j] += filter;
      }
    }
    if (pad.ends != nullptr) {
      for (int64_t j = std::max<int64_t>(r.first, pad.ends[batch]); j < r.last; ++j) row[j] += filter;
    }
    if (pad.starts != nullptr) {
      for (int64_t j = r.first; j < std::min<int64_t>(r.last, pad.starts[batch]); ++j) row[j] += filter;
    }
  }

  // What is beyond `count` keys is 0.
  void emit(ScoresStage stage, int64_t batch, int64_t head, int64_t query, const W* row,
            int64_t count) const {
    if (p_.scores.stage != stage) return;
    const TensorView& y = *p_.scores.view;
    const int64_t columns = y.dims[3], at = ((batch * p_.q_heads + head) * p_.queries + query) * columns;
    const int64_t shown = std::min(count, columns);
    write_floats(y, at, shown, row);
    const W nothing = 0;
    for (int64_t j = shown; j < columns; ++j) write_floats(y, at + j, 1, &nothing);
  }

  void finish_row(int64_t batch, int64_t head, int64_t query, W* row, int64_t count) const {
    emit(ScoresStage::kProducts, batch, head, query, row, count);
    cap(row, count);
    emit(ScoresStage::kCapped, batch, head, query, row, count);
    const Range r = range_of(batch, query);
    fill(batch, head, query, r, row);
    const bool any = add_mask(batch, head, query, r, row);
    add_padding(batch, query, r, row);
    if (p_.scores.stage == ScoresStage::kMasked) {
      const W hidden = static_cast<W>(p_.scores.hidden);
      std::fill(row, row + r.first, hidden);
      std::fill(row + r.last, row + count, hidden);
      emit(ScoresStage::kMasked, batch, head, query, row, count);
    }
    if (any) {
      std::fill(row, row + r.first, W{0});
      softmax_with_sink(head, row + r.first, r.last - r.first);
      // Where one is not a number, none is.
      if (p_.nan_is_zero && r.first < r.last && std::isnan(row[r.first])) std::fill_n(row, count, W{0});
      std::fill(row + r.last, row + count, W{0});
    } else {
      std::fill_n(row, count, W{0});
    }
    emit(ScoresStage::kProbabilities, batch, head, query, row, count);
  }

  // There is room for one more score behind every row.
  void softmax_with_sink(int64_t head, W* row, int64_t count) const {
    if (!p_.has_sink) return softmax(row, count);
    row[count] = 0;
    if (p_.sink != nullptr) read_floats(*p_.sink, head, 1, row + count);
    softmax(row, count + 1);
  }

  void softmax(W* row, int64_t count) const {
    if constexpr (std::is_same_v<W, float>) {
      if (!p_.double_softmax) return kernels::softmax_rows_f32(false, row, row, 1, count);
    } else {
      return kernels::softmax_rows_f64(false, row, row, 1, count);
    }
    double largest = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < count; ++j) largest = std::max(largest, static_cast<double>(row[j]));
    for (int64_t j = 0; j < count; ++j) sum += std::exp(static_cast<double>(row[j]) - largest);
    for (int64_t j = 0; j < count; ++j)
      row[j] = static_cast<W>(std::exp(static_cast<double>(row[j]) - largest) / sum);
  }

  const AttentionProblem& p_;
  const AttentionChoice& s_;
  W scale_ = 1;
};

}  // namespace

template <typename W>
void run_attention_tiles(const AttentionProblem& p) {
  AttentionRun<W>(p).run();
}
template void run_attention_tiles<float>(const AttentionProblem& p);
template void run_attention_tiles<double>(const AttentionProblem& p);

}  // namespace plimsoll
