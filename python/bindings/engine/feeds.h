// What people feed: arrays, lists, numbers, text, dicts, OrtValues, tensors of other packages.
#pragma once

#include <plimsoll/session.h>
#include <plimsoll/value.h>
#include <pybind11/pybind11.h>

#include <vector>

namespace plimsoll::bindings {

// For the input that `info` describes. Types and shapes that do not fit are the engine's to refuse.
Value value_for_input(pybind11::handle object, const ValueInfo& info);

// The feed of one run: names and values, side by side.
struct Feed {
  std::vector<const char*> names;
  std::vector<Value> values;
  std::vector<pybind11::object> kept;  // the names' text

  // None stands for an optional input that is not given. Throws of names that the model does not have, and of
  // required inputs that are missing.
  Feed(const Session& session, pybind11::handle feed);
};

// Names of outputs; none are all of them.
std::vector<const char*> output_names_from(const Session& session, pybind11::handle names,
                                           std::vector<pybind11::object>& kept);

}  // namespace plimsoll::bindings
