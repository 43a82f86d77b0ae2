// MaxPoolTaps(X) -> (Y, taps): MaxPool, and which tap of each window made its output, so that the gradient
// needs neither X nor a second search (optimize/hold_pool_taps.cpp). Taps inside the image are counted from
// 0: uint8, for windows of at most 256.
#include "kernels/parallel.h"
#include "ops/elementwise.h"
#include "ops/max_pool.h"
#include "ops/pool_common.h"
#include "ops/pool_windows.h"

namespace plimsoll {
namespace {

const void* attrs(AttrContext& c) {
  auto* a = c.make<PoolAttrs>();
  read_pool(c, *a);
  int64_t taps = 1;
  for (int64_t size : a->window.kernel) taps = checked_mul(taps, size);
  if (taps > 256) c.reject("attribute 'kernel_shape': expected at most 256 elements, found {}", taps);
  return a;
}

void infer(InferContext& c) {
  infer_pool(c, kFloatTypes);
  if (!c.ranked(0)) return c.set_unranked_output(1, ElementType::kUint8);
  c.set_output(1, ElementType::kUint8, c.output(0).type.dims);
}

void run(const RunContext& c) {
  run_max_pool(c);
  if (c.outputs[0].elements() == 0) return;
  const Window w = pool_window(c);
  const PoolWindows windows(w);
  visit_float(c.inputs[0].type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    kernels::parallel_for(c.threads, windows.blocks(), [&](int64_t index) {
      const PoolWindows::Block block = windows.block(index);
      const T* x = c.inputs[0].as<T>() + block.from;
      uint8_t* taps = c.outputs[1].as<uint8_t>() + block.to;
      TapCount<T> winner[kPoolChannels];
      windows.for_each_window([&](const PoolWindows::Taps& t, int64_t to) {
        std::fill_n(winner, block.width, TapCount<T>{0});
        if (t.inside > 0) windows.find_largest(t, x, block.width, winner);
        for (int64_t i = 0; i < block.width; ++i) taps[to + i] = static_cast<uint8_t>(winner[i]);
      });
    });
  });
}

}  // namespace

extern const OpDef op_max_pool_taps = {
    .domain = kPlimsollDomain,
    .name = "MaxPoolTaps",
    .outputs = {2, 2},
    .attrs = attrs,
    .infer = infer,
    .run = run,
};

}  // namespace plimsoll
