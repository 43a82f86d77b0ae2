#include <algorithm>

#include "graph/gradient.h"
#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct RotaryAttrs {
  bool interleaved = false;
  int64_t heads = 0;   // of a 3-D input
  int64_t rotary = 0;  // elements of a head that are rotated; 0: all
};

constexpr size_t kX = 0, kCos = 1, kSin = 2, kPositions = 3;

const void* attrs(AttrContext& c) {
  auto* a = c.make<RotaryAttrs>();
  a->interleaved = c.integer("interleaved", 0) != 0;
  a->heads = c.integer("num_heads", 0);
  a->rotary = c.integer("rotary_embedding_dim", 0);
  if (a->heads < 0) c.reject("attribute 'num_heads': found {}", a->heads);
  if (a->rotary < 0 || a->rotary % 2 != 0)
    c.reject("attribute 'rotary_embedding_dim': expected an even number, found {}", a->rotary);
  return a;
}

Dim head_size(const InferContext& c, const RotaryAttrs& a) {
  const Dim last = c.dims(kX).back();
  if (c.rank(kX) == 4) return last;
  if (a.heads == 0) c.reject("a 3-D input needs the attribute 'num_heads'");
  if (last.is_constant() && last.value() % a.heads != 0)
    c.reject("hidden size {} cannot be divided into {} heads", last.value(), a.heads);
  return floor_div(last, Dim(a.heads));
}

void expect_cache(const InferContext& c, size_t i, Dim batch, Dim steps, Dim half) {
  c.expect_same_type(kX, i);
  if (!c.ranked(i)) return;
  const size_t rank = c.has_input(kPositions) ? 2 : 3;
  c.expect_rank(i, rank, rank);
  const auto dims = c.dims(i);
  unify(c, dims.back(), half);
  if (rank == 2) return;
  unify(c, dims[0], batch);
  unify(c, dims[1], steps);
}

void infer(InferContext& c) {
  const auto& a = c.attrs<RotaryAttrs>();
  c.expect_type(kX, types(ElementType::kFloat, ElementType::kFloat16, ElementType::kBFloat16));
  c.expect_rank(kX, 3, 4);
  if (c.has_input(kPositions)) {
    c.expect_type(kPositions, types(ElementType::kInt64));
    c.expect_rank(kPositions, 2, 2);
  }
  c.expect_same_type(kX, kCos);
  c.expect_same_type(kX, kSin);
  if (!c.ranked(kX)) return c.set_unranked_output(0, c.type(kX));
  const Dim size = head_size(c, a), batch = c.dims(kX)[0], steps = c.dims(kX)[c.rank(kX) == 4 ? 2 : 1];
  if (size.is_constant() && size.value() < a.rotary)
    c.reject("rotary_embedding_dim {} is larger than a head of {}", a.rotary, size.value());
  if (a.rotary == 0 && size.is_constant() && size.value() % 2 != 0)
    c.reject("a head of {} elements cannot be divided into two halves", size.value());
  const Dim half = floor_div(a.rotary == 0 ? size : Dim(a.rotary), Dim(2));
  expect_cache(c, kCos, batch, steps, half);
  expect_cache(c, kSin, batch, steps, half);
  if (c.ranked(kCos) && c.ranked(kSin)) unify(c, c.dims(kCos)[0], c.dims(kSin)[0]);
  if (c.has_input(kPositions) && c.ranked(kPositions)) {
    unify(c, c.dims(kPositions)[0], batch);
    unify(c, c.dims(kPositions)[1], steps);
  }
  c.set_output(0, c.type(kX), c.dims(kX));
}

void alias(AliasContext& c) {
  c.overwrite(kX);  // both elements of a pair are read before either is written
}

constexpr int64_t kBlock = 64;  // pairs

template <typename T>
void rotate(const T* x, T* y, const T* cosine, const T* sine, int64_t half, bool interleaved) {
  float pairs[2 * kBlock], first[kBlock], second[kBlock], cos[kBlock], sin[kBlock];
  for (int64_t start = 0; start < half; start += kBlock) {
    const int64_t n = std::min(kBlock, half - start);
    widen(cosine + start, cos, n);
    widen(sine + start, sin, n);
    if (interleaved) {
      widen(x + 2 * start, pairs, 2 * n);
      for (int64_t i = 0; i < n; ++i) first[i] = pairs[2 * i], second[i] = pairs[2 * i + 1];
    } else {
      widen(x + start, first, n);
      widen(x + half + start, second, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      const float real = cos[i] * first[i] - sin[i] * second[i];
      second[i] = sin[i] * first[i] + cos[i] * second[i];
      first[i] = real;
    }
    if (interleaved) {
      for (int64_t i = 0; i < n; ++i) pairs[2 * i] = first[i], pairs[2 * i + 1] = second[i];
      narrow(pairs, y + 2 * start, 2 * n);
    } else {
      narrow(first, y + start, n);
      narrow(second, y + half + start, n);
    }
  }
}

void check_positions(const RunContext& c) {
  if (!c.has_input(kPositions)) return;
  const TensorView& positions = c.inputs[kPositions];
  for (int64_t i = 0; i < positions.elements(); ++i) {
    const int64_t position = positions.as<int64_t>()[i];
    if (position < 0 || position >= c.inputs[kCos].dims[0])
      fail(ErrorCode::kInvalidArgument, "{}: position {} is outside [0, {})", c.node->label(), position,
           c.inputs[kCos].dims[0]);
  }
}

template <typename T>
void run_typed(const RunContext& c) {
  const auto& a = c.attrs<RotaryAttrs>();
  const TensorView& x = c.inputs[kX];
  const bool heads_first = x.rank() == 4;
  const int64_t heads = heads_first ? x.dims[1] : a.heads, steps = x.dims[heads_first ? 2 : 1];
  const int64_t size = heads_first ? x.dims[3] : x.dims[2] / heads;
  const int64_t rotary = a.rotary == 0 ? size : a.rotary, half = rotary / 2;
  const int64_t rows = x.dims[0] * heads * steps;
  kernels::parallel_for(x.elements() < 16384 ? 1 : c.threads, rows, [&](int64_t row) {
    const int64_t batch = row / (heads * steps);
    const int64_t step = heads_first ? row % steps : row / heads % steps;
    int64_t at = batch * steps + step;
    if (c.has_input(kPositions)) at = c.inputs[kPositions].as<int64_t>()[at];
    const T* from = x.as<T>() + row * size;
    T* to = c.outputs[0].as<T>() + row * size;
    rotate(from, to, c.inputs[kCos].as<T>() + at * half, c.inputs[kSin].as<T>() + at * half, half,
           a.interleaved);
    if (from != to) std::copy(from + rotary, from + size, to + rotary);
  });
}

void run(const RunContext& c) {
  check_positions(c);
  if (c.outputs[0].elements() == 0) return;
  visit_float(c.inputs[kX].type, [&](auto tag) { run_typed<typename decltype(tag)::type>(c); });
}

Cost cost(const NodeContext& c) {
  constexpr int64_t kOperationsPerElement = 3;
  return {checked_mul(kOperationsPerElement, product(c.dims(kX)).value()), tensor_bytes(c)};
}

// A rotation is undone by the opposite one.
void gradient(GradientContext& c) {
  if (c.wants(kCos) || c.wants(kSin)) c.reject("its angles, inputs 1 and 2, cannot be differentiated");
  const AttributeList attributes(c.build.graph().arena(), c.node());
  Edge* back = c.op("Neg", {c.in(kSin)});
  c.set(kX, c.has_input(kPositions)
                ? c.op("RotaryEmbedding", {c.gradient(), c.in(kCos), back, c.in(kPositions)}, attributes)
                : c.op("RotaryEmbedding", {c.gradient(), c.in(kCos), back}, attributes));
}

}  // namespace

extern const OpDef op_rotary_embedding = {
    .name = "RotaryEmbedding",
    .inputs = {3, 4},
    .attrs = attrs,
    .infer = infer,
    .alias = alias,
    .run = run,
    .cost = cost,
    .gradient = gradient,
};

}  // namespace plimsoll
