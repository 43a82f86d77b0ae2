#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"
#include "ops/window.h"

namespace plimsoll {
namespace {

constexpr size_t kX = 0, kIndices = 1, kShape = 2;

const void* attrs(AttrContext& c) {
  auto* a = c.make<WindowAttrs>();
  read_window_lists(c, *a);
  if (a->kernel.empty()) c.reject("attribute 'kernel_shape' is missing");
  return a;
}

// What the pooling took its maxima from: indices count its elements.
template <typename D>
std::vector<D> unpooled(const WindowAttrs& w, std::span<const D> x) {
  std::vector<D> dims(x.begin(), x.end());
  for (size_t i = 0; i + 2 < x.size(); ++i)
    dims[i + 2] = (x[i + 2] - D(1)) * D(w.stride(i)) + D(w.kernel[i] - w.pad_begin(i) - w.pad_end(i));
  return dims;
}

void infer(InferContext& c) {
  const auto& w = c.attrs<WindowAttrs>();
  c.expect_type(kX, kFloatTypes);
  c.expect_type(kIndices, types(ElementType::kInt64));
  if (c.has_input(kShape)) c.expect_type(kShape, types(ElementType::kInt64));
  if (!c.ranked(kX)) return c.set_unranked_output(0, c.type(kX));
  check_window(c, w, c.rank(kX));
  if (c.ranked(kIndices)) {
    c.expect_rank(kIndices, c.rank(kX), c.rank(kX));
    for (size_t i = 0; i < c.rank(kX); ++i) unify(c, c.dims(kX)[i], c.dims(kIndices)[i]);
  }
  const std::vector<Dim> least = unpooled<Dim>(w, c.dims(kX));
  if (!c.has_input(kShape)) return c.set_output(0, c.type(kX), least);
  const auto length = known_length(c, kShape);
  if (length && *length != c.rank(kX))
    c.reject("output_shape: expected {} elements, found {}", c.rank(kX), *length);
  const auto shape = c.values(kShape);
  if (!shape) return c.set_output(0, c.type(kX), unknown_dims(c, c.rank(kX)));
  for (size_t i = 0; i < least.size(); ++i) {
    if ((*shape)[i].is_constant() && least[i].is_constant() && (*shape)[i].value() < least[i].value())
      c.reject("output_shape {} is smaller than what was pooled, {}", to_string(*shape), to_string(least));
  }
  c.set_output(0, c.type(kX), *shape);
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[kX], &y = c.outputs[0];
  std::memset(y.data, 0, static_cast<size_t>(y.bytes()));
  const size_t rank = x.rank();
  const auto& w = c.attrs<WindowAttrs>();
  int64_t from[2 + kMaxSpatial], elements = 1;
  bool same = true;
  for (size_t i = 0; i < rank; ++i) {
    from[i] =
        i < 2 ? x.dims[i]
              : (x.dims[i] - 1) * w.stride(i - 2) + w.kernel[i - 2] - w.pad_begin(i - 2) - w.pad_end(i - 2);
    elements *= from[i];
    same = same && from[i] == y.dims[i];
  }
  const auto* indices = c.inputs[kIndices].as<int64_t>();
  const int64_t count = x.elements();
  visit_width(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t k = 0; k < count; ++k) {
      int64_t index = indices[k];
      if (index < 0 || index >= elements)
        fail(ErrorCode::kInvalidArgument, "{}: index {} is outside [0, {})", c.node->label(), index,
             elements);
      if (!same) {
        int64_t to = 0, stride = 1;
        for (size_t i = rank; i-- > 0;) {
          to += index % from[i] * stride;
          index /= from[i];
          stride *= y.dims[i];
        }
        index = to;
      }
      y.as<T>()[index] = x.as<T>()[k];
    }
  });
}

// Back from where each element went. Indices count the elements of what was pooled, which lies in the corner
// of a larger output.
void gradient(GradientContext& c) {
  Edge* dy = c.gradient();
  if (c.has_input(kShape)) {
    if (!c.input(kX).is_concrete()) c.reject("its gradient needs the shape of its input");
    std::vector<int64_t> ends, starts(c.rank(kX), 0);
    for (Dim d : unpooled<Dim>(c.attrs<WindowAttrs>(), c.dims(kX))) ends.push_back(d.value());
    dy = c.op("Slice", {dy, c.build.integers(starts), c.build.integers(ends)});
  }
  Edge* all = c.build.integers({-1});
  Edge* found = c.op("GatherElements", {c.op("Reshape", {dy, all}), c.op("Reshape", {c.in(kIndices), all})});
  c.set(kX, c.op("Reshape", {found, c.shape_of(c.in(kX))}));
}

}  // namespace

extern const OpDef op_max_unpool = {
    .name = "MaxUnpool",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
