// Real signals from one half of their spectrum: the other half mirrors it.
#include "ops/microsoft_decomposed.h"
#include "ops/microsoft_real_spectrum.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  check_real_spectrum(c);
  return nullptr;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  c.expect_rank(0, 2, InferContext::kMaxRank);
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  unify(c, dims.back(), 2);
  dims.pop_back();
  if (dims.back().is_constant() && dims.back().value() < 2)
    c.reject("expected a spectrum of at least 2 elements, found {}", dims.back().value());
  dims.back() = (dims.back() - Dim(1)) * Dim(2);
  c.set_output(0, c.type(0), dims);
}

void decompose(DecomposeContext& c) {
  // From the last but one to the second, backwards, with the sign of the imaginary part turned.
  Edge* middle = c.op("Slice", {c.in(0), c.build.integers({-2}), c.build.integers({0}),
                                c.build.integers({-2}), c.build.integers({-1})});
  Edge* signs = c.build.constant("signs", std::vector<int64_t>{2}, std::vector<float>{1, -1});
  if (c.type(0) != ElementType::kFloat)
    signs = c.op("Cast", {signs}, c.attributes().set("to", static_cast<int64_t>(c.type(0))));
  Edge* all =
      c.op("Concat", {c.in(0), c.op("Mul", {middle, signs})}, c.attributes().set("axis", int64_t{-2}));
  Edge* signal =
      c.op("DFT", {all, nullptr, c.build.scalar(int64_t{-2})}, c.attributes().set("inverse", int64_t{1}));
  c.op_into(0, "Gather", {signal, c.build.scalar(int64_t{0})}, c.attributes().set("axis", int64_t{-1}));
}

}  // namespace

extern const OpDef op_microsoft_irfft = {
    .domain = kMicrosoftDomain, .name = "Irfft", .attrs = attrs, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
