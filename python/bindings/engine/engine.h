// plimsoll._engine: the native half of the inference API, apart from plimsoll._native because the engine
// takes megabytes in every process that loads it, and workers need none of it.
//
// One bind function, in a file of its own, per public header. The rules of bindings.h hold here too, but
// numpy is needed: from the first value that crosses, not from the import.
#pragma once

#include <plimsoll/session.h>
#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "python_ops.h"

namespace plimsoll::bindings {

// A session and what it reads while it lives.
struct OpenSession {
  pybind11::object kept;  // what it reads while it lives: the bytes of the model, files in memory
  SessionOptions options;
  std::unique_ptr<PythonOps> ops;  // those of its operators that are Python callables
  std::unique_ptr<Session> session;
};

// A session as Python holds it. `open` is empty once it is closed; runs under way and bindings keep theirs.
class SessionHandle {
 public:
  // From a path (str) or bytes.
  SessionHandle(const pybind11::object& model, const pybind11::dict& options);
  explicit SessionHandle(std::shared_ptr<OpenSession> open);

  // Throws if the session is closed, or was in use when this process was forked from another.
  std::shared_ptr<OpenSession> use();
  void close() { open_.reset(); }

 private:
  friend class RunCount;
  std::shared_ptr<OpenSession> open_;
  std::atomic<int> runs_{0};
  unsigned generation_ = 0;  // of forks, when it was last known to be sound
};

// Counts a run of a session, so that a fork in the middle of it is noticed.
class RunCount {
 public:
  explicit RunCount(SessionHandle& session) : runs_(session.runs_) { ++runs_; }
  ~RunCount() { --runs_; }
  RunCount(const RunCount&) = delete;
  RunCount& operator=(const RunCount&) = delete;

 private:
  std::atomic<int>& runs_;
};

// What all sessions of the process share.
Env& environment();

// A RunOptions object of Python, or none.
RunOptions run_options_from(pybind11::handle options);
SessionOptions session_options_from(const pybind11::dict& options);

void bind_env(pybind11::module_& module);
void bind_checkpoint(pybind11::module_& module);
void bind_gradient(pybind11::module_& module);
void bind_io_binding(pybind11::module_& module);
void bind_memory_report(pybind11::module_& module);
void bind_plan(pybind11::module_& module);
void bind_quantize(pybind11::module_& module);
void bind_run_options(pybind11::module_& module);
void bind_session(pybind11::module_& module);
void bind_session_options(pybind11::module_& module);
void bind_value(pybind11::module_& module);

}  // namespace plimsoll::bindings
