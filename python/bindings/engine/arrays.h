// Values and numpy arrays, without copies where memory can be shared.
//
// A Value of an array keeps the array; an array of a Value keeps the Value. Element types that numpy has not
// are seen as unsigned integers of their size: bfloat16 as uint16, float8 as uint8. Elements of less than a
// byte take one each in an array, and are copied.
#pragma once

#include <plimsoll/value.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>

namespace plimsoll::bindings {

// Kept until the last copy is destroyed, by whichever thread.
std::shared_ptr<const void> keep(pybind11::object object);
// The same value, which keeps `owner` of the memory it is a view of.
Value with_owner(Value view, std::shared_ptr<const void> owner);

bool is_array(pybind11::handle object);
int element_bits(ElementType type);
// kUndefined if there is none.
ElementType element_type_of(const pybind11::dtype& dtype);
pybind11::dtype dtype_of(ElementType type);
// From a number of ONNX's, or anything that numpy understands as a type.
ElementType element_type_from(pybind11::handle type);

// A view where the array is contiguous, aligned and in this machine's byte order, else of a copy that is.
Value value_of_array(pybind11::object array);
// The bytes of the array, seen as another type.
Value value_of_array_as(const pybind11::array& array, ElementType type);
pybind11::object array_of_value(const Value& value);
// Any value as ONNX Runtime's Python shows it: an array, a list, a dict or None.
pybind11::object python_of_value(const Value& value);

}  // namespace plimsoll::bindings
