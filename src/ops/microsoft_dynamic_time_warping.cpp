// The cheapest way through a matrix of costs, from its first element to its last, by steps to the next row,
// the next column, or both: what aligns words with sound.
#include <algorithm>
#include <limits>

#include "ops/microsoft_decomposed.h"

namespace plimsoll {
namespace {

enum Step : uint8_t { kBoth, kRow, kColumn };

// A border of one row and one column lies before the matrix.
struct Warping {
  const float* costs = nullptr;
  int64_t rows = 0, cols = 0;
  uint8_t* steps = nullptr;  // by which an element was reached
  float* sums = nullptr;     // of the row above, then of this one

  static Dim step_bytes(Dim rows, Dim cols) { return (rows + Dim(1)) * (cols + Dim(1)); }
  static Dim sum_bytes(Dim cols) { return (cols + Dim(1)) * Dim(int64_t{2 * sizeof(float)}); }

  uint8_t& step(int64_t r, int64_t c) const { return steps[r * (cols + 1) + c]; }

  void find() const {
    float *above = sums, *here = sums + cols + 1;
    std::fill(above, above + cols + 1, std::numeric_limits<float>::infinity());
    std::fill(steps, steps + cols + 1, kColumn);
    above[0] = 0;
    for (int64_t r = 1; r <= rows; ++r, std::swap(above, here)) {
      here[0] = std::numeric_limits<float>::infinity();
      step(r, 0) = kRow;
      for (int64_t c = 1; c <= cols; ++c) {
        const float both = above[c - 1], row = above[c], column = here[c - 1];
        const Step chosen = both < row && both < column ? kBoth : row < both && row < column ? kRow : kColumn;
        const float before[] = {both, row, column};
        here[c] = before[chosen] + costs[(r - 1) * cols + c - 1];
        step(r, c) = chosen;
      }
    }
  }

  // f(row, column) from the last element back to the first.
  template <typename F>
  void walk_back(F&& f) const {
    for (int64_t r = rows, c = cols; r > 0 || c > 0;) {
      f(r - 1, c - 1);
      const uint8_t taken = step(r, c);
      if (taken != kColumn) --r;
      if (taken != kRow) --c;
    }
  }
};

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kFloat));
  c.expect_rank(0, 3, 3);
  if (c.ranked(0) && c.dims(0)[0].is_constant() && !(c.dims(0)[0] == Dim(1)))
    c.reject("input 0: expected one matrix, found {}", c.dims(0)[0].value());
  if (c.ranked(0) && (c.dims(0)[1] == Dim(0) || c.dims(0)[2] == Dim(0)))
    c.reject("input 0: expected rows and columns, found shape {}", to_string(c.dims(0)));
  const TensorView* costs = c.constant(0);
  if (costs == nullptr)
    return c.set_output(0, ElementType::kInt32, std::vector<Dim>{Dim(2), c.unknown("path")});
  Warping warping{costs->as<float>(), costs->dims[1], costs->dims[2]};
  const Dim rows = warping.rows, cols = warping.cols;
  warping.steps =
      c.arena().array<uint8_t>(static_cast<size_t>(Warping::step_bytes(rows, cols).value())).data();
  warping.sums = c.arena().array<float>(static_cast<size_t>(2 * (warping.cols + 1))).data();
  warping.find();
  int64_t length = 0;
  warping.walk_back([&](int64_t, int64_t) { ++length; });
  c.set_output(0, ElementType::kInt32, std::vector<Dim>{Dim(2), Dim(length)});
}

struct WarpingChoice {
  int64_t steps_at = 0, sums_at = 0;
};

const void* select(SelectContext& c) {
  auto* choice = c.make<WarpingChoice>();
  if (!c.ranked(0)) return choice;
  choice->sums_at = c.scratch(Warping::sum_bytes(c.dims(0)[2]));
  choice->steps_at = c.scratch(Warping::step_bytes(c.dims(0)[1], c.dims(0)[2]));
  return choice;
}

void run(const RunContext& c) {
  const auto& choice = c.choice<WarpingChoice>();
  const TensorView& costs = c.inputs[0];
  const Warping warping{costs.as<float>(), costs.dims[1], costs.dims[2],
                        c.scratch_as<uint8_t>(choice.steps_at), c.scratch_as<float>(choice.sums_at)};
  warping.find();
  const int64_t length = c.outputs[0].dims[1];
  int32_t* last = c.outputs[0].as<int32_t>() + length;
  warping.walk_back([&](int64_t row, int64_t column) {
    --last;
    last[0] = static_cast<int32_t>(row);
    last[length] = static_cast<int32_t>(column);
  });
}

}  // namespace

extern const OpDef op_microsoft_dynamic_time_warping = {
    .domain = kMicrosoftDomain, .name = "DynamicTimeWarping", .infer = infer, .select = select, .run = run};

}  // namespace plimsoll
