#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

constexpr int kRepeatsPerAxis = 6;  // the first opset whose input lists a number for every axis

const void* attrs(AttrContext& c) {
  const size_t inputs = c.opset() < kRepeatsPerAxis ? 3 : 2;
  if (c.node().inputs.size() != inputs)
    c.reject("expected {} inputs, found {}", inputs, c.node().inputs.size());
  return nullptr;
}

// Repetitions of every axis; nullopt if they are not known.
std::optional<std::vector<Dim>> known_repeats(InferContext& c) {
  const auto values = c.values(1);
  if (!values) return std::nullopt;
  if (c.opset() >= kRepeatsPerAxis) {
    if (values->size() != c.rank(0)) c.reject("expected {} repeats, found {}", c.rank(0), values->size());
    return std::vector<Dim>(values->begin(), values->end());
  }
  const auto axis = c.integers(2);
  if (!axis) return std::nullopt;
  if (values->size() != 1 || axis->size() != 1) c.reject("expected one number of tiles and one axis");
  std::vector<Dim> repeats(c.rank(0), 1);
  repeats[static_cast<size_t>(c.axis((*axis)[0], c.rank(0)))] = (*values)[0];
  return repeats;
}

void infer(InferContext& c) {
  c.expect_type(0, kAllTypes);
  for (size_t i = 1; i < c.input_count(); ++i) {
    c.expect_type(i, types(ElementType::kInt64));
    known_length(c, i);
  }
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  const auto repeats = known_repeats(c);
  if (!repeats) return c.set_output(0, c.type(0), unknown_dims(c, c.rank(0)));
  std::vector<Dim> dims;
  for (size_t i = 0; i < c.rank(0); ++i) {
    const Dim times = (*repeats)[i];
    if (times.is_constant() && times.value() < 0) c.reject("{} repeats of axis {}", times.value(), i);
    dims.push_back(c.dims(0)[i] * times);
  }
  c.set_output(0, c.type(0), dims);
  const auto values = c.values(0);
  if (!values || dims.size() != 1 || !dims[0].is_constant()) return;
  if (dims[0].value() > static_cast<int64_t>(InferContext::kMaxKnownValues)) return;
  std::vector<Dim> repeated;
  for (int64_t i = 0; i < dims[0].value(); ++i)
    repeated.push_back((*values)[static_cast<size_t>(i) % values->size()]);
  c.set_values(0, repeated);
}

void run(const RunContext& c) {
  const TensorView& in = c.inputs[0];
  const TensorView& out = c.outputs[0];
  if (out.elements() == 0) return;
  kernels::CopyShape shape;
  int64_t source = 1, target = 1;
  for (size_t i = in.rank(); i-- > 0;) {
    shape.add(in.dims[i], source, target);
    shape.add(out.dims[i] / in.dims[i], 0, target * in.dims[i]);
    source *= in.dims[i];
    target *= out.dims[i];
  }
  kernels::strided_copy(out.data, in.data, shape, width_of(in.type), c.threads);
}

void gradient(GradientContext& c) {
  if (!c.ranked(0) || c.opset() < kRepeatsPerAxis)
    c.reject("its gradient needs the rank of its input (opset 6)");
  // [r0, d0, r1, d1, ...], of which the repetitions are summed.
  Edge* last = c.build.integers({1});
  Edge* pairs =
      c.op("Concat", {c.op("Unsqueeze", {c.in(1), last}), c.op("Unsqueeze", {c.shape_of(c.in(0)), last})},
           c.attributes().set("axis", int64_t{1}));
  Edge* shape = c.op("Reshape", {pairs, c.build.integers({-1})});
  std::vector<int64_t> repeats;
  for (size_t i = 0; i < c.rank(0); ++i) repeats.push_back(static_cast<int64_t>(2 * i));
  Edge* cut = c.op("Reshape", {c.gradient(), shape}, c.attributes().set("allowzero", int64_t{1}));
  c.set(0, c.op("ReduceSum", {cut, c.build.integers(repeats)},
                c.attributes().set("keepdims", int64_t{0}).set("noop_with_empty_axes", int64_t{1})));
}

}  // namespace

extern const OpDef op_tile = {
    .name = "Tile",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
