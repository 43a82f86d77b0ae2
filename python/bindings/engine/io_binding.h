// An IoBinding as Python holds it.
#pragma once

#include <plimsoll/io_binding.h>

#include <atomic>

#include "engine.h"

namespace plimsoll::bindings {

struct PythonIoBinding {
  explicit PythonIoBinding(SessionHandle& session) : open(session.use()), binding(*open->session) {}

  // For as long as one thread uses it. Throws kBusy if another does.
  class Use {
   public:
    explicit Use(PythonIoBinding& binding);
    ~Use() { used_ = false; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    std::atomic<bool>& used_;
  };

  std::shared_ptr<OpenSession> open;
  IoBinding binding;
  std::atomic<bool> used{false};
};

}  // namespace plimsoll::bindings
