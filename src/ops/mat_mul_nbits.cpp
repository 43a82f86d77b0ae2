// Y = A * B: B stays in its 2, 4 or 8 bits. A few rows of A meet the bits in registers; of many, a panel of
// columns of B at a time becomes floats in scratch, and goes into the f32 product, or, where A may be
// rounded, into one of bfloat16 or of bytes.
#include <algorithm>

#include "kernels/block_dequantize.h"
#include "kernels/convert.h"
#include "kernels/gemm.h"
#include "kernels/nbits_dot.h"
#include "kernels/nbits_panels.h"
#include "kernels/nbits_tiles.h"
#include "kernels/parallel.h"
#include "ops/linear_quantization.h"

namespace plimsoll {
namespace {

constexpr size_t kA = 0, kB = 1, kScales = 2, kZeros = 3, kGroups = 4, kBias = 5;
// So few that making floats of a panel for them would take longer than they do.
constexpr int64_t kFewRows = 16, kFewRowsInBytes = 32;
constexpr int64_t kBfloat16Level = 3, kBytesLevel = 4;  // the accuracy at which A may be rounded to them
constexpr TypeSet kTypes = types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16);

struct NBitsAttrs {
  int64_t k = 0, n = 0, bits = 4, block = 0, level = 0;
  int64_t blocks() const { return ceil_div(k, block); }
  int64_t blob() const { return block * bits / 8; }
  int64_t zero_bytes() const { return ceil_div(blocks() * bits, int64_t{8}); }
};

struct NBitsChoice {
  int64_t panel = 0;                        // columns
  int64_t a_at = 0, y_at = 0, bias_at = 0;  // wide copies, where A is of 16 bits
  int64_t tasks_at = 0, task_bytes = 0;     // one task's after the other's
  int64_t packed_in = 0, working_in = 0;    // offsets in a task's piece
  bool tiles = false;                       // many rows are multiplied as bfloat16
  bool panels = false;                      // or as bytes
  int64_t rounded_at = 0;                   // A as such
  int64_t few_rows = 0;                     // up to so many, A is arranged where the tasks' pieces are
  kernels::NBitsForm form = kernels::NBitsForm::kFloat;
  int64_t scales_at = 0, zeros_at = 0;  // wide copies, where they are of 16 bits
};

kernels::NBitsMatrix matrix_of(const NBitsAttrs& a) {
  kernels::NBitsMatrix m;
  m.k = a.k, m.n = a.n, m.bits = static_cast<int>(a.bits), m.block = a.block;
  return m;
}

const void* attrs(AttrContext& c) {
  auto* a = c.make<NBitsAttrs>();
  a->k = c.integer("K"), a->n = c.integer("N");
  a->bits = c.integer("bits", 4), a->block = c.integer("block_size");
  a->level = c.integer("accuracy_level", 0);  // how coarsely A may be taken
  if (a->k < 1 || a->k > INT32_MAX || a->n < 1 || a->n > INT32_MAX)
    c.reject("expected positive attributes 'K' and 'N', found {} and {}", a->k, a->n);
  if (a->bits != 2 && a->bits != 4 && a->bits != 8)
    c.reject("attribute 'bits': expected 2, 4 or 8, found {}", a->bits);
  if (a->block < 16 || a->block > INT32_MAX || (a->block & (a->block - 1)) != 0)
    c.reject("attribute 'block_size': expected a power of two from 16 on, found {}", a->block);
  if (c.integer("weight_prepacked", 0) != 0)
    c.reject("weights in another machine's layout (weight_prepacked)");
  return a;
}

void expect_elements(const InferContext& c, size_t input, int64_t count) {
  if (!c.has_input(input) || !c.ranked(input)) return;
  const Dim found = product(c.dims(input));
  if (found.is_constant() && found.value() != count)
    c.reject("input {}: expected {} elements, found shape {}", input, count, to_string(c.dims(input)));
}

void infer(InferContext& c) {
  const auto& a = c.attrs<NBitsAttrs>();
  c.expect_type(kA, kTypes);
  c.expect_type(kB, types(ElementType::kUint8));
  c.expect_same_type(kA, kScales);
  expect_elements(c, kB, checked_mul(a.n, checked_mul(a.blocks(), a.blob())));
  expect_elements(c, kScales, checked_mul(a.n, a.blocks()));
  if (c.has_input(kZeros)) {
    c.expect_type(kZeros, kTypes | types(ElementType::kUint8));
    expect_elements(c, kZeros,
                    checked_mul(a.n, c.type(kZeros) == ElementType::kUint8 ? a.zero_bytes() : a.blocks()));
  }
  if (c.has_input(kGroups)) {
    c.expect_type(kGroups, types(ElementType::kInt32));
    if (c.ranked(kGroups)) {
      const Dim found = product(c.dims(kGroups));
      if (found.is_constant() && found.value() != a.k && found.value() != a.blocks() * a.block)
        c.reject("input {}: expected {} elements, found shape {}", kGroups, a.k, to_string(c.dims(kGroups)));
    }
  }
  if (c.has_input(kBias)) {
    c.expect_same_type(kA, kBias);
    expect_elements(c, kBias, a.n);
  }
  if (!c.ranked(kA)) return c.set_unranked_output(0, c.type(kA));
  if (c.rank(kA) == 0) c.reject("input 0: expected rank 1 or more, found a scalar");
  std::vector<Dim> dims(c.dims(kA).begin(), c.dims(kA).end());
  if (dims.back().is_constant() && dims.back().value() != a.k)
    c.reject("input 0: expected {} columns, found shape {}", a.k, to_string(c.dims(kA)));
  dims.back() = a.n;
  c.set_output(0, c.type(kA), dims);
}

// A as bytes; a bound while its rows are not known.
Dim quantized_bytes(const SelectContext& c, const NBitsAttrs& a) {
  const int64_t row = kernels::NBitsPanelsScratch::row_bytes(matrix_of(a));
  if (!c.is_concrete()) return product(c.dims(kA)) * Dim(ceil_div(row, a.k));
  return checked_mul(row, product(c.dims(kA)).value() / a.k);
}

// A as bfloat16, in whole tiles of rows; a bound while its rows are not known.
Dim rounded_bytes(const SelectContext& c, const NBitsAttrs& a) {
  const int64_t row = kernels::NBitsTilesScratch::row_bytes(a.k);
  constexpr int64_t kTogether = kernels::NBitsTilesScratch::kRowsTogether;
  if (!c.is_concrete()) return product(c.dims(kA)) * Dim(4) + Dim(checked_mul(row, kTogether));
  return checked_mul(row, round_up(product(c.dims(kA)).value() / a.k, kTogether));
}

const void* select(SelectContext& c) {
  const auto& a = c.attrs<NBitsAttrs>();
  auto* choice = c.make<NBitsChoice>();
  choice->panel = std::min<int64_t>(a.n, kernels::packed_b_format());
  const auto aligned = [](int64_t bytes) { return round_up(bytes, SelectContext::kScratchAlignment); };
  choice->packed_in = aligned(checked_mul(a.k, choice->panel * 4));
  choice->working_in =
      choice->packed_in + aligned(static_cast<int64_t>(kernels::packed_b_bytes(a.k, choice->panel)));
  choice->task_bytes =
      choice->working_in + aligned(static_cast<int64_t>(kernels::gemm_most_scratch_bytes(a.k, 1)));
  if (a.level == kBytesLevel && kernels::nbits_has_bytes(static_cast<int>(a.bits)))
    choice->form = kernels::NBitsForm::kBytes;
  choice->tiles = a.level >= kBfloat16Level && kernels::nbits_has_tiles() && !c.has_input(kGroups) &&
                  a.k >= 32 && c.ranked(kA);
  if (choice->tiles) {
    choice->panel = kernels::NBitsTilesScratch::kRowsTogether;
    choice->task_bytes = aligned(checked_mul(kernels::NBitsTilesScratch::task_bytes(1), a.k + 31));
  }
  choice->panels =
      !choice->tiles && choice->form == kernels::NBitsForm::kBytes && !c.has_input(kGroups) && c.ranked(kA);
  if (choice->panels) {
    choice->panel = kernels::NBitsPanelsScratch::kColumns;
    choice->task_bytes = aligned(kernels::NBitsPanelsScratch::task_bytes(matrix_of(a)));
  }
  if (!c.has_input(kGroups))
    choice->few_rows = choice->form == kernels::NBitsForm::kBytes ? kFewRowsInBytes : kFewRows;
  int64_t most_rows = choice->few_rows, tasks_bytes = checked_mul(choice->task_bytes, int64_t{c.threads});
  if (c.is_concrete()) {
    const int64_t rows = product(c.dims(kA)).value() / a.k;
    most_rows = std::min(most_rows, rows);
    if (rows <= choice->few_rows) tasks_bytes = 0, choice->tiles = choice->panels = false;
  }
  if (choice->tiles) choice->rounded_at = c.scratch(rounded_bytes(c, a));
  if (choice->panels) choice->rounded_at = c.scratch(quantized_bytes(c, a));
  const int64_t arranged = checked_mul(kernels::nbits_row_bytes(matrix_of(a), choice->form), most_rows);
  choice->tasks_at = c.scratch(std::max(tasks_bytes, arranged));
  if (c.type(kScales) != ElementType::kFloat) choice->scales_at = c.scratch(a.n * a.blocks() * 4);
  if (c.has_input(kZeros) && c.type(kZeros) != ElementType::kUint8 && c.type(kZeros) != ElementType::kFloat)
    choice->zeros_at = c.scratch(a.n * a.blocks() * 4);
  if (c.type(kA) == ElementType::kFloat || !c.ranked(kA)) return choice;
  choice->a_at = c.scratch(product(c.dims(kA)) * Dim(4));
  choice->y_at = c.scratch(product(c.output(0).type.dims) * Dim(4));
  choice->bias_at = c.scratch(a.n * 4);
  return choice;
}

class NBitsRun {
 public:
  explicit NBitsRun(const RunContext& c)
      : c_(c), a_(c.attrs<NBitsAttrs>()), choice_(c.choice<NBitsChoice>()) {}

  void run() {
    const int64_t rows = c_.inputs[kA].elements() / a_.k;
    if (rows == 0) return;
    if (c_.has_input(kGroups)) check_groups();
    const float* left = wide(kA, choice_.a_at);
    const float* bias = c_.has_input(kBias) ? wide(kBias, choice_.bias_at) : nullptr;
    const TensorView& y = c_.outputs[0];
    float* to = y.type == ElementType::kFloat ? y.as<float>() : c_.scratch_as<float>(choice_.y_at);
    if (rows <= choice_.few_rows) {
      multiply_few(left, rows, bias, to);
    } else if (choice_.tiles) {
      multiply_tiles(left, rows, bias, to);
    } else if (choice_.panels) {
      multiply_panels(left, rows, bias, to);
    } else {
      multiply_many(left, rows, bias, to);
    }
    if (to != y.as<float>()) kernels::convert(ElementType::kFloat, to, y.type, y.data, y.elements());
  }

 private:
  kernels::NBitsMatrix raw_matrix() const {
    kernels::NBitsMatrix matrix = matrix_of(a_);
    matrix.data = c_.inputs[kB].as<uint8_t>();
    matrix.scales = wide(kScales, choice_.scales_at);
    if (c_.has_input(kZeros) && c_.inputs[kZeros].type == ElementType::kUint8) {
      matrix.zeros = c_.inputs[kZeros].as<uint8_t>();
    } else if (c_.has_input(kZeros)) {
      matrix.real_zeros = wide(kZeros, choice_.zeros_at);
    }
    return matrix;
  }

  void multiply_few(const float* left, int64_t rows, const float* bias, float* to) const {
    const kernels::NBitsMatrix matrix = raw_matrix();
    std::byte* arranged = c_.scratch + choice_.tasks_at;
    kernels::nbits_arrange(matrix, choice_.form, left, a_.k, rows, arranged);
    const kernels::NBitsRows problem = {arranged, rows, bias, to, a_.n};
    constexpr int64_t kTogether = 16;
    const int64_t groups = ceil_div(a_.n, kTogether);
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t task) {
      const auto column = [&](int64_t t) { return std::min(groups * t / c_.threads * kTogether, a_.n); };
      kernels::nbits_dot(matrix, choice_.form, problem, column(task), column(task + 1));
    });
  }

  void multiply_many(const float* left, int64_t rows, const float* bias, float* to) const {
    const int64_t panels = ceil_div(a_.n, choice_.panel);
    const kernels::NBitsMatrix matrix = raw_matrix();
    kernels::parallel_for(c_.threads, c_.threads, [&](int64_t task) {
      std::byte* own = c_.scratch + choice_.tasks_at + task * choice_.task_bytes;
      for (int64_t p = panels * task / c_.threads; p < panels * (task + 1) / c_.threads; ++p)
        multiply(matrix, left, rows, p * choice_.panel, bias, to, own);
    });
  }

  void multiply_tiles(const float* left, int64_t rows, const float* bias, float* to) const {
    const int64_t panels = ceil_div(a_.n, choice_.panel), tasks = c_.threads;
    const kernels::NBitsMatrix matrix = raw_matrix();
    std::byte* rounded = c_.scratch + choice_.rounded_at;
    kernels::parallel_for(c_.threads, tasks, [&](int64_t task) {
      kernels::nbits_round_rows(a_.k, left, rows * task / tasks, rows * (task + 1) / tasks, rounded);
    });
    kernels::parallel_for(c_.threads, tasks, [&](int64_t task) {
      const auto column = [&](int64_t t) { return std::min(panels * t / tasks * choice_.panel, a_.n); };
      kernels::nbits_multiply_tiles(matrix, rounded, rows, bias, to, a_.n, column(task), column(task + 1),
                                    c_.scratch + choice_.tasks_at + task * choice_.task_bytes);
    });
  }

  void multiply_panels(const float* left, int64_t rows, const float* bias, float* to) const {
    const int64_t panels = ceil_div(a_.n, choice_.panel), tasks = c_.threads;
    const kernels::NBitsMatrix matrix = raw_matrix();
    std::byte* quantized = c_.scratch + choice_.rounded_at;
    kernels::parallel_for(c_.threads, tasks, [&](int64_t task) {
      kernels::nbits_quantize_rows(matrix, left, rows * task / tasks, rows * (task + 1) / tasks, quantized);
    });
    kernels::parallel_for(c_.threads, tasks, [&](int64_t task) {
      const auto column = [&](int64_t t) { return std::min(panels * t / tasks * choice_.panel, a_.n); };
      kernels::nbits_multiply_panels(matrix, quantized, rows, bias, to, a_.n, column(task), column(task + 1),
                                     c_.scratch + choice_.tasks_at + task * choice_.task_bytes);
    });
  }

  const float* wide(size_t input, int64_t at) const {
    const TensorView& view = c_.inputs[input];
    if (view.type == ElementType::kFloat) return view.as<float>();
    kernels::convert(view.type, view.data, ElementType::kFloat, c_.scratch + at, view.elements());
    return c_.scratch_as<float>(at);
  }

  void check_groups() const {
    const int32_t* groups = c_.inputs[kGroups].as<int32_t>();
    for (int64_t i = 0; i < a_.k; ++i) {
      if (groups[i] < 0 || groups[i] >= a_.blocks())
        fail(ErrorCode::kInvalidArgument, "{}: g_idx[{}] is {}, expected 0 to {}", c_.node->label(), i,
             groups[i], a_.blocks() - 1);
    }
  }

  float scale(int64_t column, int64_t block) const {
    const TensorView& scales = c_.inputs[kScales];
    const int64_t at = column * a_.blocks() + block;
    return scales.type == ElementType::kFloat ? scales.as<float>()[at] : read_as_float(scales, at);
  }
  float zero(int64_t column, int64_t block) const {
    if (!c_.has_input(kZeros)) return static_cast<float>(1 << (a_.bits - 1));
    const TensorView& zeros = c_.inputs[kZeros];
    if (zeros.type != ElementType::kUint8) return read_as_float(zeros, column * a_.blocks() + block);
    const std::byte* row = zeros.data + column * a_.zero_bytes();
    return static_cast<float>(packed_value(row, block));
  }
  unsigned packed_value(const std::byte* data, int64_t i) const {
    return a_.bits == 8 ? std::to_integer<unsigned>(data[i])
                        : packed_bits(data, static_cast<int>(a_.bits), i);
  }

  void dequantize(const kernels::NBitsMatrix& matrix, int64_t column, float* to) const {
    const std::byte* blobs = c_.inputs[kB].data + column * a_.blocks() * a_.blob();
    if (c_.has_input(kGroups)) {
      const int32_t* groups = c_.inputs[kGroups].as<int32_t>();
      for (int64_t i = 0; i < a_.k; ++i) {
        const unsigned value = packed_value(blobs + i / a_.block * a_.blob(), i % a_.block);
        to[i] = (static_cast<float>(value) - zero(column, groups[i])) * scale(column, groups[i]);
      }
      return;
    }
    kernels::dequantize_column(matrix, column, to);
  }

  void multiply(const kernels::NBitsMatrix& matrix, const float* left, int64_t rows, int64_t column,
                const float* bias, float* to, std::byte* own) const {
    const int64_t columns = std::min(choice_.panel, a_.n - column);
    auto* panel = reinterpret_cast<float*>(own);
    for (int64_t i = 0; i < columns; ++i) dequantize(matrix, column + i, panel + i * a_.k);
    kernels::pack_b(a_.k, columns, {panel, 1, a_.k}, own + choice_.packed_in);
    kernels::GemmEpilogue epilogue;
    if (bias != nullptr) epilogue.bias = bias + column;
    kernels::gemm_packed({rows, a_.k, columns}, {left, a_.k, 1}, own + choice_.packed_in, {to + column, a_.n},
                         epilogue, own + choice_.working_in, 1);
  }

  const RunContext& c_;
  const NBitsAttrs& a_;
  const NBitsChoice& choice_;
};

void run(const RunContext& c) {
  NBitsRun(c).run();
}

Cost cost(const NodeContext& c) {
  const auto& a = c.attrs<NBitsAttrs>();
  const double rows = static_cast<double>(product(c.dims(kA)).value()) / static_cast<double>(a.k);
  const double operations = 2.0 * rows * static_cast<double>(a.k) * static_cast<double>(a.n);
  return {static_cast<int64_t>(std::min(operations, 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_mat_mul_nbits = {
    .domain = kMicrosoftDomain,
    .name = "MatMulNBits",
    .inputs = {3, 6},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .cost = cost,
    .unaligned_inputs = 1u << kB,
};

}  // namespace plimsoll
