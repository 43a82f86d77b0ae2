// CumProdGradient(X, dY, axis). Along a line, element i is in every product from its own on: its gradient is
// the product of those before it, times s[i] = dY[i] + x[i + 1] * s[i + 1], so that zeros need no care.
#include "ops/cumulative.h"
#include "ops/float_blocks.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kGradient = 1, kAxis = 2;

void infer(InferContext& c) {
  c.expect_type(kX, kFloatTypes);
  c.expect_same_type(kX, kGradient);
  c.expect_type(kAxis, kIndexTypes);
  expect_same_dims(c, kX, kGradient);
  const auto length = known_length(c, kAxis);
  if (length && *length != 1) c.reject("axis: expected one number, found shape {}", to_string(c.dims(kAxis)));
  if (!c.ranked(kX)) return c.set_unranked_output(0, c.type(kX));
  if (const auto axis = c.integers(kAxis)) c.axis((*axis)[0], c.rank(kX));
  c.set_output(0, c.type(kX), c.dims(kX));
}

template <typename T>
void differentiate_line(const CumulativeAttrs& a, const T* x, const T* dy, T* dx, int64_t size,
                        int64_t inner) {
  using W = kernels::LaneOf<T>;
  const auto at = [&](int64_t i) { return (a.reverse ? size - 1 - i : i) * inner; };
  const auto load = [&](const T* from, int64_t i) { return static_cast<W>(load_element(from[at(i)])); };
  W sum = 0;
  for (int64_t i = size; i-- > 0;) {
    const W rest = i + 1 < size ? load(x, i + 1) * sum : W{0};
    sum = rest + (!a.exclusive ? load(dy, i) : i + 1 < size ? load(dy, i + 1) : W{0});
    dx[at(i)] = narrowed<T>(sum);
  }
  W before = 1;
  for (int64_t i = 0; i < size; ++i) {
    dx[at(i)] = narrowed<T>(before * static_cast<W>(load_element(dx[at(i)])));
    before *= load(x, i);
  }
}

void run(const RunContext& c) {
  const TensorView& x = c.inputs[kX];
  const auto rank = static_cast<int64_t>(x.rank());
  const int64_t given = index_at(c.inputs[kAxis], 0), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    fail(ErrorCode::kInvalidArgument, "{}: axis {} is outside [{}, {})", c.node->label(), given, -rank, rank);
  if (x.elements() == 0) return;
  const int64_t size = x.dims[static_cast<size_t>(axis)],
                inner = stride_of(x.dims, static_cast<size_t>(axis));
  visit_float(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(x.elements() < 32768 ? 1 : c.threads, x.elements() / size, [&](int64_t line) {
      const int64_t start = line / inner * size * inner + line % inner;
      differentiate_line(c.attrs<CumulativeAttrs>(), x.as<T>() + start, c.inputs[kGradient].as<T>() + start,
                         c.outputs[0].as<T>() + start, size, inner);
    });
  });
}

}  // namespace

extern const OpDef op_cum_prod_gradient = {
    .domain = kPlimsollDomain,
    .name = "CumProdGradient",
    .inputs = {3, 3},
    .attrs = cumulative_attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
