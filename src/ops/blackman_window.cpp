#include "ops/signal_window.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_window(c, 0.42, 0.5, 0.08);
}

}  // namespace

extern const OpDef op_blackman_window = {
    .name = "BlackmanWindow",
    .attrs = window_attrs,
    .infer = infer_window,
    .run = run,
};

}  // namespace plimsoll
