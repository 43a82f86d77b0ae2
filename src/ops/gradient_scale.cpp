// What all gradients are multiplied with so that their common norm is at most max_norm, as PyTorch's
// clip_grad_norm_ has it. Inputs: a scale that they get anyway (a float, may be absent), then the gradients.
// Outputs: the scale, and the norm before it is clipped.
#include <algorithm>

#include "ops/training_common.h"
#include "ops/update_common.h"

namespace plimsoll {
namespace {

struct Attrs {
  float max_norm = 0;
};

const void* attrs(AttrContext& c) {
  auto* a = c.make<Attrs>();
  a->max_norm = c.real("max_norm");
  if (!(a->max_norm > 0)) c.reject("max_norm: expected more than 0, found {}", a->max_norm);
  return a;
}

void infer(InferContext& c) {
  if (c.has_input(0)) {
    c.expect_type(0, types(ElementType::kFloat));
    expect_one(c, 0);
  }
  if (!c.has_output(0)) c.reject("output 0 is missing");
  for (size_t i = 1; i < c.input_count(); ++i) c.expect_type(i, kUpdateTypes);
  for (size_t i = 0; i < c.output_count(); ++i) c.set_output(i, ElementType::kFloat, std::vector<Dim>{});
}

Dim chunks_of(const SelectContext& c, size_t i) {
  return ceil_div(product(c.dims(i)), Dim(kUpdateChunk));
}

// Squares of each chunk of the largest gradient, added in their order whatever the number of threads.
const void* select(SelectContext& c) {
  Dim most = 0;
  for (size_t i = 1; i < c.input_count(); ++i) most = max(most, chunks_of(c, i));
  c.scratch(most * Dim(8));
  return nullptr;
}

double squares(const RunContext& c, const TensorView& gradient) {
  auto* sums = c.scratch_as<double>(0);
  const int64_t elements = gradient.elements(), chunks = (elements + kUpdateChunk - 1) / kUpdateChunk;
  kernels::parallel_for(chunks > 1 ? c.threads : 1, chunks, [&](int64_t chunk) {
    const int64_t begin = chunk * kUpdateChunk, count = std::min(kUpdateChunk, elements - begin);
    sums[chunk] = gradient.type == ElementType::kDouble
                      ? kernels::sum_of_squares(count, gradient.as<double>() + begin)
                      : kernels::sum_of_squares(count, gradient.as<float>() + begin);
  });
  double sum = 0;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk];
  return sum;
}

void run(const RunContext& c) {
  const double scale = c.has_input(0) ? static_cast<double>(*c.inputs[0].as<float>()) : 1;
  double sum = 0;
  for (size_t i = 1; i < c.inputs.size(); ++i) sum += squares(c, c.inputs[i]);
  const double norm = std::sqrt(sum) * std::abs(scale);
  const double kept = std::min(1.0, static_cast<double>(c.attrs<Attrs>().max_norm) / (norm + 1e-6));
  // A norm that is no number must not become one.
  *c.outputs[0].as<float>() = static_cast<float>(std::isfinite(norm) ? scale * kept : norm);
  if (c.has_output(1)) *c.outputs[1].as<float>() = static_cast<float>(norm);
}

}  // namespace

extern const OpDef op_gradient_scale = {
    .domain = kPlimsollDomain,
    .name = "GradientScale",
    .inputs = {2, kAnyNumber},
    .outputs = {1, 2},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .optional_inputs = 1,
};

}  // namespace plimsoll
