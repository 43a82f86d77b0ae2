// IoBinding: inputs and outputs fixed to memory ahead of a run.
//
// Belongs to one Session, which must outlive it; one thread at a time. Bind allocates nothing but the
// table of names; bound Values are kept alive by the binding.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/allocator.h"
#include "plimsoll/value.h"

namespace plimsoll {

class Session;

class IoBinding {
 public:
  explicit IoBinding(Session& session);
  IoBinding(IoBinding&&) noexcept;
  IoBinding& operator=(IoBinding&&) noexcept;
  ~IoBinding();

  // Throws kInvalidArgument if there is no such input or output.
  void BindInput(const std::string& name, const Value& value);
  // Results are written into `value`, whose type and shape must be the output's.
  void BindOutput(const std::string& name, const Value& value);
  // Plimsoll makes the value in each run.
  void BindOutput(const std::string& name);
  // Likewise, where the session takes outputs that nobody bound. Throws kInvalidArgument of memory other than
  // "Cpu".
  void BindOutput(const std::string& name, const MemoryInfo& info);
  // Nothing is pending here when a call returns.
  void SynchronizeInputs() {}
  void SynchronizeOutputs() {}
  void ClearBoundInputs();
  void ClearBoundOutputs();
  std::vector<std::string> GetOutputNames() const;
  // The outputs of the last run, in the order in which they were bound.
  std::vector<Value> GetOutputValues() const;
  // What is bound; an empty Value if nothing is, or if each run makes it.
  Value GetBoundInput(const std::string& name) const;
  Value GetBoundOutput(const std::string& name) const;

 private:
  friend class Session;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace plimsoll
