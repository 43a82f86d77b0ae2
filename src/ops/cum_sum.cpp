#include "ops/movement.h"

namespace plimsoll {
namespace {

struct Attrs {
  bool exclusive = false;
  bool reverse = false;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->exclusive = c.integer("exclusive", 0) != 0;
  a->reverse = c.integer("reverse", 0) != 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kNumericTypes);
  c.expect_type(1, kIndexTypes);
  const auto length = known_length(c, 1);
  if (length && *length != 1) c.reject("axis: expected one number, found shape {}", to_string(c.dims(1)));
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (const auto axis = c.integers(1)) c.axis((*axis)[0], c.rank(0));
  c.set_output(0, c.type(0), c.dims(0));
}

void alias(AliasContext& c) {
  if (!c.attrs<Attrs>().exclusive) c.overwrite(0);
}

template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else if constexpr (std::is_same_v<T, double>) {
    return a + b;
  } else {
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
  }
}

// Sums along an axis of `size` steps of `inner` elements.
template <typename T>
void sum_slices(const T* in, T* out, int64_t size, int64_t inner, const Attrs& a) {
  for (int64_t step = 0; step < size; ++step) {
    const int64_t here = (a.reverse ? size - 1 - step : step) * inner;
    const int64_t before = a.reverse ? here + inner : here - inner;
    for (int64_t i = 0; i < inner; ++i) {
      if (step == 0) {
        out[here + i] = a.exclusive ? T{} : in[here + i];
      } else {
        out[here + i] = plus(out[before + i], in[(a.exclusive ? before : here) + i]);
      }
    }
  }
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const auto rank = static_cast<int64_t>(in.rank());
  const int64_t given = index_at(c.inputs[1], 0), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank)
    fail(ErrorCode::kInvalidArgument, "{}: axis {} is outside [{}, {})", c.node->label(), given, -rank, rank);
  if (in.elements() == 0) return;
  const int64_t size = in.dims[static_cast<size_t>(axis)],
                inner = stride_of(in.dims, static_cast<size_t>(axis));
  visit_numeric(in.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t at = 0; at < in.elements(); at += size * inner)
      sum_slices(in.as<T>() + at, c.outputs[0].as<T>() + at, size, inner, c.attrs<Attrs>());
  });
}

}  // namespace

extern const OpDef op_cum_sum = {
    .name = "CumSum",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
