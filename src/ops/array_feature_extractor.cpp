#include "ops/feature_rows.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

void infer(InferContext& c) {
  c.expect_type(0, kFeatureTypes | types(ElementType::kString));
  c.expect_type(1, types(ElementType::kInt64));
  c.expect_rank(0, 1, InferContext::kMaxRank);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  dims.back() = c.ranked(1) ? product(c.dims(1)) : c.unknown("features");
  if (dims.size() == 1) dims.insert(dims.begin(), Dim(1));  // a vector is one row
  c.set_output(0, c.type(0), dims);
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &indices = c.inputs[1];
  const int64_t width = x.dims.back(), taken = indices.elements();
  const auto* index = indices.as<int64_t>();
  for (int64_t i = 0; i < taken; ++i) {
    if (index[i] < 0 || index[i] >= width)
      fail(ErrorCode::kInvalidArgument, "{}: index {} is outside [0, {})", c.node->label(), index[i], width);
  }
  const int64_t rows = count_of(x.dims.first(x.rank() - 1));
  visit_width(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* y = c.outputs[0].as<T>();
    for (int64_t row = 0; row < rows; ++row) {
      const T* from = x.as<T>() + row * width;
      for (int64_t i = 0; i < taken; ++i) *y++ = from[index[i]];
    }
  });
}

}  // namespace

extern const OpDef op_array_feature_extractor = {
    .domain = kMlDomain,
    .name = "ArrayFeatureExtractor",
    .inputs = {2, 2},
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
