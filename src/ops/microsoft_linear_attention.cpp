// Attention without a softmax: what was seen is a matrix for each head, to which every token adds a product,
// and which every query multiplies.
#include <algorithm>
#include <cmath>

#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"
#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kPast = 3, kDecay = 4, kBeta = 5;

struct LinearAttrs {
  int64_t q_heads = 1, kv_heads = 1;
  float scale = 0;  // 0: by the size of a head
  bool decays = true, corrects = true;

  int64_t out_heads() const { return std::max(q_heads, kv_heads); }
};

struct LinearChoice {
  int64_t state_at = 0, rows_at = 0, state = 0, rows = 0;  // floats of one thread's pieces
};

struct LinearShape {
  Dim batch, steps, key, value;  // key and value: sizes of a head
};
LinearShape shape_of(const NodeContext& c) {
  const auto& a = c.attrs<LinearAttrs>();
  const auto q = c.dims(kQuery);
  return {q[0], q[1], floor_div(q[2], Dim(a.q_heads)), floor_div(c.dims(kValue)[2], Dim(a.kv_heads))};
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<LinearAttrs>();
  a->q_heads = read_heads(c, "q_num_heads");
  a->kv_heads = read_heads(c, "kv_num_heads");
  if (a->q_heads % a->kv_heads != 0 && a->kv_heads % a->q_heads != 0)
    c.reject("neither of {} query heads and {} key heads is a multiple of the other", a->q_heads,
             a->kv_heads);
  a->scale = c.real("scale", 0.0f);
  const std::string_view rule = c.text("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    c.reject("attribute 'update_rule': expected linear, gated, delta or gated_delta, found '{}'", rule);
  a->decays = rule == "gated" || rule == "gated_delta";
  a->corrects = rule == "delta" || rule == "gated_delta";
  if (a->decays && c.node().input(kDecay) == nullptr) c.reject("update_rule {} needs decay", rule);
  if (a->corrects && c.node().input(kBeta) == nullptr) c.reject("update_rule {} needs beta", rule);
  c.ignore("chunk_size");
  if (const int64_t window = c.integer("state_window", 0); window != 0)
    fail(ErrorCode::kNotImplemented, "{}: state_window {}", c.node().label(), window);
  return a;
}

bool is_ranked(const NodeContext& c) {
  return c.ranked(kQuery) && c.ranked(kKey) && c.ranked(kValue);
}

void infer(InferContext& c) {
  const auto& a = c.attrs<LinearAttrs>();
  c.expect_type(kQuery, kAttentionTypes);
  for (size_t i : {kKey, kValue, kDecay, kBeta}) {
    if (!c.has_input(i)) continue;
    c.expect_same_type(kQuery, i);
    c.expect_rank(i, 3, 3);
  }
  c.expect_rank(kQuery, 3, 3);
  if (c.has_input(kPast)) c.expect_type(kPast, kAttentionTypes);
  const ElementType state_type = c.has_input(kPast) ? c.type(kPast) : c.type(kQuery);
  if (!is_ranked(c)) {
    c.set_unranked_output(0, c.type(kQuery));
    return c.set_unranked_output(1, state_type);
  }
  const auto divides = [&](size_t i, int64_t heads) {
    const Dim width = c.dims(i)[2];
    if (width.is_constant() && width.value() % heads != 0)
      c.reject("input {}: {} cannot be divided into {} heads", i, width.value(), heads);
  };
  divides(kQuery, a.q_heads);
  divides(kValue, a.kv_heads);
  const LinearShape s = shape_of(c);
  expect_dims(c, kKey, {s.batch, s.steps, s.key * Dim(a.kv_heads)});
  expect_dims(c, kValue, {s.batch, s.steps, c.dims(kValue)[2]});
  const std::vector<Dim> state = {s.batch, a.kv_heads, s.key, s.value};
  if (c.has_input(kPast)) expect_dims(c, kPast, state);
  const auto expect_width = [&](size_t i, Dim one, Dim other) {
    if (!c.has_input(i) || !c.ranked(i)) return;
    const Dim found = c.dims(i)[2];
    const bool is_known = found.is_constant() && one.is_constant() && other.is_constant();
    const bool fits = !is_known || found == one || found == other;
    expect_dims(c, i, {s.batch, s.steps, fits ? found : one});
  };
  expect_width(kDecay, a.kv_heads, s.key * Dim(a.kv_heads));
  expect_width(kBeta, a.kv_heads, 1);
  c.set_output(0, c.type(kQuery), std::vector<Dim>{s.batch, s.steps, s.value * Dim(a.out_heads())});
  c.set_output(1, state_type, state);
}

const void* select(SelectContext& c) {
  auto* choice = c.make<LinearChoice>();
  if (!is_ranked(c)) return choice;
  const LinearShape s = shape_of(c);
  // A head's matrix; a query, a key, its decay, a value, an answer.
  const Dim state = s.key * s.value, rows = s.key * Dim(3) + s.value * Dim(2);
  choice->state_at = c.scratch(state * Dim(4 * c.threads));
  choice->rows_at = c.scratch(rows * Dim(4 * c.threads));
  if (c.is_concrete()) choice->state = state.value(), choice->rows = rows.value();
  return choice;
}

class LinearRun {
 public:
  explicit LinearRun(const RunContext& c) : c_(c), a_(c.attrs<LinearAttrs>()), p_(c.choice<LinearChoice>()) {
    batch_ = c.inputs[kQuery].dims[0], steps_ = c.inputs[kQuery].dims[1];
    key_ = c.inputs[kQuery].dims[2] / a_.q_heads, value_ = c.inputs[kValue].dims[2] / a_.kv_heads;
    scale_ = a_.scale != 0 ? a_.scale : 1.0f / std::sqrt(static_cast<float>(std::max<int64_t>(key_, 1)));
  }

  void run() const {
    const int64_t units = batch_ * a_.kv_heads;
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t task) {
      for (int64_t i = units * task / c_.threads; i < units * (task + 1) / c_.threads; ++i)
        follow(i / a_.kv_heads, i % a_.kv_heads, task);
    });
  }

 private:
  // All tokens of one head.
  void follow(int64_t b, int64_t h, int64_t task) const {
    float* state = c_.scratch_as<float>(p_.state_at) + task * p_.state;
    float* query = c_.scratch_as<float>(p_.rows_at) + task * p_.rows;
    float *key = query + key_, *decay = key + key_, *value = decay + key_, *y = value + value_;
    const int64_t first = (b * a_.kv_heads + h) * p_.state;
    if (c_.has_input(kPast)) {
      read_as_floats(c_.inputs[kPast], first, p_.state, state);
    } else {
      std::fill_n(state, p_.state, 0.0f);
    }
    for (int64_t t = 0; t < steps_; ++t) {
      const int64_t token = b * steps_ + t;
      read_as_floats(c_.inputs[kKey], (token * a_.kv_heads + h) * key_, key_, key);
      read_as_floats(c_.inputs[kValue], (token * a_.kv_heads + h) * value_, value_, value);
      if (a_.decays) fade(token, h, decay, state);
      if (a_.corrects) correct(token, h, key, state, value, y);
      for (int64_t i = 0; i < key_; ++i) add(key[i], value, state + i * value_);
      answer(token, h, query, state, y);
    }
    if (!c_.has_output(1)) return;
    const TensorView& present = c_.outputs[1];
    write_floats(present, first, p_.state, state);
  }

  void add(float factor, const float* from, float* to) const {
    for (int64_t j = 0; j < value_; ++j) to[j] += factor * from[j];
  }

  void fade(int64_t token, int64_t h, float* decay, float* state) const {
    const TensorView& view = c_.inputs[kDecay];
    const int64_t width = view.dims[2], each = width / a_.kv_heads;  // 1, or for each row of the state
    read_as_floats(view, token * width + h * each, each, decay);
    for (int64_t i = 0; i < key_; ++i) {
      const float factor = std::exp(decay[each == 1 ? 0 : i]);
      for (int64_t j = 0; j < value_; ++j) state[i * value_ + j] *= factor;
    }
  }

  // The value becomes what is to be added: beta * (value - what the state has for the key).
  void correct(int64_t token, int64_t h, const float* key, const float* state, float* value,
               float* had) const {
    const int64_t width = c_.inputs[kBeta].dims[2];
    const float beta = read_as_float(c_.inputs[kBeta], token * width + (width == 1 ? 0 : h));
    std::fill_n(had, value_, 0.0f);
    for (int64_t i = 0; i < key_; ++i) add(key[i], state + i * value_, had);
    for (int64_t j = 0; j < value_; ++j) value[j] = beta * (value[j] - had[j]);
  }

  // Several queries share a state, or several states a query.
  void answer(int64_t token, int64_t h, float* query, const float* state, float* y) const {
    const bool shares = a_.q_heads >= a_.kv_heads;
    const int64_t together = shares ? a_.q_heads / a_.kv_heads : 1;
    for (int64_t i = 0; i < together; ++i) {
      const int64_t to = shares ? h * together + i : h;
      const int64_t from = shares ? to : h / (a_.kv_heads / a_.q_heads);
      read_as_floats(c_.inputs[kQuery], (token * a_.q_heads + from) * key_, key_, query);
      std::fill_n(y, value_, 0.0f);
      for (int64_t k = 0; k < key_; ++k) add(scale_ * query[k], state + k * value_, y);
      write_floats(c_.outputs[0], (token * a_.out_heads() + to) * value_, value_, y);
    }
  }

  const RunContext& c_;
  const LinearAttrs& a_;
  const LinearChoice& p_;
  int64_t batch_ = 0, steps_ = 0, key_ = 0, value_ = 0;
  float scale_ = 1;
};

void run(const RunContext& c) {
  LinearRun(c).run();
}

Cost cost(const NodeContext& c) {
  const LinearShape s = shape_of(c);
  return attention_cost(c, s.batch * Dim(c.attrs<LinearAttrs>().out_heads()), s.steps, s.key,
                        s.value * Dim(3));
}

}  // namespace

extern const OpDef op_microsoft_linear_attention = {
    .domain = kMicrosoftDomain,
    .name = "LinearAttention",
    .inputs = {3, 6},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
