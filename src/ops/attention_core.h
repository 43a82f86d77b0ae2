// Attention: softmax(scale * Q K' + mask) V, head by head, with the scores of a tile of queries in memory at
// a time. The operators of the family describe what they were given as an AttentionProblem.
#pragma once

#include <array>
#include <optional>

#include "graph/op_def.h"

namespace plimsoll {

// How a cache of integers becomes numbers: q * scale, of 8 bits; or of 4, two to a byte, the first in its low
// half, and 8 more than they stand for.
struct CacheScales {
  const float* data = nullptr;  // one, or by head and element
  bool by_channel = false;
  int bits = 8;
};

// The rows of all heads of a tensor, wherever they lie. Strides count elements, which are bytes of integers.
struct HeadRows {
  std::byte* data = nullptr;
  ElementType type = ElementType::kUndefined;
  int64_t batch = 0, head = 0, row = 0;
  CacheScales scales = {};  // of integers

  bool quantized() const { return scales.data != nullptr; }
  explicit operator bool() const { return type != ElementType::kUndefined; }
  int64_t at(int64_t b, int64_t h, int64_t i) const { return b * batch + h * head + i * row; }
};
// [batch, rows, width], of which the heads are `size` wide each, beginning at element `first` of a row.
HeadRows rows_of_flat(const TensorView& view, int64_t size, int64_t first = 0);
// [batch, heads, rows, size]
HeadRows rows_of_heads(const TensorView& view);

// Rotates the pairs of a row by the angles of its position.
struct AttentionRotary {
  const TensorView* cosine = nullptr;  // [positions, pairs]
  const TensorView* sine = nullptr;
  bool interleaved = false;
  const int64_t* positions = nullptr;  // of batch b, row i: at [b * rows + i]; null: as the lengths say
  bool first_only = false;             // only positions[0] is there, the rest follow it

  int64_t pairs() const { return cosine->dims[1]; }
};

// What is done to the new rows of Q, K or V before they are used, in this order.
struct RowChange {
  const TensorView* bias = nullptr;  // added, from element bias_first of it; heads one behind the other
  int64_t bias_first = 0;
  const TensorView* norm = nullptr;  // root mean square normalization of each row, times this
  float epsilon = 0;
  const AttentionRotary* rotary = nullptr;

  explicit operator bool() const { return bias != nullptr || norm != nullptr || rotary != nullptr; }
};

// Of one batch: keys [0, past) come from the cache, new ones follow. The first `rows` of them are multiplied,
// and a query sees at most those below `visible`.
struct BatchLengths {
  int64_t past = 0, rows = 0, visible = 0;
  int64_t position = 0;  // of the first query, among the keys
};

// A tensor that broadcasts to [batch, heads, queries, keys]: added, or, of booleans, false hides. Keys beyond
// its end are hidden.
struct AttentionMask {
  const TensorView* view = nullptr;
  std::array<int64_t, 4> strides{};
  int64_t keys = 0;
};
AttentionMask broadcast_mask(const TensorView& view, int64_t keys);

// Scores become `value` where the booleans are `where`, before a mask is added.
struct AttentionFill {
  AttentionMask mask;
  bool where = false;
  float value = 0;
};

// Keys that are only padding get `filter` added. Every part may be absent.
struct AttentionPadding {
  const int32_t* flags = nullptr;  // 0 is padding; of query i of batch b from b * batch + i * query on
  int64_t batch = 0, query = 0;
  const int32_t* ends = nullptr;    // by batch: the first key behind
  const int32_t* starts = nullptr;  // by batch: the first key that is none
  float filter = -10000.0f;
};

enum class ScoresStage : uint8_t { kNone, kProducts, kCapped, kMasked, kProbabilities };

// Scores for the caller, [batch, heads, queries, columns].
struct ScoresOutput {
  ScoresStage stage = ScoresStage::kNone;
  const TensorView* view = nullptr;
  double hidden = 0;  // what a key beyond a query's sight shows in kMasked
};

struct AttentionChoice {
  bool in_double = false, packs = false;
  int64_t lengths_at = 0, work_at = 0;  // offsets in scratch
  // Elements of one thread's work; 0 where nothing is copied or packed.
  int64_t stride = 0, scores = 0, query = 0, result = 0, keys = 0, values = 0, packed_keys = 0,
          packed_values = 0, per_thread = 0;
  int64_t most_rows = 0;
};

// What decides the scratch.
struct AttentionNeeds {
  Dim batch, queries, rows, head, value_head;  // rows: keys, past ones included, at most
  bool in_double = false;
  bool copies_query = false, copies_result = false, copies_keys = false, copies_values = false;
};
AttentionChoice* choose_attention(SelectContext& c, const AttentionNeeds& needs);

struct AttentionProblem {
  AttentionProblem(const RunContext& c, const AttentionChoice& made);

  const RunContext& context;
  const AttentionChoice& choice;
  int64_t batch = 0, q_heads = 1, kv_heads = 1, queries = 0, head = 0, value_head = 0;
  int64_t keys = 0;  // new ones
  HeadRows q, k, v, y;
  // Caches with whole heads behind each other. Where `present` is, all rows are gathered there; a cache in
  // the same memory as its past keeps what it has.
  HeadRows past_k, past_v, present_k, present_v;
  int64_t present_rows = 0;
  bool keeps_rest = false;  // rows behind the new ones are the past's, which is as long; else they become 0
  RowChange change_q, change_k, change_v;
  BatchLengths* lengths = nullptr;  // in scratch, for whoever describes the problem to fill

  std::optional<double> scale;  // 1 / sqrt(head)
  float softcap = 0;
  bool causal = false, double_softmax = false;
  int64_t left = -1, right = -1;  // keys before and after a query's own position that it sees; -1: all
  int64_t window = -1;            // only so many of the keys that it sees, the last ones
  AttentionMask mask;
  AttentionFill fill;
  bool as_written = false;  // the mask is only added: a query that sees nothing gets what softmax makes of it
  bool nan_is_zero = false;  // of probabilities, then
  AttentionPadding padding;
  bool has_sink = false;             // one more score in every softmax, for which there is no value
  const TensorView* sink = nullptr;  // by head; 0 where absent
  ScoresOutput scores;
  // By batch and position: which of the `beams` batches that belong together has a past key. Null: itself.
  const int32_t* beam_of_key = nullptr;
  int64_t beams = 1, beam_stride = 0;
};

// Throws if the lengths do not fit the caches, or a position the angles.
void run_attention_core(const AttentionProblem& p);

// Rotates one row of floats in place.
void rotate_row(const AttentionRotary& rotary, int64_t position, float* row);

// Elements of a head whose rows change, at most.
inline constexpr int64_t kLongestChangedRow = 4096;
inline constexpr int64_t kAttentionTile = 32;       // queries whose scores are in memory together
inline constexpr int64_t kAttentionFewQueries = 8;  // below, rows are multiplied one by one

Cost attention_cost(const NodeContext& c, Dim batch_heads, Dim queries, Dim rows, Dim widths);

}  // namespace plimsoll
