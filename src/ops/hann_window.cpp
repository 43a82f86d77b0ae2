#include "ops/signal_window.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_window(c, 0.5, 0.5, 0);
}

}  // namespace

extern const OpDef op_hann_window = {
    .name = "HannWindow",
    .attrs = window_attrs,
    .infer = infer_window,
    .run = run,
};

}  // namespace plimsoll
