#include "ops/signal_window.h"

namespace plimsoll {
namespace {

void run(const RunContext& c) {
  run_window(c, 25.0 / 46, 21.0 / 46, 0);
}

}  // namespace

extern const OpDef op_hamming_window = {
    .name = "HammingWindow",
    .attrs = window_attrs,
    .infer = infer_window,
    .run = run,
};

}  // namespace plimsoll
