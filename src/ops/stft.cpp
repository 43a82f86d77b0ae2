#include <cmath>

#include "kernels/parallel.h"
#include "ops/float_blocks.h"
#include "ops/fourier.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct StftAttrs {
  bool onesided = true;
};

constexpr size_t kSignal = 0, kStep = 1, kWindow = 2, kLength = 3;

const void* attrs(AttrContext& c) {
  auto* a = c.make<StftAttrs>();
  a->onesided = c.integer("onesided", 1) != 0;
  return a;
}

// Length of the transform: as told, or the window's, or the signal's. nullopt if only the data tells.
std::optional<Dim> length_of(const NodeContext& c) {
  if (c.has_input(kLength)) return known_scalar(c, kLength);
  if (c.has_input(kWindow)) return c.ranked(kWindow) ? std::optional(c.dims(kWindow)[0]) : std::nullopt;
  return c.dims(kSignal)[1];
}

void infer(InferContext& c) {
  const auto& a = c.attrs<StftAttrs>();
  c.expect_type(kSignal, kFloatTypes);
  expect_scalar(c, kStep, kIndexTypes);
  if (c.has_input(kWindow)) {
    c.expect_same_type(kSignal, kWindow);
    c.expect_rank(kWindow, 1, 1);
  }
  expect_scalar(c, kLength, kIndexTypes);
  c.expect_rank(kSignal, 3, 3);
  if (!c.ranked(kSignal)) return c.set_output(0, c.type(kSignal), unknown_dims(c, 4));
  const Dim parts = c.dims(kSignal)[2];
  if (parts.is_constant() && parts.value() != 1 && parts.value() != 2)
    c.reject("the last dimension is 1 for real and 2 for complex signals, not {}", parts.value());
  if (a.onesided && parts == Dim(2)) c.reject("a onesided transform needs a real signal");
  const auto step = known_scalar(c, kStep), length = length_of(c);
  if (step && step->is_constant() && step->value() < 1)
    c.reject("frame_step: expected at least 1, found {}", step->value());
  const Dim n = length ? expect_length(c, *length) : c.unknown("stft");
  Dim frames = c.unknown("frames");
  if (step && length) {
    const Dim room = c.dims(kSignal)[1] - n;
    if (room.is_constant() && room.value() < 0)
      c.reject("a frame of {} does not fit a signal of {}", n.value(), c.dims(kSignal)[1].value());
    frames = floor_div(room, *step) + 1;
  }
  const Dim bins = a.onesided ? floor_div(n, Dim(2)) + 1 : n;
  c.set_output(0, c.type(kSignal), std::vector<Dim>{c.dims(kSignal)[0], frames, bins, Dim(2)});
}

const void* select(SelectContext& c) {
  if (!c.ranked(kSignal)) return nullptr;
  if (const auto length = length_of(c)) c.scratch(fourier_scratch_bytes(*length, c.threads));
  return nullptr;
}

struct BoundStft : BoundFourier {
  int64_t step = 1;
};

const void* bind(BindContext& c) {
  auto* bound = c.make<BoundStft>();
  bound->step = known_scalar(c, kStep)->value();
  bind_fourier(c, *bound, length_of(c)->value(), false);
  return bound;
}

// One frame; the window may be shorter or longer than the transform.
template <typename T>
void read_frame(const RunContext& c, int64_t batch, int64_t start, int64_t n, kernels::Complex* to) {
  const TensorView& signal = c.inputs[kSignal];
  const int64_t length = signal.dims[1], parts = signal.dims[2];
  const int64_t window = c.has_input(kWindow) ? c.inputs[kWindow].dims[0] : n;
  const int64_t count = std::min({n, window, length - start});
  const T* x = signal.as<T>() + (batch * length + start) * parts;
  for (int64_t i = 0; i < count; ++i) {
    double numbers[2] = {0, 0}, weight = 1;
    widen(x + i * parts, numbers, parts);
    if (c.has_input(kWindow)) widen(c.inputs[kWindow].as<T>() + i, &weight, 1);
    to[i] = {numbers[0] * weight, numbers[1] * weight};
  }
  std::fill(to + count, to + n, kernels::Complex{});
}

template <typename T>
void run_typed(const RunContext& c) {
  const auto& bound = c.bound_as<BoundStft>();
  const TensorView& y = c.outputs[0];
  const int64_t n = bound.plan.n, frames = y.dims[1], bins = y.dims[2], count = y.dims[0] * frames;
  kernels::parallel_for(c.threads, c.threads, [&](int64_t thread) {
    auto* frame = reinterpret_cast<kernels::Complex*>(c.scratch) + thread * bound.per_thread;
    for (int64_t i = count * thread / c.threads; i < count * (thread + 1) / c.threads; ++i) {
      read_frame<T>(c, i / frames, i % frames * bound.step, n, frame);
      kernels::fft(bound.plan, frame, frame + n);
      T* to = y.as<T>() + i * bins * 2;
      for (int64_t k = 0; k < bins; ++k) {
        to[2 * k] = narrowed<T>(frame[k].real());
        to[2 * k + 1] = narrowed<T>(frame[k].imag());
      }
    }
  });
}

void run(const RunContext& c) {
  if (c.outputs[0].elements() == 0) return;
  visit_float(c.inputs[kSignal].type, [&](auto tag) { run_typed<typename decltype(tag)::type>(c); });
}

Cost cost(const NodeContext& c) {
  const double n = static_cast<double>(product(c.output(0).type.dims).value());
  return {static_cast<int64_t>(std::min(5 * n * std::log2(n + 1), 9e18)), tensor_bytes(c)};
}

}  // namespace

extern const OpDef op_stft = {
    .name = "STFT",
    .inputs = {2, 4},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .bind = bind,
    .run = run,
    .cost = cost,
};

}  // namespace plimsoll
