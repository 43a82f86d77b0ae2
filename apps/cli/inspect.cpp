#include <fmt/core.h>
#include <plimsoll/model.h>

#include <algorithm>
#include <memory>

#include "command.h"
#include "options.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

struct InspectOptions {
  std::string model;
  bool json = false;
  bool strict = false;
  std::vector<std::string> custom_ops;
};

Json values_json(const std::vector<ValueInfo>& infos) {
  Json values = Json::array();
  for (const ValueInfo& info : infos) {
    Json shape = nullptr;
    if (info.ranked) shape = Json::array();
    for (size_t d = 0; d < info.dims.size(); ++d)
      shape.push_back(info.dims[d] >= 0 ? Json(info.dims[d]) : Json(info.symbols[d]));
    values.push_back(
        {{"name", info.name}, {"type", info.type_text}, {"shape", shape}, {"has_default", info.has_default}});
  }
  return values;
}

Json to_json(const ModelInfo& info) {
  return {{"producer", info.producer},
          {"graph", info.graph_name},
          {"ir_version", info.ir_version},
          {"opsets", info.opsets},
          {"inputs", values_json(info.inputs)},
          {"outputs", values_json(info.outputs)},
          {"nodes", info.node_count},
          {"operators", info.operators},
          {"not_implemented", info.not_implemented},
          {"weights", info.weight_count},
          {"weight_bytes", info.weight_bytes},
          {"metadata", info.metadata}};
}

std::string values_text(const char* title, const std::vector<ValueInfo>& infos) {
  std::string text = fmt::format("{}\n", title);
  for (const ValueInfo& info : infos)
    text += fmt::format("  {:<20} {}{}\n", info.name, info.type_text,
                        info.has_default ? "  (has a default)" : "");
  return text;
}

std::string operators_text(const ModelInfo& info) {
  std::vector<std::pair<std::string, int64_t>> sorted(info.operators.begin(), info.operators.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second > b.second; });
  std::string text = fmt::format("operators ({} nodes)\n", info.node_count);
  for (const auto& [name, count] : sorted) {
    const bool missing = std::count(info.not_implemented.begin(), info.not_implemented.end(), name) > 0;
    text += fmt::format("  {:>5}  {}{}\n", count, name, missing ? "  (not implemented)" : "");
  }
  return text;
}

int inspect(const InspectOptions& options) {
  SessionOptions session_options;
  session_options.strict = options.strict;
  session_options.custom_ops_libraries = options.custom_ops;
  const Model model(Env(), options.model, session_options);
  const ModelInfo& info = model.GetInfo();
  if (options.json) {
    Json json = to_json(info);
    json["warnings"] = model.GetWarnings();
    JsonOutput().finish(json);
    return 0;
  }
  print_warnings(model.GetWarnings());
  std::string opsets;
  for (const auto& [domain, version] : info.opsets)
    opsets += fmt::format("{}{} {}", opsets.empty() ? "" : ", ", domain, version);
  std::string text =
      fmt::format("{}\n  made by {}, opset {}, IR version {}\n", options.model,
                  info.producer.empty() ? "an unnamed producer" : info.producer, opsets, info.ir_version);
  text += values_text("inputs", info.inputs) + values_text("outputs", info.outputs) + operators_text(info);
  text += fmt::format("weights\n  {} tensors, {} bytes ({})\n", info.weight_count, grouped(info.weight_bytes),
                      human_bytes(info.weight_bytes));
  print(text);
  return 0;
}

}  // namespace

Command inspect_command(Arguments parent) {
  Arguments arguments =
      parent.add_command("inspect", "Show inputs, outputs, operators and weights of a model");
  auto options = std::make_shared<InspectOptions>();
  add_model_option(arguments, options->model);
  add_strict_option(arguments, options->strict);
  add_custom_ops_option(arguments, options->custom_ops);
  add_json_option(arguments, options->json);
  arguments.footer("Example: plimsoll inspect model.onnx");
  return {arguments, [options] { return inspect(*options); }};
}

}  // namespace plimsoll::cli
