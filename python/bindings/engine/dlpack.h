// Tensors of other packages by DLPack (https://dmlc.github.io/dlpack/latest), without copies.
#pragma once

#include <plimsoll/value.h>
#include <pybind11/pybind11.h>

namespace plimsoll::bindings {

// From a capsule "dltensor", which is used up. What is not contiguous is copied. `is_bool`: uint8 is bool.
Value value_of_dlpack(const pybind11::object& capsule, bool is_bool);
// From an object with __dlpack__, such as a torch tensor (one that requires a gradient is detached).
Value value_of_dlpack_owner(pybind11::object owner);
pybind11::object dlpack_of_value(const Value& value);

}  // namespace plimsoll::bindings
