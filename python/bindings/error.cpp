// plimsoll::Error becomes the Python exception that plimsoll/errors.py, the one table, has for its code.
#include <plimsoll/error.h>

#include "bindings.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

void raise(ErrorCode code, const std::string& message) {
  const py::object error =
      py::module_::import("plimsoll.errors").attr("from_code")(static_cast<int>(code), message);
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
}

}  // namespace

void translate_errors() {
  // By value is what pybind11 calls. NOLINTNEXTLINE(performance-unnecessary-value-param)
  py::register_local_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error.code(), error.what());
    }
  });
}

void bind_error(py::module_& module) {
  translate_errors();
  module.def(
      "error_code_name", [](int code) { return error_code_name(static_cast<ErrorCode>(code)); },
      py::arg("code"), "The name of an error code, such as 'budget exceeded'.");
  module.def(
      "throw_error",
      [](int code, std::string message) { throw Error(static_cast<ErrorCode>(code), std::move(message)); },
      py::arg("code"), py::arg("message"), "Raises the exception of a code: for tests.");
}

}  // namespace plimsoll::bindings
