// Self attention whose projections are products of 8-bit matrices; the attention itself is in floats.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "kernels/softmax.h"
#include "ops/integer_product.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kW = 1, kBias = 2, kXScale = 3, kWScale = 4, kMask = 5, kXZero = 6, kWZero = 7,
                 kPast = 8;
constexpr ProductInputs kInputs = {.a = kX, .b = kW, .a_zero = kXZero, .b_zero = kWZero};

struct QAttentionAttrs {
  int64_t heads = 0;
  bool causal = false;
  bool rotates = false;
  float scale = 0;  // 0: by the size of a head
  float mask_value = -10000;
};

struct QAttentionChoice {
  IntegerProduct product;
  int64_t batch = 0, queries = 0, past = 0, hidden = 0, head = 0;
  int64_t qkv_at = 0, scales_at = 0, bias_at = 0, y_at = 0;
  int64_t tasks_at = 0, task_bytes = 0;                  // one thread's after the other's
  int64_t values_in = 0, scores_in = 0, working_in = 0;  // offsets in a thread's piece; keys come first
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<QAttentionAttrs>();
  a->heads = c.integer("num_heads");
  if (a->heads < 1 || a->heads > INT32_MAX) c.reject("attribute 'num_heads': found {}", a->heads);
  a->causal = c.integer("unidirectional", 0) != 0;
  a->scale = c.real("scale", 0.0f);
  a->mask_value = c.real("mask_filter_value", -10000.0f);
  a->rotates = c.integer("do_rotary", 0) != 0;
  if (c.integer("past_present_share_buffer", 0) != 0)
    fail(ErrorCode::kNotImplemented, "{}: past and present in one buffer", c.node().label());
  return a;
}

// Lengths [batch]; ends and starts [2 * batch]; one flag per key [batch, keys], or per query and key; [batch,
// 1] and [1, 1] stand for none.
void check_mask(InferContext& c, Dim batch, Dim queries, Dim keys) {
  c.expect_type(kMask, types(ElementType::kInt32));
  if (!c.ranked(kMask)) return;
  c.expect_rank(kMask, 1, 3);
  const auto mask = c.dims(kMask);
  if (mask.size() == 1) {
    const bool fits =
        !mask[0].is_constant() || !batch.is_constant() || mask[0] == batch || mask[0] == batch * Dim(2);
    if (!fits)
      c.reject("input {}: expected {} or twice as many, found {}", kMask, batch.value(), mask[0].value());
  } else if (mask.size() == 3) {
    expect_dims(c, kMask, {batch, queries, keys});
  } else if (!(mask[1] == Dim(1) && mask[0] == Dim(1))) {
    expect_dims(c, kMask, {batch, mask[1] == Dim(1) ? Dim(1) : keys});
  }
}

void infer(InferContext& c) {
  const auto& a = c.attrs<QAttentionAttrs>();
  c.expect_type(kX, kByteTypes);
  c.expect_type(kW, kByteTypes);
  c.expect_type(kBias, types(ElementType::kFloat, ElementType::kFloat16));
  for (size_t i : {kXScale, kWScale, kPast}) {
    if (c.has_input(i)) c.expect_same_type(kBias, i);
  }
  const ElementType type = c.type(kBias);
  if (c.ranked(kX)) c.expect_rank(kX, 3, 3);
  if (c.ranked(kW)) c.expect_rank(kW, 2, 2);
  const auto dims = infer_product(c, kInputs);
  if (!dims) {
    c.set_unranked_output(0, type);
    return c.set_unranked_output(1, type);
  }
  expect_per_column(c, kWScale, kInputs);
  for (size_t i : {kXScale, kXZero}) {
    const Dim count = c.has_input(i) && c.ranked(i) ? product(c.dims(i)) : Dim(1);
    if (count.is_constant() && count.value() != 1)
      c.reject("input {}: expected one value, found shape {}", i, to_string(c.dims(i)));
  }
  const Dim batch = (*dims)[0], queries = (*dims)[1], columns = (*dims)[2],
            hidden = floor_div(columns, Dim(3));
  if (columns.is_constant() && columns.value() % (3 * a.heads) != 0)
    c.reject("{} columns do not divide into queries, keys and values of {} heads", columns.value(), a.heads);
  const Dim head = floor_div(hidden, Dim(a.heads));
  if (a.rotates && head.is_constant() && head.value() % 2 != 0)
    c.reject("do_rotary: a head of {} elements cannot be divided into two halves", head.value());
  expect_dims(c, kBias, {columns});
  Dim past = 0;
  if (c.has_input(kPast) && c.ranked(kPast)) {
    c.expect_rank(kPast, 5, 5);
    past = c.dims(kPast)[3];
    expect_dims(c, kPast, {Dim(2), batch, Dim(a.heads), past, head});
  } else if (c.has_input(kPast)) {
    past = c.unknown("past");
  }
  if (c.has_input(kMask)) check_mask(c, batch, queries, past + queries);
  c.set_output(0, type, {batch, queries, hidden});
  c.set_output(1, type, {Dim(2), batch, Dim(a.heads), past + queries, head});
}

const void* select(SelectContext& c) {
  const auto& a = c.attrs<QAttentionAttrs>();
  auto* choice = c.make<QAttentionChoice>();
  choice->product = select_product(c, kInputs);
  if (!c.output(0).type.ranked) return choice;
  const std::span<const Dim> y = c.output(0).type.dims;
  const Dim columns = y[2] * Dim(3), rows = y[0] * y[1], head = floor_div(y[2], Dim(a.heads));
  const Dim past = c.has_input(kPast) && c.ranked(kPast) ? c.dims(kPast)[3] : Dim(0), keys = past + y[1];
  choice->qkv_at = c.scratch(rows * columns * Dim(4));
  choice->scales_at = c.scratch(columns * Dim(4));
  choice->bias_at = c.scratch(columns * Dim(4));
  if (c.type(kBias) != ElementType::kFloat) choice->y_at = c.scratch(product(y) * Dim(4));
  const auto aligned = [](Dim floats) { return ceil_div(floats, Dim(16)) * Dim(64); };
  const Dim copy = aligned(keys * head), scores = aligned(y[1] * keys);
  Dim working = (head + 64) * (keys + 64) * Dim(8);
  if (c.is_concrete()) {
    const int64_t m = y[1].value(), n = keys.value(), k = head.value();
    working =
        static_cast<int64_t>(std::max(kernels::gemm_dynamic_scratch_bytes({m, k, n}, columns.value(), 1, 1),
                                      kernels::gemm_dynamic_scratch_bytes({m, n, k}, n, 1, 1)));
    choice->batch = y[0].value(), choice->queries = m, choice->past = past.value();
    choice->hidden = y[2].value(), choice->head = k;
    choice->values_in = copy.value(), choice->scores_in = 2 * copy.value();
    choice->working_in = choice->scores_in + scores.value();
    choice->task_bytes = choice->working_in + round_up(working.value(), int64_t{64});
  }
  choice->tasks_at =
      c.scratch(Dim(c.threads) * (copy * Dim(2) + scores + ceil_div(working, Dim(64)) * Dim(64)));
  return choice;
}

void pack(const PackContext& c) {
  pack_product(c, kInputs);
}

class QAttentionRun {
 public:
  explicit QAttentionRun(const RunContext& c)
      : c_(c), a_(c.attrs<QAttentionAttrs>()), p_(c.choice<QAttentionChoice>()), keys_(p_.past + p_.queries) {
    y_ = c.outputs[0].type == ElementType::kFloat ? c.outputs[0].as<float>() : c.scratch_as<float>(p_.y_at);
    scale_ = a_.scale != 0 ? a_.scale : 1.0f / std::sqrt(static_cast<float>(p_.head));
  }

  void run() {
    project();
    if (a_.rotates) rotate();
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t task) {
      const int64_t units = p_.batch * a_.heads;
      for (int64_t i = units * task / c_.threads; i < units * (task + 1) / c_.threads; ++i)
        attend(i / a_.heads, i % a_.heads, c_.scratch + p_.tasks_at + task * p_.task_bytes);
    });
    const TensorView& y = c_.outputs[0];
    if (y.type != ElementType::kFloat)
      kernels::convert(ElementType::kFloat, y_, y.type, y.data, y.elements());
  }

 private:
  // Queries, keys and values of all heads, side by side.
  void project() {
    const int64_t columns = 3 * p_.hidden;
    float* scales = c_.scratch_as<float>(p_.scales_at);
    float* bias = c_.scratch_as<float>(p_.bias_at);
    const TensorView& w_scale = c_.inputs[kWScale];
    const float x_scale = read_as_float(c_.inputs[kXScale], 0);
    for (int64_t i = 0; i < columns; ++i)
      scales[i] = x_scale * read_as_float(w_scale, w_scale.elements() == 1 ? 0 : i);
    read_as_floats(c_.inputs[kBias], 0, columns, bias);
    const ProductRun product(c_, kInputs, p_.product);
    if (p_.product.m == 0) return;
    ProductStep step = product.step(0);
    step.finish.scales = scales;
    step.finish.float_bias = bias;
    product.multiply(step, c_.scratch + p_.qkv_at, kernels::IntGemmResult::kFloat);
  }

  // Queries and keys are turned by their positions, by the angles of Attention (microsoft_attention.cpp).
  void rotate() const {
    const int64_t half = p_.head / 2;
    kernels::parallel_for(c_.threads, p_.batch * p_.queries, [&](int64_t row) {
      float* line = c_.scratch_as<float>(p_.qkv_at) + row * 3 * p_.hidden;
      const auto position = static_cast<float>(p_.past + row % p_.queries);
      for (int64_t pair = 0; pair < half; ++pair) {
        const float exponent = -2.0f * static_cast<float>(pair) / static_cast<float>(p_.head);
        const float angle = position * std::pow(10000.0f, exponent), cosine = std::cos(angle),
                    sine = std::sin(angle);
        for (int64_t head = 0; head < 2 * a_.heads;
             ++head) {  // those of the keys follow those of the queries
          float &low = line[head * p_.head + pair], &high = line[head * p_.head + half + pair];
          const float turned = low * cosine - high * sine;
          high = low * sine + high * cosine, low = turned;
        }
      }
    });
  }

  const float* projected(int64_t batch, int64_t head, int64_t part) const {
    return c_.scratch_as<float>(p_.qkv_at) + batch * p_.queries * 3 * p_.hidden + part * p_.hidden +
           head * p_.head;
  }

  // Past and current rows of keys (part 1) or values (2), one behind the other.
  void gather(int64_t batch, int64_t head, int64_t part, float* to) const {
    const int64_t unit = ((part - 1) * p_.batch + batch) * a_.heads + head;
    if (p_.past > 0) read_as_floats(c_.inputs[kPast], unit * p_.past * p_.head, p_.past * p_.head, to);
    const float* from = projected(batch, head, part);
    for (int64_t i = 0; i < p_.queries; ++i)
      std::copy_n(from + i * 3 * p_.hidden, p_.head, to + (p_.past + i) * p_.head);
    if (!c_.has_output(1)) return;
    const TensorView& present = c_.outputs[1];
    const int64_t count = keys_ * p_.head, at = unit * count;
    if (present.type == ElementType::kFloat) {
      std::copy_n(to, count, present.as<float>() + at);
    } else {
      kernels::convert(ElementType::kFloat, to, present.type, present.as<uint16_t>() + at, count);
    }
  }

  bool masked(int64_t batch, int64_t query, int64_t key) const {
    const TensorView& mask = c_.inputs[kMask];
    const int32_t* values = mask.as<int32_t>();
    if (mask.rank() == 1)
      return key >= values[batch] || (mask.dims[0] == 2 * p_.batch && key < values[p_.batch + batch]);
    if (mask.rank() == 3) return values[(batch * p_.queries + query) * keys_ + key] <= 0;
    if (mask.dims[1] == 1) return false;  // a stand-in for none; and one key alone is seen in any case
    return values[batch * keys_ + key] <= 0;
  }

  void attend(int64_t batch, int64_t head, std::byte* own) const {
    auto* keys = reinterpret_cast<float*>(own);
    auto* values = reinterpret_cast<float*>(own + p_.values_in);
    auto* scores = reinterpret_cast<float*>(own + p_.scores_in);
    gather(batch, head, 1, keys);
    gather(batch, head, 2, values);
    if (p_.queries == 0 || p_.head == 0) return;
    kernels::GemmEpilogue scaled;
    scaled.alpha = scale_;
    kernels::gemm({p_.queries, p_.head, keys_}, {projected(batch, head, 0), 3 * p_.hidden, 1},
                  {keys, 1, p_.head}, {scores, keys_}, scaled, own + p_.working_in, 1);
    for (int64_t i = 0; i < p_.queries; ++i) {
      for (int64_t k = 0; k < keys_; ++k) {
        float& score = scores[i * keys_ + k];
        if (c_.has_input(kMask) && masked(batch, i, k)) score += a_.mask_value;
        if (a_.causal && k > p_.past + i) score = std::numeric_limits<float>::lowest();
      }
    }
    kernels::softmax_rows_f32(false, scores, scores, p_.queries, keys_);
    kernels::gemm({p_.queries, keys_, p_.head}, {scores, keys_, 1}, {values, p_.head, 1},
                  {y_ + batch * p_.queries * p_.hidden + head * p_.head, p_.hidden}, {}, own + p_.working_in,
                  1);
  }

  const RunContext& c_;
  const QAttentionAttrs& a_;
  const QAttentionChoice& p_;
  int64_t keys_;
  float* y_;
  float scale_;
};

void run(const RunContext& c) {
  QAttentionRun(c).run();
}

}  // namespace

extern const OpDef op_qattention = {
    .domain = kMicrosoftDomain,
    .name = "QAttention",
    .inputs = {5, 9},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .pack = pack,
    .run = run,
};

}  // namespace plimsoll
