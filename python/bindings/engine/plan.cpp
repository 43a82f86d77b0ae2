// plimsoll/plan.h.
#include <plimsoll/plan.h>
#include <pybind11/stl.h>

#include "engine.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

py::dict accounts(const Plan& plan) {
  py::dict result;
  for (size_t i = 0; i < kAccounts; ++i) result[account_name(static_cast<Account>(i))] = plan.accounts[i];
  return result;
}

py::list buffers(const Plan& plan) {
  py::list result;
  for (const PlannedBuffer& buffer : plan.buffers)
    result.append(py::make_tuple(buffer.name, buffer.node, buffer.offset, buffer.size_bytes, buffer.first_step,
                                 buffer.end_step, buffer.scratch));
  return result;
}

}  // namespace

void bind_plan(py::module_& module) {
  py::class_<Plan>(module, "Plan")
      .def_readonly("concrete", &Plan::concrete)
      .def_readonly("depends_on_data", &Plan::depends_on_data)
      .def_readonly("peak_bytes", &Plan::peak_bytes)
      .def_readonly("lower_bound_bytes", &Plan::lower_bound_bytes)
      .def_readonly("minimum_limit_bytes", &Plan::minimum_limit_bytes)
      .def_readonly("formula", &Plan::formula)
      .def_readonly("symbols", &Plan::symbols)
      .def_readonly("node_at_peak", &Plan::node_at_peak)
      .def_readonly("threads", &Plan::threads)
      .def_readonly("instruction_set", &Plan::instruction_set)
      .def_readonly("steps", &Plan::steps)
      .def_readonly("prepare_ms", &Plan::prepare_ms)
      .def_property_readonly("accounts", &accounts)
      .def_property_readonly("buffers", &buffers)
      .def("svg", &svg_picture);
}

}  // namespace plimsoll::bindings
