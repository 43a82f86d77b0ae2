#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct ReverseAttrs {
  bool time_first = true;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<ReverseAttrs>();
  const int64_t batch = c.integer("batch_axis", 1), time = c.integer("time_axis", 0);
  if (batch < 0 || batch > 1 || time != 1 - batch)
    c.reject("batch_axis and time_axis: expected 0 and 1 or 1 and 0, found {} and {}", batch, time);
  a->time_first = time == 0;
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  c.expect_type(1, types(ElementType::kInt64));
  c.expect_rank(0, 2, InferContext::kMaxRank);
  c.expect_rank(1, 1, 1);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (c.ranked(1)) unify(c, c.dims(0)[c.attrs<ReverseAttrs>().time_first ? 1 : 0], c.dims(1)[0]);
  c.set_output(0, c.type(0), c.dims(0));
}

// copy(from, to) moves one element of one sequence.
template <typename F>
void reverse(const RunContext& c, F&& copy) {
  const bool time_first = c.attrs<ReverseAttrs>().time_first;
  const std::span<const int64_t> dims = c.inputs[0].dims;
  const int64_t steps = dims[time_first ? 0 : 1], batch = dims[time_first ? 1 : 0];
  const auto* lengths = c.inputs[1].as<int64_t>();
  for (int64_t i = 0; i < dims[0]; ++i) {
    for (int64_t j = 0; j < dims[1]; ++j) {
      const int64_t t = time_first ? i : j, b = time_first ? j : i;
      const int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
      copy(time_first ? from * batch + b : b * steps + from, i * dims[1] + j);
    }
  }
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const int64_t steps = x.dims[c.attrs<ReverseAttrs>().time_first ? 0 : 1];
  for (int64_t b = 0; b < c.inputs[1].elements(); ++b) {
    const int64_t length = c.inputs[1].as<int64_t>()[b];
    if (length < 0 || length > steps)
      fail(ErrorCode::kInvalidArgument, "{}: sequence_lens[{}] is {}, expected 0 to {}", c.node->label(), b,
           length, steps);
  }
  if (y.elements() == 0) return;
  const int64_t inner = stride_of(x.dims, 1);
  if (inner == 1) {
    return visit_width(x.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      reverse(c, [&](int64_t from, int64_t to) { y.as<T>()[to] = x.as<T>()[from]; });
    });
  }
  const int64_t bytes = inner * static_cast<int64_t>(width_of(x.type));
  reverse(c, [&](int64_t from, int64_t to) {
    std::memcpy(y.data + to * bytes, x.data + from * bytes, static_cast<size_t>(bytes));
  });
}

void gradient(GradientContext& c) {
  c.set(0,
        c.op("ReverseSequence", {c.gradient(), c.in(1)}, AttributeList(c.build.graph().arena(), c.node())));
}

}  // namespace

extern const OpDef op_reverse_sequence = {
    .name = "ReverseSequence",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
