#include <fmt/format.h>
#include <plimsoll/model.h>

#include <memory>

#include "command.h"
#include "inputs.h"
#include "options.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

struct CompileCommand {
  std::string model, output;
  InputOptions inputs;
  EngineOptions engine;
  bool json = false;
};

// An input that is named a second time begins a second set of shapes.
std::vector<InputOptions> sets_of(const InputOptions& all) {
  std::vector<InputOptions> sets;
  std::map<std::string, size_t> seen;
  for (const std::string& text : all.shapes) {
    const size_t number = seen[parse_shape(text).first]++;
    if (number >= sets.size()) sets.emplace_back().dims = all.dims;
    sets[number].shapes.push_back(text);
  }
  if (sets.empty() && !all.dims.empty()) sets.emplace_back().dims = all.dims;
  return sets;
}

int compile(const CompileCommand& command) {
  const Env env = command.engine.make_env();
  const Model model(env, command.model, command.engine.session_options());
  CompileOptions options;
  for (const InputOptions& set : sets_of(command.inputs))
    options.shapes.push_back(Inputs(set).complete_shapes(model.GetInfo().inputs));
  const CompiledInfo made = model.Compile(command.output, options);
  if (command.json) {
    JsonOutput().finish({{"bytes", made.file_bytes},
                         {"weights_bytes", made.weights_bytes},
                         {"packed_bytes", made.packed_bytes},
                         {"nodes", made.nodes},
                         {"peak_bytes", made.peak_bytes},
                         {"threads", made.threads},
                         {"instruction_set", made.instruction_set}});
    return 0;
  }
  std::string text =
      fmt::format("{}: {} nodes, {} bytes: weights {}, packed {}; {}, {} threads\n", command.output,
                  made.nodes, grouped(made.file_bytes), grouped(made.weights_bytes),
                  grouped(made.packed_bytes), made.instruction_set, made.threads);
  for (const int64_t peak : made.peak_bytes)
    text += fmt::format("  a session's peak {} bytes\n", grouped(peak));
  print(text);
  return 0;
}

}  // namespace

Command compile_command(Arguments parent) {
  Arguments arguments =
      parent.add_command("compile", "Write a file that opens in milliseconds and is shared");
  auto command = std::make_shared<CompileCommand>();
  arguments.add_option("IN", command->model, "an ONNX file").required();
  arguments.add_option("OUT", command->output, "where the compiled file goes, such as model.plim").required();
  add_shape_options(arguments, command->inputs);
  add_limit_option(arguments, command->engine);
  add_engine_options(arguments, command->engine);
  add_json_option(arguments, command->json);
  arguments.footer(
      "An input that is named twice begins a second set of shapes.\n"
      "Example: plimsoll compile model.onnx model.plim --shape x=1,3,224,224 --limit 64MiB");
  return {arguments, [command] { return compile(*command); }};
}

}  // namespace plimsoll::cli
