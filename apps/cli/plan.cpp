#include <fmt/format.h>
#include <plimsoll/error.h>
#include <plimsoll/model.h>

#include <memory>

#include "command.h"
#include "files.h"
#include "inputs.h"
#include "interrupt.h"
#include "options.h"
#include "picture.h"
#include "report.h"
#include "solve.h"

namespace plimsoll::cli {
namespace {

struct PlanOptions {
  std::string model, solve, html, svg;
  InputOptions inputs;
  EngineOptions engine;
  bool json = false;
};

Json to_json(const Plan& plan) {
  Json json = {{"concrete", plan.concrete}, {"depends_on_data", plan.depends_on_data}};
  // Without sizes these are not known: null.
  const auto known = [&](Json value) { return plan.concrete ? std::move(value) : Json(); };
  json["peak_bytes"] = known(plan.peak_bytes);
  json["lower_bound_bytes"] = known(plan.lower_bound_bytes);
  // Nor is a limit that is sure to do, where shapes depend on data.
  json["minimum_limit_bytes"] = known(plan.depends_on_data ? Json() : Json(plan.minimum_limit_bytes));
  json["node_at_peak"] = known(plan.node_at_peak);
  json["accounts"] = known(accounts_json(plan));
  json["prepare_ms"] = known(plan.prepare_ms);
  json["formula"] = plan.formula;
  json["symbols"] = plan.symbols;
  json["recomputed"] = recomputed_json(plan);
  if (!plan.recomputed.empty()) {
    json["extra_operations"] = plan.extra_operations;
    json["operations"] = plan.operations;
    json["extra_time"] = plan.extra_time;
    json["saved_bytes"] = plan.saved_bytes;
  }
  json["threads"] = plan.threads;
  json["instruction_set"] = plan.instruction_set;
  return json;
}

void print_plan(const Plan& plan) {
  std::string text;
  if (plan.concrete) {
    text += accounts_table(accounts_json(plan), "peak", plan.peak_bytes);
    const int64_t gap = plan.peak_bytes - plan.lower_bound_bytes;
    text +=
        fmt::format("  {:<16}{:>16}  (gap {}, {:.2f} %)\n", "lower bound", grouped(plan.lower_bound_bytes),
                    grouped(gap), 100.0 * static_cast<double>(gap) / static_cast<double>(plan.peak_bytes));
    text += fmt::format("  {:<16}{:>16}\n", "smallest limit",
                        plan.depends_on_data ? "not known before" : grouped(plan.minimum_limit_bytes));
    text += fmt::format("node at the peak: {}\n", plan.node_at_peak);
    text += recomputed_text(plan);
  }
  // Detectors have pages of it.
  constexpr size_t kLongest = 400;
  const bool is_long = plan.formula.size() > kLongest;
  text += fmt::format("for any shape: {}{}\n", plan.formula.substr(0, kLongest),
                      is_long ? "... (all of it: --json)" : "");
  if (!plan.concrete)
    text +=
        fmt::format("give sizes for a peak: --dim {}=1 or --shape\n", fmt::join(plan.symbols, "=1 --dim "));
  if (plan.depends_on_data) text += "without values whose shape depends on data\n";
  text += fmt::format("{} threads, {}\n", plan.threads, plan.instruction_set);
  constexpr int kWidth = 72, kHeight = 12;
  if (!plan.buffers.empty())
    text += fmt::format("planned memory: offsets upwards, {} steps to the right\n", plan.steps.size()) +
            ascii_picture(plan, kWidth, kHeight);
  print(text);
}

void write_pictures(const PlanOptions& options, const Plan& plan) {
  if (options.svg.empty() && options.html.empty()) return;
  if (!plan.concrete)
    throw Error(ErrorCode::kInvalidArgument,
                "a picture needs sizes: give --shape or --dim for every open dimension");
  NewFiles files;
  if (!options.svg.empty()) files.add(options.svg, {svg_picture(plan)});
  if (!options.html.empty()) files.add(options.html, {html_page(plan, options.model)});
  files.commit();
}

int plan(const PlanOptions& options) {
  catch_interrupts();
  if (!options.solve.empty() && options.engine.limit.empty()) throw UsageError("--solve needs --limit");
  check_outputs(options.model, {{"--svg", options.svg}, {"--html", options.html}});
  SessionOptions session_options = options.engine.session_options();
  const int64_t limit = session_options.memory_limit_bytes;
  // Solving asks for many plans and judges them itself.
  if (!options.solve.empty()) session_options.memory_limit_bytes = 0;
  const Env env = options.engine.make_env();
  Inputs inputs(options.inputs);
  session_options.overridden_initializers = inputs.named();
  const Model model(env, options.model, session_options);
  Json extra;
  if (!options.solve.empty()) {
    const int64_t largest = largest_dim(model, inputs, options.solve, limit);
    inputs.set_dim(options.solve, largest);
    extra = {{"symbol", options.solve}, {"value", largest}, {"limit_bytes", limit}};
  }
  const Plan result = model.MakePlan(inputs.shapes(model.GetInfo().inputs), true);
  write_pictures(options, result);
  if (options.json) {
    Json json = to_json(result);
    if (!extra.is_null()) json["solved"] = extra;
    json["warnings"] = model.GetWarnings();
    JsonOutput().finish(json);
    return 0;
  }
  print_warnings(model.GetWarnings());
  if (!extra.is_null())
    print(fmt::format("largest {} within {} bytes: {}\n", options.solve, grouped(limit),
                      extra["value"].dump()));
  print_plan(result);
  return 0;
}

}  // namespace

Command plan_command(Arguments parent) {
  Arguments arguments = parent.add_command("plan", "Tell the peak before anything is allocated");
  auto options = std::make_shared<PlanOptions>();
  add_model_option(arguments, options->model);
  add_shape_options(arguments, options->inputs);
  add_limit_option(arguments, options->engine);
  arguments.add_option("--solve", options->solve, "the largest size of this symbol that fits --limit");
  arguments.add_option("--svg", options->svg, "write a picture of the lifetimes and offsets");
  arguments.add_option("--html", options->html, "the same as a page");
  add_engine_options(arguments, options->engine);
  add_json_option(arguments, options->json);
  arguments.footer(
      "Example: plimsoll plan model.onnx --shape x=1,3,224,224 --svg plan.svg\n"
      "         plimsoll plan model.onnx --solve batch --limit 256MiB");
  return {arguments, [options] { return plan(*options); }};
}

}  // namespace plimsoll::cli
