#include "ops/movement.h"
#include "ops/multi_head_attention.h"

namespace plimsoll {

// ---- parts that the whole family asks for ------------------------------------------------------------

std::optional<double> read_scale(AttrContext& c) {
  const float scale = c.real("scale", 0.0f);
  return scale == 0 ? std::nullopt : std::optional<double>(scale);
}

int64_t read_heads(AttrContext& c, std::string_view name) {
  const int64_t heads = c.integer(name);
  if (heads < 1 || heads > INT32_MAX) c.reject("attribute '{}': expected at least 1, found {}", name, heads);
  return heads;
}

std::optional<Dim> known_length_value(InferContext& c, size_t i) {
  if (!c.has_input(i)) return std::nullopt;
  const auto values = c.values(i);
  if (!values || values->size() != 1) return std::nullopt;
  return (*values)[0];
}

int64_t length_at_run(const RunContext& c, size_t i) {
  return index_at(c.inputs[i], 0);
}

void expect_dim(const InferContext& c, size_t i, size_t d, Dim expected) {
  const Dim found = c.dims(i)[d];
  if (found.is_constant() && expected.is_constant() && !(found == expected))
    c.reject("input {}: expected {} in dimension {}, found shape {}", i, expected.value(), d,
             to_string(c.dims(i)));
}

void check_changed_head(const InferContext& c, Dim head) {
  if (head.is_constant() && head.value() > kLongestChangedRow)
    fail(ErrorCode::kNotImplemented, "{}: heads of {} elements; at most {} are implemented", c.node().label(),
         head.value(), kLongestChangedRow);
}

void check_padding(const InferContext& c, size_t i, Dim batch, Dim queries, std::optional<Dim> total,
                   bool has_starts) {
  if (!c.has_input(i)) return;
  c.expect_type(i, types(ElementType::kInt32));
  if (!c.ranked(i)) return;
  c.expect_rank(i, 1, 3);
  const auto dims = c.dims(i);
  if (dims.size() == 1) {
    if (!dims[0].is_constant() || !batch.is_constant()) return;
    const int64_t found = dims[0].value(), b = batch.value();
    if (found != b && found != 3 * b + 2 && !(has_starts && found == 2 * b))
      c.reject("input {}: a mask of {} lengths does not belong to a batch of {}", i, found, b);
    return;
  }
  expect_dim(c, i, 0, batch);
  if (dims.size() == 3) expect_dim(c, i, 1, queries);
  if (total) expect_dim(c, i, dims.size() - 1, *total);
}

AttentionPadding padding_at_run(const RunContext& c, size_t i, int64_t batch, int64_t rows, float filter) {
  AttentionPadding pad;
  pad.filter = filter;
  if (!c.has_input(i)) return pad;
  const TensorView& mask = c.inputs[i];
  const auto* data = mask.as<int32_t>();
  if (mask.rank() == 1) {
    pad.ends = data;
    if (mask.dims[0] == 2 * batch) pad.starts = data + batch;
    return pad;
  }
  if (mask.dims.back() < rows)
    fail(ErrorCode::kInvalidArgument, "{}: input {}: expected a mask for {} keys, found shape {}",
         c.node->label(), i, rows, to_string(mask.dims));
  pad.flags = data;
  pad.query = mask.rank() == 3 ? mask.dims[2] : 0;
  pad.batch = mask.rank() == 3 ? mask.dims[1] * mask.dims[2] : mask.dims[1];
  return pad;
}

void check_attention_bias(const InferContext& c, size_t i, Dim batch, Dim heads, Dim queries,
                          std::optional<Dim> total) {
  if (!c.has_input(i)) return;
  c.expect_same_type(0, i);
  c.expect_rank(i, 4, 4);
  if (!c.ranked(i)) return;
  if (!(c.dims(i)[0] == Dim(1))) expect_dim(c, i, 0, batch);
  if (!(c.dims(i)[1] == Dim(1))) expect_dim(c, i, 1, heads);
  expect_dim(c, i, 2, queries);
  if (total) expect_dim(c, i, 3, *total);
}

AttentionMask attention_bias_at_run(const RunContext& c, size_t i, int64_t rows) {
  if (!c.has_input(i)) return {};
  const TensorView& view = c.inputs[i];
  if (view.dims[3] < rows)
    fail(ErrorCode::kInvalidArgument, "{}: attention_bias: expected {} keys, found shape {}", c.node->label(),
         rows, to_string(view.dims));
  return broadcast_mask(view, rows);
}

// ---- MultiHeadAttention -----------------------------------------------------------------------------

void read_multi_head(AttrContext& c, MultiHeadAttrs& a) {
  a.heads = read_heads(c, "num_heads");
  a.scale = read_scale(c);
  a.filter = c.real("mask_filter_value", -10000.0f);
}

namespace {

bool has_past(const NodeContext& c) {
  return c.has_input(c.attrs<MultiHeadAttrs>().at.past_key);
}

HeadFormat format_of(const NodeContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  if (!c.has_input(a.at.key)) return a.one_query ? HeadFormat::kFlatQKV : HeadFormat::kPackedQKV;
  if (!c.has_input(a.at.value)) return HeadFormat::kPackedKV;
  return c.rank(a.at.key) == 4 ? HeadFormat::kHeads : HeadFormat::kApart;
}

void check_types(const InferContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  c.expect_type(0, kAttentionTypes);
  for (size_t i : {a.at.key, a.at.value, a.at.bias, a.at.past_key, a.at.past_value}) {
    if (c.has_input(i)) c.expect_same_type(0, i);
  }
  for (size_t i : {a.at.past_length, a.at.beams}) {
    if (c.has_input(i)) c.expect_type(i, types(ElementType::kInt32));
  }
  if (c.has_input(a.at.value) && !c.has_input(a.at.key)) c.reject("a value without a key");
  if (c.has_input(a.at.past_key) != c.has_input(a.at.past_value))
    c.reject("past_key and past_value are given together or not at all");
  if (a.shares && has_past(c) && !c.has_input(a.at.past_length))
    c.reject("past_sequence_length is needed where past and present share a buffer");
}

void check_ranks(const InferContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  const HeadFormat format = format_of(c);
  const size_t query_rank = format == HeadFormat::kPackedQKV ? 5 : 3;
  c.expect_rank(a.at.query, query_rank, query_rank);
  const bool apart = format == HeadFormat::kApart || format == HeadFormat::kHeads;
  if (apart) c.expect_rank(a.at.key, 3, 4);
  if (format == HeadFormat::kPackedKV) c.expect_rank(a.at.key, 5, 5);
  if (apart) c.expect_rank(a.at.value, c.rank(a.at.key), c.rank(a.at.key));
  if (!has_past(c)) return;
  if (format == HeadFormat::kHeads) c.reject("past_key is for keys that are not divided into heads");
  c.expect_rank(a.at.past_key, 4, 4);
  c.expect_rank(a.at.past_value, 4, 4);
}

// A width that is divided among the heads.
void check_width(const InferContext& c, size_t i, int64_t parts) {
  const Dim width = c.dims(i).back();
  if (width.is_constant() && width.value() % parts != 0)
    c.reject("input {}: {} cannot be divided into {} heads", i, width.value(), parts);
}

void check_shape(const InferContext& c, const MultiHeadShape& s) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  const HeadInputs& at = a.at;
  const Dim heads = a.heads;
  switch (s.format) {
    case HeadFormat::kApart:
      check_width(c, at.query, a.heads);
      check_width(c, at.value, a.heads);
      unify(c, c.dims(at.key)[2], c.dims(at.query)[2]);
      unify(c, c.dims(at.value)[1], s.keys);
      break;
    case HeadFormat::kHeads:
      check_width(c, at.query, a.heads);
      for (size_t i : {at.key, at.value}) expect_dim(c, i, 1, heads);
      unify(c, c.dims(at.key)[3], s.head);
      unify(c, c.dims(at.value)[2], s.keys);
      break;
    case HeadFormat::kPackedKV:
      check_width(c, at.query, a.heads);
      expect_dim(c, at.key, 2, heads);
      expect_dim(c, at.key, 3, 2);
      unify(c, c.dims(at.key)[4], s.head);
      break;
    case HeadFormat::kPackedQKV:
      expect_dim(c, at.query, 2, heads);
      expect_dim(c, at.query, 3, 3);
      break;
    case HeadFormat::kFlatQKV:
      check_width(c, at.query, 3 * a.heads);
      break;
  }
  if (c.has_input(at.key)) unify(c, c.dims(at.key)[0], s.batch);
  if (c.has_input(at.value)) unify(c, c.dims(at.value)[0], s.batch);
  if (a.one_query && s.queries.is_constant() && s.queries.value() != 1)
    c.reject("expected one query, found {}", s.queries.value());
  if (!has_past(c)) return;
  const Dim past[] = {s.batch, heads, s.past, s.head}, past_value[] = {s.batch, heads, s.past, s.value_head};
  for (size_t d = 0; d < 4; ++d) {
    unify(c, c.dims(at.past_key)[d], past[d]);
    unify(c, c.dims(at.past_value)[d], past_value[d]);
  }
}

void check_others(const InferContext& c, const MultiHeadShape& s, std::optional<Dim> total) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  if (c.has_input(a.at.bias)) {
    if (s.format == HeadFormat::kPackedKV) c.reject("packed keys and values take no bias");
    check_changed_head(c, s.head);
    check_changed_head(c, s.value_head);
    c.expect_rank(a.at.bias, 1, 1);
    if (c.ranked(a.at.bias)) expect_dim(c, a.at.bias, 0, Dim(a.heads) * (s.head + s.head + s.value_head));
  }
  check_padding(c, a.at.padding, s.batch, s.queries, total, false);
  check_attention_bias(c, a.at.mask, s.batch, a.heads, s.queries, total);
  if (c.has_input(a.at.past_length) && c.ranked(a.at.past_length)) {
    const Dim count = product(c.dims(a.at.past_length));
    if (count.is_constant() && count.value() != 1) c.reject("past_sequence_length: expected one number");
  }
  if (!c.has_input(a.at.beams)) return;
  c.expect_rank(a.at.beams, 3, 3);
  if (!c.ranked(a.at.beams)) return;
  const auto beams = c.dims(a.at.beams);
  if (beams[0].is_constant() && beams[1].is_constant() && s.batch.is_constant() &&
      (beams[1].value() < 1 || beams[0].value() * beams[1].value() != s.batch.value()))
    c.reject("cache_indirection of shape {} does not belong to a batch of {}", to_string(beams),
             s.batch.value());
  if (a.shares && has_past(c)) expect_dim(c, a.at.beams, 2, s.past);
}

}  // namespace

MultiHeadShape multi_head_shape(const NodeContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  const auto q = c.dims(a.at.query);
  MultiHeadShape s;
  s.format = format_of(c);
  s.batch = q[0], s.queries = q[1], s.keys = q[1];
  switch (s.format) {
    case HeadFormat::kApart:
      s.keys = c.dims(a.at.key)[1];
      s.head = floor_div(q[2], Dim(a.heads));
      s.value_head = floor_div(c.dims(a.at.value)[2], Dim(a.heads));
      break;
    case HeadFormat::kHeads:
      s.keys = c.dims(a.at.key)[2];
      s.head = floor_div(q[2], Dim(a.heads));
      s.value_head = c.dims(a.at.value)[3];
      break;
    case HeadFormat::kPackedKV:
      s.keys = c.dims(a.at.key)[1];
      s.head = s.value_head = c.dims(a.at.key)[4];
      break;
    case HeadFormat::kPackedQKV:
      s.head = s.value_head = q[4];
      break;
    case HeadFormat::kFlatQKV:
      s.head = s.value_head = floor_div(q[2], Dim(3 * a.heads));
      break;
  }
  s.past = has_past(c) ? c.dims(a.at.past_key)[2] : Dim(0);
  s.rows = has_past(c) && a.shares ? s.past : s.past + s.keys;
  return s;
}

void infer_multi_head(InferContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  check_types(c);
  for (size_t i : {a.at.query, a.at.key, a.at.value, a.at.past_key, a.at.past_value}) {
    if (!c.has_input(i) || c.ranked(i)) continue;
    for (size_t output = 0; output < c.output_count(); ++output) c.set_unranked_output(output, c.type(0));
    return;
  }
  check_ranks(c);
  const MultiHeadShape s = multi_head_shape(c);
  check_shape(c, s);
  const bool shares = a.shares && has_past(c);
  const auto past = shares ? known_length_value(c, a.at.past_length) : std::optional<Dim>(s.past);
  const std::optional<Dim> total = past ? std::optional<Dim>(*past + s.keys) : std::nullopt;
  check_others(c, s, total);
  c.set_output(0, c.type(0), std::vector<Dim>{s.batch, s.queries, Dim(a.heads) * s.value_head});
  c.set_output(1, c.type(0), std::vector<Dim>{s.batch, a.heads, s.rows, s.head});
  c.set_output(2, c.type(0), std::vector<Dim>{s.batch, a.heads, s.rows, s.value_head});
  if (c.has_output(3))
    c.set_output(3, c.type(0),
                 std::vector<Dim>{s.batch, a.heads, s.queries, total ? *total : c.unknown("total")});
}

// Past and present of the same size are one buffer where nobody needs the past any more.
void alias_multi_head(AliasContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  if (!a.shares || !has_past(c)) return;
  if (c.has_output(1)) c.overwrite(a.at.past_key, 1);
  if (c.has_output(2)) c.overwrite(a.at.past_value, 2);
}

const void* select_multi_head(SelectContext& c) {
  const auto& a = c.attrs<MultiHeadAttrs>();
  for (size_t i : {a.at.query, a.at.key, a.at.value, a.at.past_key}) {
    if (c.has_input(i) && !c.ranked(i)) return nullptr;
  }
  const MultiHeadShape s = multi_head_shape(c);
  AttentionNeeds n{s.batch, s.queries, s.rows, s.head, s.value_head};
  const bool narrow = c.type(0) != ElementType::kFloat, changes = c.has_input(a.at.bias);
  const bool beams = c.has_input(a.at.beams);
  n.copies_result = narrow;
  n.copies_query = narrow || changes;
  n.copies_keys = narrow || beams || ((changes || has_past(c)) && !c.has_output(1));
  n.copies_values = narrow || beams || ((changes || has_past(c)) && !c.has_output(2));
  return choose_attention(c, n);
}

Cost cost_multi_head(const NodeContext& c) {
  const MultiHeadShape s = multi_head_shape(c);
  return attention_cost(c, s.batch * Dim(c.attrs<MultiHeadAttrs>().heads), s.queries, s.rows,
                        s.head + s.value_head);
}

}  // namespace plimsoll
