// The native half of the Python package: one function, in a file of its own, per public header.
//
// Rules: the interpreter's lock is released around everything that can wait; what waits on the main thread
// looks for signals (PyErr_CheckSignals) at least ten times a second, so that Ctrl-C works at any moment;
// nothing here needs numpy.
#pragma once

#include <pybind11/pybind11.h>

namespace plimsoll::bindings {

void bind_error(pybind11::module_& module);
void bind_isolate(pybind11::module_& module);
void bind_observe(pybind11::module_& module);

}  // namespace plimsoll::bindings
