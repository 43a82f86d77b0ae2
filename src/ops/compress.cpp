#include <cstring>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct CompressAttrs {
  bool has_axis = false;
  int64_t axis = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<CompressAttrs>();
  a->has_axis = c.has("axis");
  if (a->has_axis) a->axis = c.integer("axis");
  return a;
}

int64_t count_set(const TensorView& condition) {
  const auto* flags = condition.as<uint8_t>();
  int64_t count = 0;
  for (int64_t i = 0; i < condition.elements(); ++i) count += flags[i] != 0 ? 1 : 0;
  return count;
}

void infer(InferContext& c) {
  const auto& a = c.attrs<CompressAttrs>();
  c.expect_type(0, kAllTypes);
  c.expect_type(1, kBoolType);
  c.expect_rank(0, 1, InferContext::kMaxRank);
  c.expect_rank(1, 1, 1);
  const TensorView* condition = c.constant(1);
  const Dim count = condition != nullptr ? Dim(count_set(*condition)) : c.unknown("compress");
  if (!a.has_axis) return c.set_output(0, c.type(0), std::vector<Dim>{count});
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  dims[static_cast<size_t>(c.axis(a.axis, c.rank(0)))] = count;
  c.set_output(0, c.type(0), dims);
}

// Slices of one element.
template <typename T>
void compress_elements(const T* x, T* y, const uint8_t* flags, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (flags[i] != 0) *y++ = x[i];
  }
}

void run(const RunContext& c) {
  const TensorView &x = c.inputs[0], &y = c.outputs[0];
  const auto& a = c.attrs<CompressAttrs>();
  int64_t outer = 1, size = x.elements(), inner = 1;
  if (a.has_axis) {
    const auto axis = static_cast<size_t>(a.axis < 0 ? a.axis + static_cast<int64_t>(x.rank()) : a.axis);
    outer = count_of(x.dims.first(axis)), size = x.dims[axis], inner = stride_of(x.dims, axis);
  }
  const auto* flags = c.inputs[1].as<uint8_t>();
  for (int64_t i = size; i < c.inputs[1].elements(); ++i) {
    if (flags[i] != 0)
      fail(ErrorCode::kInvalidArgument, "{}: the condition selects slice {} of {}", c.node->label(), i, size);
  }
  if (y.elements() == 0) return;
  const int64_t length = std::min(size, c.inputs[1].elements());
  if (inner == 1) {
    const int64_t taken = y.elements() / outer;
    return visit_width(x.type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t o = 0; o < outer; ++o)
        compress_elements(x.as<T>() + o * size, y.as<T>() + o * taken, flags, length);
    });
  }
  const int64_t bytes = inner * static_cast<int64_t>(width_of(x.type));
  std::byte* to = y.data;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < length; ++i) {
      if (flags[i] == 0) continue;
      std::memcpy(to, x.data + (o * size + i) * bytes, static_cast<size_t>(bytes));
      to += bytes;
    }
  }
}

void gradient(GradientContext& c) {
  const bool whole = c.node().attribute("axis") == nullptr;
  const int64_t axis = whole ? 0 : c.node().attribute("axis")->i;
  Edge* indices = c.op("Reshape", {c.op("NonZero", {c.in(1)}), c.build.integers({-1})});
  Edge* shape = c.shape_of(c.in(0));
  Edge* lines = whole ? c.op("Reshape", {c.op("Size", {c.in(0)}), c.build.integers({1})}) : shape;
  Edge* made = c.own_op("GatherGradient", {c.gradient(), indices, lines}, c.attributes().set("axis", axis));
  c.set(0, whole ? c.op("Reshape", {made, shape}) : made);
}

}  // namespace

extern const OpDef op_compress = {
    .name = "Compress",
    .inputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
    .gradient = gradient,
};

}  // namespace plimsoll
