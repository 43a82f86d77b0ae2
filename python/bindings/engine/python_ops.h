// Operators that are Python callables, by the contract of plimsoll/custom_op.h.
//
// The contract's functions are told no owner, so each callable takes one of 64 numbered places of the process
// for as long as a session may call it. Callables get copies of their inputs, and their results are copied:
// nothing that they keep can go stale.
#pragma once

#include <plimsoll/custom_op.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

namespace plimsoll::bindings {

struct PythonOp {
  std::string domain, name;
  pybind11::object function;
  pybind11::object infer;  // none: every output is like the first input
  // Names of attributes, and their kinds: 'i', 'f' or 's'.
  std::vector<std::pair<std::string, char>> attributes;
};

class PythonOps {
 public:
  // Of (domain, name, function, infer, {attribute: kind}). Throws kInvalidArgument if all places are taken.
  explicit PythonOps(const pybind11::handle& ops);
  ~PythonOps();
  PythonOps(const PythonOps&) = delete;
  PythonOps& operator=(const PythonOps&) = delete;
  const PlimsollOps* table() const { return &table_; }

 private:
  std::vector<std::unique_ptr<PythonOp>> ops_;
  std::vector<size_t> places_;
  std::vector<PlimsollOp> entries_;
  PlimsollOps table_{};
};

}  // namespace plimsoll::bindings
