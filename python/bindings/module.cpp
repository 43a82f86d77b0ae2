// plimsoll._native: what of the package is C++. Users import `plimsoll`, never this.
#include "bindings.h"

PYBIND11_MODULE(_native, module) {
  module.attr("__version__") = PLIMSOLL_VERSION;
  plimsoll::bindings::bind_condition(module);
  plimsoll::bindings::bind_error(module);
  plimsoll::bindings::bind_isolate(module);
  plimsoll::bindings::bind_observe(module);
}
