// Attention: what its inference and its run share.
#pragma once

#include "graph/op_def.h"

namespace plimsoll {

inline constexpr size_t kAttentionQ = 0, kAttentionK = 1, kAttentionV = 2, kAttentionMask = 3,
                        kAttentionPastK = 4, kAttentionPastV = 5, kAttentionValid = 6;

struct AttentionAttrs {
  int64_t q_heads = 0, kv_heads = 0;  // of 3-D inputs
  bool causal = false;
  int64_t left = -1, right = -1;  // keys before and after a query's own position that it sees; -1: all
  int64_t scores_mode = 0;        // what output 3 is: 0 products, 1 capped, 2 with the bias, 3 probabilities
  bool has_scale = false, double_softmax = false;
  float scale = 0, softcap = 0;
};

// Sizes as dimensions, for 3-D and 4-D inputs alike.
struct AttentionShape {
  Dim batch, q_heads, kv_heads, queries, keys, past, head, value_head;
  Dim total() const { return past + keys; }
};
// Ranks of Q, K and V, and of past keys, must be known.
AttentionShape attention_shape(const NodeContext& c);

// Scratch of one thread, in elements of what is computed in. Zero where nothing is copied or packed.
struct AttentionLayout {
  Dim scores, query, result, keys, values, packed_keys, packed_values;
  Dim total() const { return scores + query + result + keys + values + packed_keys + packed_values; }
};
AttentionLayout attention_layout(const NodeContext& c);

inline constexpr int64_t kAttentionTile = 32;       // queries whose scores are in memory together
inline constexpr int64_t kAttentionFewQueries = 8;  // below, rows are multiplied one by one

// Double if a float64 tensor takes part, else float.
bool computes_in_double(ElementType q, ElementType v);

struct BoundAttention {
  int64_t batch, q_heads, kv_heads, queries, keys, past, head, value_head;
  int64_t scores, query, result, key_copy, value_copy, packed_keys, packed_values, per_thread;
  bool packs = false;
};
void run_attention(const RunContext& c);

}  // namespace plimsoll
