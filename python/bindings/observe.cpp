// plimsoll/observe.h. Figures cross as JSON, one object per struct, which python/plimsoll/observe.py unpacks:
// a figure that is added to the header is there in Python too.
#include <plimsoll/observe.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

std::string judge(const std::vector<std::string>& lines, double minimum_seconds) {
  return without_lock([&] {
    std::vector<Sample> samples;
    samples.reserve(lines.size());
    for (const std::string& line : lines) samples.push_back(SampleFromJson(line));
    JudgeOptions options;
    options.minimum_seconds = minimum_seconds;
    return ToJson(Judge(samples, options));
  });
}

}  // namespace

void bind_observe(py::module_& module) {
  const auto create = [](int pid, bool tree, double cost_limit, std::string proc_root,
                         std::string cgroup_root) {
    ObserverOptions options;
    options.tree = tree;
    options.cost_limit = cost_limit;
    options.proc_root = std::move(proc_root);
    options.cgroup_root = std::move(cgroup_root);
    return without_lock([&] { return Observer(pid, options); });
  };
  py::class_<Observer>(module, "Observer")
      .def(py::init(create), py::arg("pid"), py::arg("tree"), py::arg("cost_limit"), py::arg("proc_root"),
           py::arg("cgroup_root"))
      .def(
          "read",
          [](Observer& self, int64_t iteration) {
            return without_lock([&] { return ToJson(self.Read(iteration)); });
          },
          py::arg("iteration"))
      .def("account", [](Observer& self) { return without_lock([&] { return ToJson(self.Account()); }); })
      .def_property_readonly("ended", &Observer::Ended)
      .def_property_readonly("own_cpu_seconds", &Observer::OwnCpuSeconds);
  module.def("judge", &judge, py::arg("samples"), py::arg("minimum_seconds"));
}

}  // namespace plimsoll::bindings
