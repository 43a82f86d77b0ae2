#include <fmt/core.h>
#include <plimsoll/model.h>

#include <filesystem>
#include <memory>

#include "command.h"
#include "options.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

struct OptimizeOptions {
  std::string model, output, fused_domain;
  EngineOptions engine;
  bool json = false;
};

int optimize(const OptimizeOptions& options) {
  const Env env;
  const Model before(env, options.model, options.engine.session_options());
  SaveOptions save;
  save.fused = !options.fused_domain.empty();
  before.Save(options.output, save);
  SessionOptions reading;
  reading.custom_ops_libraries = options.engine.custom_ops;
  const Model after(env, options.output, reading);
  const auto size = static_cast<int64_t>(std::filesystem::file_size(options.output));
  if (options.json) {
    JsonOutput().finish({{"nodes_before", before.GetInfo().node_count},
                         {"nodes_after", after.GetInfo().node_count},
                         {"bytes", size},
                         {"operators", after.GetInfo().operators},
                         {"warnings", before.GetWarnings()}});
  } else {
    print_warnings(before.GetWarnings());
    print(fmt::format("{}: {} nodes, before {}; {} bytes\n", options.output, after.GetInfo().node_count,
                      before.GetInfo().node_count, grouped(size)));
  }
  return 0;
}

}  // namespace

Command optimize_command(Arguments parent) {
  Arguments arguments = parent.add_command("optimize", "Write the optimized model, still ONNX");
  auto options = std::make_shared<OptimizeOptions>();
  arguments.add_option("IN", options->model, "an ONNX file").required();
  arguments.add_option("OUT", options->output, "where the optimized model goes").required();
  arguments.add_option("--level", options->engine.level, "none, basic, extended or all")
      .one_of({"none", "basic", "extended", "all"});
  arguments.add_option("--stop-after", options->engine.stop_after, "run only the first N passes")
      .range(0, 1 << 20);
  arguments
      .add_option("--fused-domain", options->fused_domain,
                  "ai.plimsoll: with our own fused operators, for Plimsoll only")
      .one_of({"ai.plimsoll"});
  arguments.add_flag("--check-passes", options->engine.check_passes,
                     "prove the model anew after every optimization pass");
  add_strict_option(arguments, options->engine.strict);
  add_custom_ops_option(arguments, options->engine.custom_ops);
  add_json_option(arguments, options->json);
  arguments.footer("Example: plimsoll optimize model.onnx smaller.onnx --level extended");
  return {arguments, [options] { return optimize(*options); }};
}

}  // namespace plimsoll::cli
