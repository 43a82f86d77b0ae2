// The spectrum of real signals along the last dimension, without the half that mirrors the other.
#include "ops/microsoft_decomposed.h"
#include "ops/microsoft_real_spectrum.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  check_real_spectrum(c);
  return nullptr;
}

void infer(InferContext& c) {
  c.expect_type(0, kFloatTypes);
  if (!c.ranked(0)) return c.set_unranked_output(0, c.type(0));
  if (c.rank(0) == 0) c.reject("input 0: expected a signal, found a scalar");
  std::vector<Dim> dims(c.dims(0).begin(), c.dims(0).end());
  if (dims.back().is_constant() && dims.back().value() < 1) c.reject("a signal without elements");
  dims.back() = floor_div(dims.back(), Dim(2)) + Dim(1);
  dims.push_back(2);
  c.set_output(0, c.type(0), dims);
}

void decompose(DecomposeContext& c) {
  Edge* signal = c.op("Unsqueeze", {c.in(0), c.build.integers({-1})});
  c.op_into(0, "DFT", {signal, nullptr, c.build.scalar(int64_t{-2})},
            c.attributes().set("onesided", int64_t{1}));
}

}  // namespace

extern const OpDef op_microsoft_rfft = {
    .domain = kMicrosoftDomain, .name = "Rfft", .attrs = attrs, .infer = infer, .decompose = decompose};

}  // namespace plimsoll
