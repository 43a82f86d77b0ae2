// Y = A * B, where B's elements are of 4 bits that stand for one of sixteen numbers, times a factor for each
// block of them. B stays as it is: a panel of its columns at a time becomes floats in scratch.
#include <algorithm>

#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/parallel.h"
#include "ops/linear_quantization.h"
#include "ops/movement.h"
#include "ops/multi_head_attention.h"

namespace plimsoll {
namespace {

constexpr size_t kA = 0, kB = 1, kFactors = 2;

// The types of bitsandbytes, by their codes.
constexpr float kFloat4[16] = {
    0.0f,  0.005208333333f,  2.0f / 3,  1.0f,  1.0f / 3,  0.5f,  1.0f / 6,  0.25f,
    -0.0f, -0.005208333333f, -2.0f / 3, -1.0f, -1.0f / 3, -0.5f, -1.0f / 6, -0.25f};
// Quantiles of the normal distribution.
constexpr float kNormal4[16] = {-1.0f,
                                -0.6961928009986877f,
                                -0.5250730514526367f,
                                -0.39491748809814453f,
                                -0.28444138169288635f,
                                -0.18477343022823334f,
                                -0.09105003625154495f,
                                0.0f,
                                0.07958029955625534f,
                                0.16093020141124725f,
                                0.24611230194568634f,
                                0.33791524171829224f,
                                0.44070982933044434f,
                                0.5626170039176941f,
                                0.7229568362236023f,
                                1.0f};

struct Bnb4Attrs {
  int64_t k = 0, n = 0, block = 0;  // B is [n, k]
  const float* numbers = kFloat4;
  bool transposes = true;

  int64_t depth() const { return transposes ? k : n; }
  int64_t columns() const { return transposes ? n : k; }
};

struct Bnb4Choice {
  int64_t panel = 0, a_at = 0, y_at = 0;
  int64_t tasks_at = 0, task_bytes = 0, packed_in = 0, working_in = 0;  // offsets in a task's piece
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Bnb4Attrs>();
  a->k = c.integer("K"), a->n = c.integer("N"), a->block = c.integer("block_size");
  if (a->k < 1 || a->k > INT32_MAX || a->n < 1 || a->n > INT32_MAX)
    c.reject("expected positive attributes 'K' and 'N', found {} and {}", a->k, a->n);
  if (a->block < 16 || a->block > INT32_MAX || (a->block & (a->block - 1)) != 0)
    c.reject("attribute 'block_size': expected a power of two from 16 on, found {}", a->block);
  const int64_t type = c.integer("quant_type");
  if (type != 0 && type != 1) c.reject("attribute 'quant_type': expected 0 (FP4) or 1 (NF4), found {}", type);
  if (type == 1) a->numbers = kNormal4;
  a->transposes = c.integer("transB", 1) != 0;
  c.ignore("training_mode");
  return a;
}

void expect_elements(const InferContext& c, size_t input, int64_t count) {
  if (!c.ranked(input)) return;
  const Dim found = product(c.dims(input));
  if (found.is_constant() && found.value() != count)
    c.reject("input {}: expected {} elements, found shape {}", input, count, to_string(c.dims(input)));
}

void infer(InferContext& c) {
  const auto& a = c.attrs<Bnb4Attrs>();
  c.expect_type(kA, kAttentionTypes);
  c.expect_type(kB, types(ElementType::kUint8));
  c.expect_same_type(kA, kFactors);
  const int64_t count = checked_mul(a.k, a.n);
  expect_elements(c, kB, ceil_div(count, int64_t{2}));
  expect_elements(c, kFactors, ceil_div(count, a.block));
  if (!c.ranked(kA)) return c.set_unranked_output(0, c.type(kA));
  if (c.rank(kA) == 0) c.reject("input 0: expected rank 1 or more, found a scalar");
  std::vector<Dim> dims(c.dims(kA).begin(), c.dims(kA).end());
  if (dims.back().is_constant() && dims.back().value() != a.depth())
    c.reject("input 0: expected {} columns, found shape {}", a.depth(), to_string(c.dims(kA)));
  dims.back() = a.columns();
  c.set_output(0, c.type(kA), dims);
}

const void* select(SelectContext& c) {
  const auto& a = c.attrs<Bnb4Attrs>();
  auto* choice = c.make<Bnb4Choice>();
  const auto aligned = [](int64_t bytes) { return round_up(bytes, SelectContext::kScratchAlignment); };
  choice->panel = std::min<int64_t>(a.columns(), kernels::packed_b_format());
  choice->packed_in = aligned(checked_mul(a.depth(), choice->panel * 4));
  choice->working_in =
      choice->packed_in + aligned(static_cast<int64_t>(kernels::packed_b_bytes(a.depth(), choice->panel)));
  choice->task_bytes =
      choice->working_in + aligned(static_cast<int64_t>(kernels::gemm_most_scratch_bytes(a.depth(), 1)));
  choice->tasks_at = c.scratch(checked_mul(choice->task_bytes, int64_t{c.threads}));
  if (c.type(kA) == ElementType::kFloat || !c.ranked(kA)) return choice;
  choice->a_at = c.scratch(product(c.dims(kA)) * Dim(4));
  choice->y_at = c.scratch(product(c.output(0).type.dims) * Dim(4));
  return choice;
}

// Element i of B, of which the first of two is in the high half of their byte.
float number_at(const RunContext& c, const Bnb4Attrs& a, int64_t i) {
  const unsigned byte = c.inputs[kB].as<uint8_t>()[i / 2];
  return a.numbers[i % 2 == 0 ? byte >> 4 : byte & 15];
}

// Columns of the right operand, [width, depth].
void widen(const RunContext& c, const Bnb4Attrs& a, int64_t column, int64_t width, float* to) {
  const int64_t depth = a.depth();
  for (int64_t i = 0; i < width; ++i) {
    int64_t block = -1;
    float factor = 0;
    for (int64_t j = 0; j < depth; ++j) {
      const int64_t at = a.transposes ? (column + i) * a.k + j : j * a.k + column + i;
      if (at / a.block != block) block = at / a.block, factor = read_as_float(c.inputs[kFactors], block);
      to[i * depth + j] = number_at(c, a, at) * factor;
    }
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<Bnb4Attrs>();
  const auto& choice = c.choice<Bnb4Choice>();
  const TensorView &x = c.inputs[kA], &y = c.outputs[0];
  const int64_t rows = x.elements() / a.depth(), columns = a.columns();
  if (rows == 0) return;
  const bool narrow = x.type != ElementType::kFloat;
  if (narrow) read_as_floats(x, 0, x.elements(), c.scratch_as<float>(choice.a_at));
  const float* left = narrow ? c.scratch_as<float>(choice.a_at) : x.as<float>();
  float* to = narrow ? c.scratch_as<float>(choice.y_at) : y.as<float>();
  const int64_t panels = ceil_div(columns, choice.panel);
  kernels::parallel_for(c.threads, c.threads, [&](int64_t task) {
    std::byte* own = c.scratch + choice.tasks_at + task * choice.task_bytes;
    auto* panel = reinterpret_cast<float*>(own);
    for (int64_t p = panels * task / c.threads; p < panels * (task + 1) / c.threads; ++p) {
      const int64_t column = p * choice.panel, width = std::min(choice.panel, columns - column);
      widen(c, a, column, width, panel);
      kernels::pack_b(a.depth(), width, {panel, 1, a.depth()}, own + choice.packed_in);
      kernels::gemm_packed({rows, a.depth(), width}, {left, a.depth(), 1}, own + choice.packed_in,
                           {to + column, columns}, {}, own + choice.working_in, 1);
    }
  });
  if (narrow) kernels::convert(ElementType::kFloat, to, y.type, y.data, y.elements());
}

Cost cost(const NodeContext& c) {
  const auto& a = c.attrs<Bnb4Attrs>();
  const double operations =
      2.0 * static_cast<double>(product(c.dims(kA)).value()) * static_cast<double>(a.columns());
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_microsoft_mat_mul_bnb4 = {
    .domain = kMicrosoftDomain,
    .name = "MatMulBnb4",
    .inputs = {3, 3},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
