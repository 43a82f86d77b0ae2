// plimsoll/gradient.h.
#include <plimsoll/gradient.h>
#include <pybind11/stl.h>

#include "engine.h"
#include "unlocked.h"

namespace py = pybind11;

namespace plimsoll::bindings {
namespace {

GradientOptions gradient_options(const py::dict& options, const std::vector<std::string>& inputs,
                                 const std::string& recompute, const std::string& precision) {
  GradientOptions result;
  result.inputs = inputs;
  result.recompute = recompute;
  if (precision != "f32" && precision != "bf16")
    throw Error(ErrorCode::kInvalidArgument, "precision: expected f32 or bf16, found '" + precision + "'");
  if (precision == "bf16") result.precision = TrainingPrecision::kBFloat16;
  result.session = session_options_from(options);
  return result;
}

// Both read the bytes of the model while they live.
py::object handle_of(std::unique_ptr<Session> session, const py::bytes& model,
                     const SessionOptions& options) {
  if (session == nullptr) return py::none();
  auto open = std::make_shared<OpenSession>();
  open->kept = model;
  open->options = options;
  open->session = std::move(session);
  return py::cast(std::make_unique<SessionHandle>(std::move(open)));
}

py::dict open_gradient_sessions(const py::bytes& model, const py::dict& options,
                                const std::vector<std::string>& inputs, const std::string& recompute,
                                const std::string& precision) {
  const GradientOptions native = gradient_options(options, inputs, recompute, precision);
  const std::string_view bytes = model;
  GradientSessions made;
  unlocked([&] { made = OpenGradientSessions(environment(), bytes.data(), bytes.size(), native); });
  py::dict result;
  result["forward"] = handle_of(std::move(made.forward), model, native.session);
  result["backward"] = handle_of(std::move(made.backward), model, native.session);
  result["outputs"] = made.outputs;
  result["cotangents"] = made.cotangents;
  result["gradients"] = made.gradients;
  result["stashed"] = made.stashed;
  result["statistics"] = made.statistics;
  result["draws"] = made.draws;
  result["unknown_clusters"] = made.unknown_clusters;
  result["stashed_bytes"] = made.stashed_bytes;
  result["all_stashed_bytes"] = made.all_stashed_bytes;
  return result;
}

std::string describe_gradient_memory(const py::bytes& model, const py::dict& options,
                                     const std::vector<std::string>& inputs, const std::string& recompute,
                                     const std::string& precision, const Shapes& shapes, bool devinfo) {
  const GradientOptions native = gradient_options(options, inputs, recompute, precision);
  const std::string_view bytes = model;
  std::string table;
  unlocked([&] {
    table = DescribeGradientMemory(environment(), bytes.data(), bytes.size(), native, shapes,
                                   devinfo ? TableDetail::kDevInfo : TableDetail::kInfo);
  });
  return table;
}

}  // namespace

void bind_gradient(py::module_& module) {
  module.def("open_gradient_sessions", &open_gradient_sessions, py::arg("model"), py::arg("options"),
             py::arg("inputs"), py::arg("recompute"), py::arg("precision"));
  module.def("describe_gradient_memory", &describe_gradient_memory, py::arg("model"), py::arg("options"),
             py::arg("inputs"), py::arg("recompute"), py::arg("precision"), py::arg("shapes"),
             py::arg("devinfo"));
}

}  // namespace plimsoll::bindings
