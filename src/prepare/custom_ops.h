// Operators that a library outside brings, as OpDefs like ours.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/op_def.h"
#include "plimsoll/custom_op.h"

namespace plimsoll {

// Owns the libraries: keep it as long as a graph has their operators. Movable; read by any thread.
class CustomOps {
 public:
  CustomOps();
  CustomOps(CustomOps&&) noexcept;
  CustomOps& operator=(CustomOps&&) noexcept;
  ~CustomOps();

  // Loads a shared library and adds its operators. Throws kIo if it is none, kInvalidArgument if it has not
  // the function, is of another version, or brings an operator that exists already.
  void add_library(const std::string& path);
  // From this very program; the table outlives this. `origin` is for messages.
  void add(const PlimsollOps* table, const std::string& origin);

  std::span<const OpDef* const> ops() const { return ops_; }

 private:
  struct Adapted;
  struct Library;
  std::vector<Library> libraries_;  // after the operators, which point into them, are gone
  std::vector<std::unique_ptr<Adapted>> adapted_;
  std::vector<const OpDef*> ops_;
};

}  // namespace plimsoll
