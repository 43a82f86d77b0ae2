// What the operators that draw random numbers share. The numbers of a node are those of its attribute `seed`,
// the same in every run; without one they belong to the run and the node's name. Each turn of a body draws
// anew.
#pragma once

#include "kernels/parallel.h"
#include "kernels/random.h"
#include "ops/elementwise.h"

namespace plimsoll {

struct RandomSeed {
  bool given = false;
  uint64_t value = 0;
};
RandomSeed real_seed(AttrContext& c);   // the attribute is a float
RandomSeed whole_seed(AttrContext& c);  // of Dropout: an integer
kernels::RandomStream random_stream(const RunContext& c, const RandomSeed& seed);
// As a node of that name draws them in the same run.
kernels::RandomStream random_stream(const RunContext& c, const RandomSeed& seed, std::string_view name);

// The attribute dtype, which must be one of `allowed`; kUndefined if it is absent.
ElementType random_type(AttrContext& c, TypeSet allowed);

enum class Distribution : uint8_t { kUniform, kNormal };

struct RandomAttrs {
  Distribution distribution = Distribution::kUniform;
  double offset = 0, scale = 1;  // result = offset + scale * what the kernels draw
  RandomSeed seed;
  ElementType type = ElementType::kUndefined;  // of the input
  std::span<const int64_t> shape;
};

// RandomUniform and RandomNormal take a shape, their *Like forms an input.
const void* random_attrs(AttrContext& c, Distribution distribution, bool has_shape);
void infer_random(InferContext& c);
void infer_random_like(InferContext& c);
void run_random(const RunContext& c);

// Fills `count` elements in pieces, on all threads: f(first, piece of the numbers, how many).
template <typename Number, typename Draw, typename F>
void draw_pieces(const RunContext& c, int64_t count, Draw draw, F f) {
  constexpr int64_t kPiece = 2048;
  kernels::parallel_for(count > 2 * kPiece ? c.threads : 1, (count + kPiece - 1) / kPiece, [&](int64_t task) {
    Number numbers[kPiece];
    const int64_t first = task * kPiece, width = std::min(kPiece, count - first);
    draw(first, width, numbers);
    f(first, numbers, width);
  });
}

}  // namespace plimsoll
