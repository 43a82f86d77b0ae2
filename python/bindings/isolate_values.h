// Between isolate.h's structs and Python's: plain dictionaries, so that python/plimsoll/isolate.py decides
// what users see.
#pragma once

#include <plimsoll/isolate.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <utility>

namespace plimsoll::bindings {

// What a worker is, as Python describes it: argv, capture, limits, sandbox.
struct WorkerSpec {
  Command command;
  Limits limits;
};
WorkerSpec worker_spec(const pybind11::dict& spec);

pybind11::dict to_python(const Receipt& receipt);
// Copies of the descriptors; null for none.
std::shared_ptr<const Attachment> attachment(const std::vector<int>& descriptors);

// (kind, answer, message, receipt, attempts, descriptors)
pybind11::tuple to_python(const Outcome& outcome);

void bind_pool(pybind11::module_& module);

}  // namespace plimsoll::bindings
