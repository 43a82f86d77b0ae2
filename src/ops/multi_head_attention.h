// MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft: the same but for the order of
// their inputs and who says that past and present share a buffer.
#pragma once

#include "ops/attention_core.h"

namespace plimsoll {

inline constexpr size_t kNotAnInput = 1u << 20;

struct HeadInputs {
  size_t query = 0, key = 1, value = 2, bias = kNotAnInput, padding = kNotAnInput, mask = kNotAnInput,
         past_key = kNotAnInput, past_value = kNotAnInput, past_length = kNotAnInput, beams = kNotAnInput;
};

struct MultiHeadAttrs {
  HeadInputs at;
  int64_t heads = 1;
  std::optional<double> scale;
  float filter = -10000.0f;
  bool causal = false;
  bool shares = false;     // past and present are one buffer, longer than what is in it
  bool one_query = false;  // and a query that holds keys and values too is flat
};
// num_heads, scale and mask_filter_value.
void read_multi_head(AttrContext& c, MultiHeadAttrs& a);

// Where keys and values are.
enum class HeadFormat : uint8_t {
  kApart,      // [batch, keys, heads * size] each
  kHeads,      // [batch, heads, keys, size] each
  kPackedKV,   // key is [batch, keys, heads, 2, size]
  kPackedQKV,  // query is [batch, queries, heads, 3, size]
  kFlatQKV,    // query is [batch, queries, 3 * heads * size]
};

struct MultiHeadShape {
  HeadFormat format = HeadFormat::kApart;
  Dim batch, queries, keys, head, value_head;
  Dim past, rows;  // rows of the past tensor, and of the keys at most
};
// Ranks must be known.
MultiHeadShape multi_head_shape(const NodeContext& c);

void infer_multi_head(InferContext& c);
void alias_multi_head(AliasContext& c);
const void* select_multi_head(SelectContext& c);
void run_multi_head(const RunContext& c);
Cost cost_multi_head(const NodeContext& c);
// Of queries, keys and values apart, without a past.
void gradient_multi_head(GradientContext& c);

// ---- shared by all of com.microsoft's attention ----------------------------------------------------

inline constexpr TypeSet kAttentionTypes =
    types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16);

// 0 and absence are the default.
std::optional<double> read_scale(AttrContext& c);
int64_t read_heads(AttrContext& c, std::string_view name);
// The one number of an int32 input, where it is known.
std::optional<Dim> known_length_value(InferContext& c, size_t i);
// That number at run, which must be there.
int64_t length_at_run(const RunContext& c, size_t i);
// A mask of int32: [batch], [2 * batch] (if has_starts), [3 * batch + 2], [batch, total], [batch, queries,
// total].
void check_padding(const InferContext& c, size_t i, Dim batch, Dim queries, std::optional<Dim> total,
                   bool has_starts);
AttentionPadding padding_at_run(const RunContext& c, size_t i, int64_t batch, int64_t rows, float filter);
// [batch or 1, heads or 1, queries, total]
void check_attention_bias(const InferContext& c, size_t i, Dim batch, Dim heads, Dim queries,
                          std::optional<Dim> total);
AttentionMask attention_bias_at_run(const RunContext& c, size_t i, int64_t rows);
// Throws unless dimension d of input i can be `expected`.
void expect_dim(const InferContext& c, size_t i, size_t d, Dim expected);
// Throws if rows that are changed are too long for it.
void check_changed_head(const InferContext& c, Dim head);

}  // namespace plimsoll
