#include <algorithm>

#include "ops/feature_rows.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct VectorizerAttrs {
  std::span<const int64_t> sizes;  // columns of each input in the output; empty: as many as it has
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<VectorizerAttrs>();
  a->sizes = c.integers("inputdimensions");
  if (!a->sizes.empty() && a->sizes.size() != c.node().inputs.size())
    c.reject("attribute 'inputdimensions': expected {} sizes, one for each input, found {}",
             c.node().inputs.size(), a->sizes.size());
  for (const int64_t size : a->sizes) {
    if (size < 0 || size > (int64_t{1} << 31))
      c.reject("attribute 'inputdimensions': {} is not a size", size);
  }
  return a;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<VectorizerAttrs>();
  Dim rows = c.unknown("rows"), columns = 0;
  bool known = false;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) c.reject("input {} is missing", i);
    c.expect_type(i, kFeatureTypes);
    c.expect_rank(i, 1, InferContext::kMaxRank);
    if (!c.ranked(i)) {
      columns = columns + (a.sizes.empty() ? c.unknown("columns") : Dim(a.sizes[i]));
      continue;
    }
    const Dim own = c.rank(i) == 1 ? Dim(1) : c.dims(i)[0];
    rows = known ? unify(c, rows, own) : own;
    known = true;
    columns =
        columns + (a.sizes.empty() ? product(c.dims(i).subspan(c.rank(i) == 1 ? 0 : 1)) : Dim(a.sizes[i]));
  }
  c.set_output(0, ElementType::kFloat, std::vector<Dim>{rows, columns});
}

// Rows that are longer than their place are cut, shorter ones are filled with zeros.
template <typename T>
void copy_columns(const TensorView& x, int64_t size, float* y, int64_t rows, int64_t stride) {
  const int64_t width = rows == 0 ? 0 : x.elements() / rows;
  for (int64_t row = 0; row < rows; ++row) {
    const T* from = x.as<T>() + row * width;
    float* to = y + row * stride;
    for (int64_t i = 0; i < size; ++i) to[i] = i < width ? static_cast<float>(from[i]) : 0.f;
  }
}

void run(const RunContext& c) {
  const auto& a = c.attrs<VectorizerAttrs>();
  const int64_t rows = c.outputs[0].dims[0], stride = c.outputs[0].dims[1];
  auto* y = c.outputs[0].as<float>();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const TensorView& x = c.inputs[i];
    if ((x.rank() == 1 ? 1 : x.dims[0]) != rows)
      fail(ErrorCode::kInvalidArgument, "{}: input {} has {} rows, expected {}", c.node->label(), i,
           x.rank() == 1 ? 1 : x.dims[0], rows);
    const int64_t size = !a.sizes.empty() ? a.sizes[i]
                         : x.rank() == 1  ? x.dims[0]
                                          : count_of(x.dims.subspan(1));
    visit_numeric(x.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_arithmetic_v<T> && sizeof(T) >= 4) copy_columns<T>(x, size, y, rows, stride);
    });
    y += size;
  }
}

}  // namespace

extern const OpDef op_feature_vectorizer = {
    .domain = kMlDomain,
    .name = "FeatureVectorizer",
    .inputs = {1, kAnyNumber},
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
