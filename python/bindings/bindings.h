// The native half of the Python package: one function, in a file of its own, per public header, and one for
// the condition variable that the others' Python needs.
//
// Rules: the interpreter's lock is released around everything that can wait; what waits on the main thread
// looks for signals (PyErr_CheckSignals) at least ten times a second, so that Ctrl-C works at any moment;
// arguments have no default values, because pybind11 asks for their repr during the import, where Ctrl-C
// would become an ImportError; nothing here needs numpy.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace plimsoll::bindings {

inline constexpr std::chrono::milliseconds kSignalLook{50};

// Calls `work` without the interpreter's lock: a daemon thread that takes the lock
// back when the interpreter is at its end is ended then, by unwinding its stack. pybind11's guard takes it
// back in a destructor, where that aborts the process.
template <typename Work>
auto without_lock(Work work) {
  using Answer = std::conditional_t<std::is_void_v<decltype(work())>, std::nullptr_t, decltype(work())>;
  std::optional<Answer> answer;
  std::exception_ptr error;
  PyThreadState* state = PyEval_SaveThread();
  try {
    if constexpr (std::is_void_v<decltype(work())>)
      work();
    else
      answer.emplace(work());
  } catch (...) {
    error = std::current_exception();
  }
  PyEval_RestoreThread(state);
  if (error) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<decltype(work())>) return std::move(*answer);
}

// plimsoll::Error thrown in the module that calls this becomes its Python exception.
void translate_errors();
void bind_condition(pybind11::module_& module);
void bind_error(pybind11::module_& module);
void bind_isolate(pybind11::module_& module);
void bind_observe(pybind11::module_& module);

}  // namespace plimsoll::bindings
