#include <fmt/core.h>
#include <plimsoll/operators.h>

#include <memory>

#include "command.h"
#include "options.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

Json number_json(size_t count, bool any) {
  return any ? Json(nullptr) : Json(count);
}

Json to_json(const std::vector<OperatorInfo>& operators) {
  Json list = Json::array();
  for (const OperatorInfo& op : operators)
    list.push_back({{"domain", op.domain},
                    {"name", op.name},
                    {"inputs", {op.least_inputs, number_json(op.most_inputs, op.any_number_of_inputs)}},
                    {"outputs", {op.least_outputs, number_json(op.most_outputs, op.any_number_of_outputs)}},
                    {"deterministic", op.deterministic},
                    {"has_bodies", op.has_bodies},
                    {"packs_weights", op.packs_weights}});
  return {{"operators", list}};
}

std::string range_text(size_t least, size_t most, bool any) {
  if (any) return fmt::format("{} or more", least);
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

std::string to_text(const std::vector<OperatorInfo>& operators) {
  std::string text = fmt::format("{:<28} {:<36} {:<12} {}\n", "domain", "operator", "inputs", "outputs");
  for (const OperatorInfo& op : operators)
    text += fmt::format("{:<28} {:<36} {:<12} {}\n", op.domain.empty() ? "ai.onnx" : op.domain, op.name,
                        range_text(op.least_inputs, op.most_inputs, op.any_number_of_inputs),
                        range_text(op.least_outputs, op.most_outputs, op.any_number_of_outputs));
  return text + fmt::format("{} operators\n", operators.size());
}

}  // namespace

Command operators_command(Arguments parent) {
  Arguments arguments = parent.add_command("operators", "List the operators that this version runs");
  auto json = std::make_shared<bool>(false);
  add_json_option(arguments, *json);
  arguments.footer("Example: plimsoll operators | grep com.microsoft");
  return {arguments, [json] {
            const std::vector<OperatorInfo> operators = GetOperators();
            if (*json) {
              JsonOutput().finish(to_json(operators));
            } else {
              print(to_text(operators));
            }
            return 0;
          }};
}

}  // namespace plimsoll::cli
