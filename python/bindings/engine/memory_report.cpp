// plimsoll/memory_report.h.
#include <plimsoll/memory_report.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

py::dict accounts(const MemoryReport& report) {
  py::dict result;
  for (size_t i = 0; i < kAccounts; ++i) {
    const AccountReport& account = report.accounts[i];
    py::dict entry;
    entry["now_bytes"] = account.now_bytes;
    entry["peak_bytes"] = account.peak_bytes;
    entry["at_peak_bytes"] = account.at_peak_bytes;
    result[account_name(static_cast<Account>(i))] = entry;
  }
  return result;
}

}  // namespace

void bind_memory_report(py::module_& module) {
  py::class_<MemoryReport>(module, "MemoryReport")
      .def_readonly("now_bytes", &MemoryReport::now_bytes)
      .def_readonly("peak_bytes", &MemoryReport::peak_bytes)
      .def_readonly("limit_bytes", &MemoryReport::limit_bytes)
      .def_property_readonly("accounts", &accounts);
}

}  // namespace plimsoll::bindings
