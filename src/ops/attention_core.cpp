// What is done once per run: rows of keys and values are gathered. attention_tile.cpp does the rest.
#include "ops/attention_core.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/copy.h"
#include "kernels/gemm.h"
#include "ops/attention_tile.h"

namespace plimsoll {

HeadRows rows_of_flat(const TensorView& view, int64_t size, int64_t first) {
  const int64_t width = element_bits(view.type) / 8;
  return {view.data + first * width, view.type, view.dims[1] * view.dims[2], size, view.dims[2]};
}

HeadRows rows_of_heads(const TensorView& view) {
  const auto d = view.dims;
  return {view.data, view.type, d[1] * d[2] * d[3], d[2] * d[3], d[3]};
}

AttentionMask broadcast_mask(const TensorView& view, int64_t keys) {
  AttentionMask mask;
  mask.view = &view;
  int64_t stride = 1;
  for (size_t i = 0; i < view.rank(); ++i) {
    const int64_t dim = view.dims[view.rank() - 1 - i];
    mask.strides[3 - i] = dim == 1 ? 0 : stride;
    stride *= dim;
  }
  mask.keys = view.rank() == 0 || view.dims.back() == 1 ? keys : view.dims.back();
  return mask;
}

AttentionChoice* choose_attention(SelectContext& c, const AttentionNeeds& n) {
  const auto aligned = [](Dim count) { return ceil_div(count, Dim(16)) * Dim(16); };
  const bool few = n.queries.is_constant() && n.queries.value() < kAttentionFewQueries;
  auto* choice = c.make<AttentionChoice>();
  choice->in_double = n.in_double;
  choice->packs = !few;
  const Dim tile = min(n.queries, Dim(kAttentionTile));
  const Dim stride = aligned(n.rows + Dim(1));  // one more for a sink
  const Dim panel = n.in_double ? kernels::packed_b_format<double>() : kernels::packed_b_format();
  const auto when = [](bool needed, Dim count) { return needed ? count : Dim(0); };
  const Dim pieces[] = {
      tile * stride,
      when(n.copies_query, aligned(tile * n.head)),
      when(n.copies_result, aligned(tile * n.value_head)),
      when(n.copies_keys, aligned(n.rows * n.head)),
      when(n.copies_values, aligned(n.rows * n.value_head)),
      when(choice->packs, aligned(ceil_div(n.rows, panel) * panel * n.head)),
      when(choice->packs, aligned(ceil_div(n.value_head, panel) * panel * n.rows)),
  };
  Dim total = 0;
  for (Dim piece : pieces) total = total + piece;
  choice->lengths_at = c.scratch(n.batch * Dim(static_cast<int64_t>(sizeof(BatchLengths))));
  choice->work_at = c.scratch(Dim(c.threads) * total * Dim(n.in_double ? 8 : 4));
  if (!total.is_constant() || !n.rows.is_constant()) return choice;
  choice->stride = stride.value();
  int64_t* const sizes[] = {&choice->scores, &choice->query,       &choice->result,       &choice->keys,
                            &choice->values, &choice->packed_keys, &choice->packed_values};
  for (size_t i = 0; i < std::size(pieces); ++i) *sizes[i] = pieces[i].value();
  choice->per_thread = total.value();
  choice->most_rows = n.rows.value();
  return choice;
}

AttentionProblem::AttentionProblem(const RunContext& c, const AttentionChoice& made)
    : context(c), choice(made), lengths(c.scratch_as<BatchLengths>(made.lengths_at)) {}

void rotate_row(const AttentionRotary& rotary, int64_t position, float* row) {
  constexpr int64_t kBlock = 64;
  const int64_t pairs = rotary.pairs(), first = rotary.interleaved ? 1 : pairs;
  const int64_t step = rotary.interleaved ? 2 : 1;
  float cosine[kBlock], sine[kBlock];
  for (int64_t start = 0; start < pairs; start += kBlock) {
    const int64_t count = std::min(kBlock, pairs - start);
    read_floats(*rotary.cosine, position * pairs + start, count, cosine);
    read_floats(*rotary.sine, position * pairs + start, count, sine);
    float* x = row + start * step;
    for (int64_t i = 0; i < count; ++i) {
      const float real = x[i * step], imaginary = x[i * step + first];
      x[i * step] = cosine[i] * real - sine[i] * imaginary;
      x[i * step + first] = sine[i] * real + cosine[i] * imaginary;
    }
  }
}

namespace {

void check_lengths(const AttentionProblem& p) {
  for (int64_t b = 0; b < p.batch; ++b) {
    const BatchLengths& l = p.lengths[b];
    const int64_t rows = l.past + p.keys;
    const bool fits = l.past >= 0 && l.visible >= 0 && l.visible <= l.rows && l.rows <= rows;
    if (!fits || rows > p.choice.most_rows)
      fail(ErrorCode::kInvalidArgument,
           "{}: batch {} has {} past and {} new keys, of which {} are visible, expected at most {}",
           p.context.node->label(), b, l.past, p.keys, l.visible, p.choice.most_rows);
  }
}

int64_t position_of(const AttentionProblem& p, const AttentionRotary& r, int64_t b, int64_t i) {
  if (r.positions == nullptr) return p.lengths[b].position + i;
  return r.first_only ? r.positions[0] + i : r.positions[b * p.queries + i];
}

void check_positions(const AttentionProblem& p, const RowChange& change, int64_t rows) {
  if (change.rotary == nullptr) return;
  const int64_t most = std::min(change.rotary->cosine->dims[0], change.rotary->sine->dims[0]);
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t position = position_of(p, *change.rotary, b, i);
      if (position < 0 || position >= most)
        fail(ErrorCode::kInvalidArgument, "{}: position {} is outside [0, {})", p.context.node->label(),
             position, most);
    }
  }
}

float cache_scale(const CacheScales& scales, int64_t h, int64_t size, int64_t k) {
  return scales.by_channel ? scales.data[h * size + k] : scales.data[0];
}

// Rounded to the nearest, of two the even one; a scale of 0 counts as 1, and NaN is 0.
int quantized(float x, float scale, int bits) {
  if (std::isnan(x)) return 0;
  const auto most = static_cast<float>((1 << (bits - 1)) - 1);
  return static_cast<int>(std::clamp(std::nearbyint(scale == 0 ? x : x * (1.0f / scale)), -most - 1, most));
}

void write_quantized_row(const HeadRows& cache, int64_t b, int64_t h, int64_t i, int64_t size,
                         const float* from) {
  auto* to = reinterpret_cast<uint8_t*>(cache.data) + cache.at(b, h, i);
  const CacheScales& scales = cache.scales;
  for (int64_t k = 0; k < size; ++k) {
    const int q = quantized(from[k], cache_scale(scales, h, size, k), scales.bits);
    if (scales.bits == 8) {
      to[k] = static_cast<uint8_t>(q);
    } else if (k % 2 == 0) {
      to[k / 2] = static_cast<uint8_t>(0x80 | (q + 8));  // of an odd number, the last half byte stands for 0
    } else {
      to[k / 2] = static_cast<uint8_t>((to[k / 2] & 0x0f) | ((q + 8) << 4));
    }
  }
}

// The new rows of all heads, behind the past ones.
void gather_cache(const AttentionProblem& p, const HeadRows& rows, const HeadRows& past,
                  const HeadRows& present, const RowChange& change, int64_t size) {
  if (!present) return;
  const int64_t width = element_bits(present.type) / 8, bytes = present.row * width;
  const bool shared = past && past.data == present.data;
  const TensorView cache{present.data, present.type, false, {}};
  kernels::parallel_for(p.context.threads, p.batch * p.kv_heads, [&](int64_t unit) {
    const int64_t b = unit / p.kv_heads, h = unit % p.kv_heads, kept = p.lengths[b].past;
    std::byte* to = present.data + present.at(b, h, 0) * width;
    const int64_t copied = shared ? 0 : p.keeps_rest && past ? p.present_rows : kept;
    if (copied > 0) kernels::copy_bytes(to, past.data + past.at(b, h, 0) * width, copied * bytes);
    for (int64_t i = 0; i < p.keys; ++i) {
      std::byte* row = to + (kept + i) * bytes;
      if (change || present.quantized()) {
        float changed[kLongestChangedRow];
        read_changed_row(p, rows, change, b, h, i, size, changed);
        if (present.quantized()) {
          write_quantized_row(present, b, h, kept + i, size, changed);
        } else {
          write_floats(cache, present.at(b, h, kept + i), size, changed);
        }
      } else {
        kernels::copy_bytes(row, rows.data + rows.at(b, h, i) * width, bytes);
      }
    }
    const int64_t end = kept + p.keys;
    if (!shared && !p.keeps_rest && end < p.present_rows)
      std::memset(to + end * bytes, 0, static_cast<size_t>((p.present_rows - end) * bytes));
  });
}

}  // namespace

void read_changed_row(const AttentionProblem& p, const HeadRows& rows, const RowChange& change, int64_t b,
                      int64_t h, int64_t i, int64_t size, float* to) {
  read_floats({rows.data, rows.type, false, {}}, rows.at(b, h, i), size, to);
  constexpr int64_t kBlock = 256;
  float block[kBlock];
  const auto for_blocks = [&](const TensorView& view, int64_t first, auto&& f) {
    for (int64_t start = 0; start < size; start += kBlock) {
      const int64_t count = std::min(kBlock, size - start);
      read_floats(view, first + start, count, block);
      for (int64_t j = 0; j < count; ++j) f(to[start + j], block[j]);
    }
  };
  if (change.bias != nullptr)
    for_blocks(*change.bias, change.bias_first + h * size, [](float& x, float bias) { x += bias; });
  if (change.norm != nullptr) {
    const float mean = dot(to, to, size) / static_cast<float>(size);
    const float factor = 1 / std::sqrt(mean + change.epsilon);
    for_blocks(*change.norm, 0, [&](float& x, float weight) { x *= factor * weight; });
  }
  if (change.rotary != nullptr) rotate_row(*change.rotary, position_of(p, *change.rotary, b, i), to);
}

void read_quantized_row(const HeadRows& cache, int64_t b, int64_t h, int64_t i, int64_t size, float* to) {
  const auto* from = reinterpret_cast<const uint8_t*>(cache.data) + cache.at(b, h, i);
  for (int64_t k = 0; k < size; ++k) {
    const int q =
        cache.scales.bits == 8 ? static_cast<int8_t>(from[k]) : ((from[k / 2] >> (k % 2 * 4)) & 0x0f) - 8;
    to[k] = static_cast<float>(q) * cache_scale(cache.scales, h, size, k);
  }
}

void run_attention_core(const AttentionProblem& p) {
  check_lengths(p);
  check_positions(p, p.change_q, p.queries);
  check_positions(p, p.change_k, p.keys);
  gather_cache(p, p.k, p.past_k, p.present_k, p.change_k, p.head);
  gather_cache(p, p.v, p.past_v, p.present_v, p.change_v, p.value_head);
  p.choice.in_double ? run_attention_tiles<double>(p) : run_attention_tiles<float>(p);
}

Cost attention_cost(const NodeContext& c, Dim batch_heads, Dim queries, Dim rows, Dim widths) {
  constexpr double kPerScore = 20;  // mask and softmax
  const double pairs = static_cast<double>(batch_heads.value()) * static_cast<double>(queries.value()) *
                       static_cast<double>(rows.value());
  const double operations = pairs * (2.0 * static_cast<double>(widths.value()) + kPerScore);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace plimsoll
