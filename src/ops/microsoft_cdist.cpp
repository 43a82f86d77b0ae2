// The distance of every row of A from every row of B.
#include <cmath>

#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct CdistAttrs {
  bool squared = true;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CdistAttrs>();
  const std::string_view metric = c.text("metric", "sqeuclidean");
  a->squared = metric == "sqeuclidean";
  if (!a->squared && metric != "euclidean")
    fail(ErrorCode::kNotImplemented, "{}: metric '{}'; there are euclidean and sqeuclidean", c.node().label(),
         metric);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kFloat, ElementType::kDouble));
  c.expect_same_type(0, 1);
  c.expect_rank(0, 2, 2);
  c.expect_rank(1, 2, 2);
  if (!c.ranked(0) || !c.ranked(1)) return c.set_unranked_output(0, c.type(0));
  unify(c, c.dims(0)[1], c.dims(1)[1]);
  c.set_output(0, c.type(0), std::vector<Dim>{c.dims(0)[0], c.dims(1)[0]});
}

template <typename T>
T squared_distance(const T* a, const T* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) lanes[k] += (a[i + k] - b[i + k]) * (a[i + k] - b[i + k]);
  }
  T sum = 0;
  for (; i < count; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  for (T lane : lanes) sum += lane;
  return sum;
}

template <typename T>
void run_typed(const RunContext& c) {
  const bool squared = c.attrs<CdistAttrs>().squared;
  const int64_t width = c.inputs[0].dims[1], columns = c.inputs[1].dims[0];
  kernels::parallel_for(c.threads, c.inputs[0].dims[0], [&](int64_t row) {
    const T* a = c.inputs[0].as<T>() + row * width;
    T* y = c.outputs[0].as<T>() + row * columns;
    for (int64_t j = 0; j < columns; ++j) {
      const T distance = squared_distance(a, c.inputs[1].as<T>() + j * width, width);
      y[j] = squared ? distance : std::sqrt(distance);
    }
  });
}

void run(const RunContext& c) {
  c.inputs[0].type == ElementType::kFloat ? run_typed<float>(c) : run_typed<double>(c);
}

Cost cost(const NodeContext& c) {
  const Dim pairs = c.dims(0)[0] * c.dims(1)[0];
  return {checked_mul(3, (pairs * c.dims(0)[1]).value()), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_microsoft_cdist = {.domain = kMicrosoftDomain,
                                         .name = "CDist",
                                         .inputs = {2, 2},
                                         .attrs = attrs,
                                         .infer = infer,
                                         .run = run,
                                         .cost = cost};

}  // namespace plimsoll
