// Writes a stretch of a sequence into a cache, in place where the cache is not needed any more.
#include <cstring>

#include "ops/movement.h"

namespace plimsoll {
namespace {

struct ScatterAttrs {
  int64_t axis = -2;
  bool circular = false;
};

constexpr size_t kCache = 0, kUpdate = 1, kIndices = 2;

const void* attrs(AttrContext& c) {
  auto* a = c.make<ScatterAttrs>();
  a->axis = c.integer("axis", -2);
  const std::string_view mode = c.text("mode", "linear");
  a->circular = mode == "circular";
  if (mode != "linear" && !a->circular)
    c.reject("attribute 'mode': expected linear or circular, found '{}'", mode);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(kCache, kViewTypes);
  c.expect_same_type(kCache, kUpdate);
  if (c.has_input(kIndices)) {
    c.expect_type(kIndices, types(ElementType::kInt64));
    c.expect_rank(kIndices, 1, 1);
  }
  if (!c.ranked(kCache)) return c.set_unranked_output(0, c.type(kCache));
  c.expect_rank(kCache, 2, InferContext::kMaxRank);
  c.expect_rank(kUpdate, c.rank(kCache), c.rank(kCache));
  const auto axis = static_cast<size_t>(c.axis(c.attrs<ScatterAttrs>().axis, c.rank(kCache)));
  if (axis == 0) c.reject("axis 0 is the batch, not the sequence");
  const auto cache = c.dims(kCache);
  if (c.ranked(kUpdate)) {
    const auto update = c.dims(kUpdate);
    for (size_t i = 0; i < cache.size(); ++i) {
      if (i != axis) unify(c, cache[i], update[i]);
    }
    if (cache[axis].is_constant() && update[axis].is_constant() && update[axis].value() > cache[axis].value())
      c.reject("an update of {} does not fit a cache of {}", update[axis].value(), cache[axis].value());
  }
  if (c.has_input(kIndices) && c.ranked(kIndices)) unify(c, cache[0], c.dims(kIndices)[0]);
  c.set_output(0, c.type(kCache), cache);
}

void alias(AliasContext& c) {
  c.overwrite(kCache);
}

void copy_elements(ElementType type, std::byte* to, int64_t to_at, const std::byte* from, int64_t from_at,
                   int64_t count) {
  if (const int bits = element_bits(type); bits < 8) {
    kernels::CopyShape shape;
    shape.add(count, 1, 1);
    return kernels::strided_copy_bits(to, to_at, from, from_at, shape, bits);
  }
  const auto width = static_cast<int64_t>(width_of(type));
  std::memcpy(to + to_at * width, from + from_at * width, static_cast<size_t>(count * width));
}

int64_t first_slot(const RunContext& c, int64_t batch, int64_t length, int64_t capacity) {
  if (!c.has_input(kIndices)) return 0;
  const int64_t index = c.inputs[kIndices].as<int64_t>()[batch];
  if (c.attrs<ScatterAttrs>().circular) return ((index % capacity) + capacity) % capacity;
  if (index < 0 || index > capacity - length)
    fail(ErrorCode::kInvalidArgument, "{}: write_indices[{}] is {}, expected 0 to {} for {} of {} places",
         c.node->label(), batch, index, capacity - length, length, capacity);
  return index;
}

void run(const RunContext& c) {
  const TensorView &cache = c.inputs[kCache], &update = c.inputs[kUpdate], &y = c.outputs[0];
  kernels::copy_bytes(y.data, cache.data, y.bytes());
  if (update.elements() == 0) return;
  const int64_t signed_axis = c.attrs<ScatterAttrs>().axis;
  const auto axis =
      static_cast<size_t>(signed_axis < 0 ? signed_axis + static_cast<int64_t>(cache.rank()) : signed_axis);
  const int64_t capacity = cache.dims[axis], length = update.dims[axis], inner = stride_of(cache.dims, axis);
  const int64_t prefixes = count_of(cache.dims.subspan(1, axis - 1));
  for (int64_t b = 0; b < cache.dims[0]; ++b) {
    const int64_t first = first_slot(c, b, length, capacity);
    const int64_t before_end = std::min(length, capacity - first);
    for (int64_t p = b * prefixes; p < (b + 1) * prefixes; ++p) {
      copy_elements(y.type, y.data, (p * capacity + first) * inner, update.data, p * length * inner,
                    before_end * inner);
      copy_elements(y.type, y.data, p * capacity * inner, update.data, (p * length + before_end) * inner,
                    (length - before_end) * inner);
    }
  }
}

}  // namespace

extern const OpDef op_tensor_scatter = {
    .name = "TensorScatter",
    .inputs = {2, 3},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
};

}  // namespace plimsoll
