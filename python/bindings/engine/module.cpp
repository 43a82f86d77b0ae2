// plimsoll._engine: what of the inference API is C++. Users import `plimsoll`, never this.
#include "../bindings.h"
#include "engine.h"
#include "unlocked.h"

PYBIND11_MODULE(_engine, module) {
  plimsoll::bindings::watch_forks();
  plimsoll::bindings::translate_errors();
  plimsoll::bindings::bind_value(module);
  plimsoll::bindings::bind_run_options(module);
  plimsoll::bindings::bind_plan(module);
  plimsoll::bindings::bind_memory_report(module);
  plimsoll::bindings::bind_session(module);
  plimsoll::bindings::bind_io_binding(module);
  plimsoll::bindings::bind_session_options(module);
  plimsoll::bindings::bind_quantize(module);
  plimsoll::bindings::bind_gradient(module);
  plimsoll::bindings::bind_checkpoint(module);
  plimsoll::bindings::bind_env(module);
}
