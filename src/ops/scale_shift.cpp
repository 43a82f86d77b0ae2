// ScaleShift(X, scale, shift, Z) = activation(scale * X + shift + Z): what passes make of BatchNormalization,
// and of Mul and Add by constants per channel. scale and shift have one element, or one per channel: the
// last dimension of X if `channels_last`, else dimension 1. Z, which may be absent, has the shape of X. X and
// Z are floats of 16 or 32 bits, scale and shift of 32.
#include "kernels/scale_shift.h"

#include <algorithm>

#include "graph/op_def.h"
#include "kernels/parallel.h"
#include "ops/activation_attr.h"
#include "ops/layout.h"
#include "ops/region.h"

namespace plimsoll {
namespace {

struct Attrs {
  bool channels_last = false;
  kernels::Activation activation;
};

const void* attrs(AttrContext& c) {
  Attrs* a = c.make<Attrs>();
  a->channels_last = c.integer("channels_last", 0) != 0;
  a->activation = read_activation(c);
  return a;
}

void infer(InferContext& c) {
  c.expect_type(0, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16));
  for (size_t i = 1; i < 3; ++i) c.expect_type(i, types(ElementType::kFloat));
  const bool last = c.attrs<Attrs>().channels_last;
  for (size_t i = 1; i < 3; ++i) {
    c.expect_rank(i, 1, 1);
    if (!c.ranked(0) || !c.ranked(i) || c.dims(i)[0] == Dim(1)) continue;
    c.expect_rank(0, last ? 1 : 2, SIZE_MAX);
    const Dim channels = c.dims(0)[last ? c.rank(0) - 1 : 1];
    if (c.dims(i)[0].is_constant() && channels.is_constant() && !(channels == c.dims(i)[0]))
      c.reject("input {}: expected one number, or one per channel of shape {}, found {}", i,
               to_string(c.dims(0)), to_string(c.dims(i)));
  }
  if (c.has_input(3)) {
    c.expect_same_type(0, 3);
    if (c.ranked(0)) c.expect_rank(3, c.rank(0), c.rank(0));
    for (size_t i = 0; c.ranked(0) && c.ranked(3) && i < c.rank(0); ++i) {
      if (c.dims(0)[i].is_constant() && c.dims(3)[i].is_constant() && !(c.dims(0)[i] == c.dims(3)[i]))
        c.reject("input 3: expected shape {}, found {}", to_string(c.dims(0)), to_string(c.dims(3)));
    }
  }
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  c.set_output(0, c.type(0), c.dims(0));
}

void alias(AliasContext& c) {
  c.overwrite(0);
  if (c.has_input(3)) c.overwrite(3);
}

int64_t size_of(std::span<const int64_t> dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

// Rows of channels.
template <typename T>
void run_rows(const RunContext& c, kernels::ScaleShiftRows rows, int64_t width) {
  const int64_t total = c.inputs[0].elements();
  if (total == 0) return;
  constexpr int64_t kChunkElements = 16384;
  const int64_t all = total / width;
  const int64_t per_chunk = std::max<int64_t>(1, kChunkElements / width);
  rows.width = width;
  const T* x = c.inputs[0].as<T>();
  const T* z = c.has_input(3) ? c.inputs[3].as<T>() : nullptr;
  T* y = c.outputs[0].as<T>();
  kernels::parallel_for(total > 2 * kChunkElements ? c.threads : 1, (all + per_chunk - 1) / per_chunk,
                        [&](int64_t chunk) {
                          const int64_t first = chunk * per_chunk;
                          const int64_t at = first * width;
                          kernels::ScaleShiftRows part = rows;
                          part.rows = std::min(per_chunk, all - first);
                          kernels::scale_shift(part, x + at, z == nullptr ? nullptr : z + at, y + at);
                        });
}

// One number serves all: pieces of any length will do.
template <typename T>
void run_flat(const RunContext& c, kernels::ScaleShiftRows rows) {
  constexpr int64_t kChunkElements = 16384;
  const int64_t total = c.inputs[0].elements();
  const T* x = c.inputs[0].as<T>();
  const T* z = c.has_input(3) ? c.inputs[3].as<T>() : nullptr;
  T* y = c.outputs[0].as<T>();
  rows.rows = 1;
  kernels::parallel_for(total > 2 * kChunkElements ? c.threads : 1,
                        (total + kChunkElements - 1) / kChunkElements, [&](int64_t chunk) {
                          const int64_t at = chunk * kChunkElements;
                          kernels::ScaleShiftRows part = rows;
                          part.width = std::min(kChunkElements, total - at);
                          kernels::scale_shift(part, x + at, z == nullptr ? nullptr : z + at, y + at);
                        });
}

// Planes of one channel each.
template <typename T>
void run_planes(const RunContext& c, kernels::ScaleShiftRows rows, int64_t channels, int64_t plane) {
  const int64_t planes = plane == 0 ? 0 : c.inputs[0].elements() / plane;
  const T* x = c.inputs[0].as<T>();
  const T* z = c.has_input(3) ? c.inputs[3].as<T>() : nullptr;
  T* y = c.outputs[0].as<T>();
  rows.rows = 1;
  rows.width = plane;
  kernels::parallel_for(planes * plane > 32768 ? c.threads : 1, planes, [&](int64_t i) {
    kernels::ScaleShiftRows part = rows;
    part.scale += rows.scale_varies ? i % channels : 0;
    part.shift += rows.shift_varies ? i % channels : 0;
    part.scale_varies = part.shift_varies = false;
    kernels::scale_shift(part, x + i * plane, z == nullptr ? nullptr : z + i * plane, y + i * plane);
  });
}

void run(const RunContext& c) {
  const Attrs& a = c.attrs<Attrs>();
  const std::span<const int64_t> dims = c.inputs[0].dims;
  kernels::ScaleShiftRows rows;
  rows.scale = c.inputs[1].as<float>();
  rows.shift = c.inputs[2].as<float>();
  rows.scale_varies = c.inputs[1].elements() > 1;
  rows.shift_varies = c.inputs[2].elements() > 1;
  rows.activation = a.activation;
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_same_v<T, double>) {
      if (!rows.scale_varies && !rows.shift_varies) return run_flat<T>(c, rows);
      if (a.channels_last) return run_rows<T>(c, rows, std::max<int64_t>(1, dims.back()));
      const int64_t plane = size_of(dims.subspan(2));
      // Planes of one element are rows of channels.
      if (plane == 1) return run_rows<T>(c, rows, std::max<int64_t>(1, dims[1]));
      run_planes<T>(c, rows, dims[1], plane);
    }
  });
}

Cost cost(const NodeContext& c) {
  return {2 * product(c.output(0).type.dims).value(), tensor_bytes(c)};
}

void layout(LayoutContext& c) {
  layout_fused(c, LayoutChoice::kEither, 3);
}

void region(RegionContext& c) {
  const size_t channel = c.attrs<Attrs>().channels_last ? c.rank(0) - 1 : 1;
  for (size_t i = 1; i < 3; ++i) {
    if (c.size(i, 0) != 1) c.needs[i][0] = c.wanted(channel);
  }
  need_broadcast(c, 0);
  if (c.has_input(3)) need_broadcast(c, 3);
  c.runs_on_parts = true;
}

}  // namespace

extern const OpDef op_scale_shift = {
    .domain = kPlimsollDomain,
    .name = "ScaleShift",
    .inputs = {3, 4},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .layout = layout,
    .region = region,
};

}  // namespace plimsoll
