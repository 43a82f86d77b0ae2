#include <fmt/core.h>
#include <plimsoll/plan.h>

#include <memory>

#include "command.h"
#include "files.h"
#include "options.h"
#include "report.h"

namespace plimsoll::cli {
namespace {

constexpr int kDoesNotFit = 1;

struct PlaceCommand {
  std::string problem, capacity, output;
  double seconds = 10;
  bool json = false;
};

int place(const PlaceCommand& command) {
  PlaceOptions options;
  options.seconds = command.seconds;
  if (!command.capacity.empty()) {
    options.capacity_bytes = parse_bytes(command.capacity, "--capacity");
    if (options.capacity_bytes == 0) throw UsageError("--capacity: expected at least one byte");
  }
  const PlacedProblem placed = PlaceProblem(read_file(command.problem), options);
  if (!command.output.empty()) {
    NewFiles files;
    files.add(command.output, {placed.csv});
    files.commit();
  }
  if (command.json) {
    JsonOutput().finish({{"buffers", placed.buffers},
                         {"peak", placed.peak_bytes},
                         {"lower_bound", placed.lower_bound_bytes},
                         {"seconds", placed.seconds},
                         {"proven", placed.proven},
                         {"fits", placed.fits}});
  } else {
    std::string text = fmt::format("{} buffers: peak {} bytes, lower bound {}, {:.3f} s{}\n",
                                   grouped(static_cast<int64_t>(placed.buffers)), grouped(placed.peak_bytes),
                                   grouped(placed.lower_bound_bytes), placed.seconds,
                                   placed.proven ? "" : " (perhaps not the best)");
    if (!placed.fits)
      text += fmt::format("{} {} bytes\n", placed.proven ? "no placement fits" : "found none that fits",
                          grouped(options.capacity_bytes));
    print(text);
  }
  return placed.fits ? 0 : kDoesNotFit;
}

}  // namespace

Command place_command(Arguments parent) {
  Arguments arguments = parent.add_command("place", "Give buffers with known lifetimes their offsets");
  auto command = std::make_shared<PlaceCommand>();
  arguments
      .add_option(
          "PROBLEM.csv", command->problem,
          "rows of id,lower,upper,size under that header; lifetimes are half-open; alignment and offset (a "
          "pin) may follow")
      .required();
  arguments.add_option(
      "--capacity", command->capacity,
      "bytes, such as 1048576 or 1MiB: stop at the first placement that fits; exit code 1 if none does");
  arguments.add_option("--seconds", command->seconds, "look for a better placement no longer than this (10)")
      .range(0.0, 1e6);
  arguments.add_option("--output", command->output, "where the rows go, each with its offset");
  add_json_option(arguments, command->json);
  arguments.footer("Example: plimsoll place problem.csv --capacity 1MiB --seconds 5 --output placed.csv");
  return {arguments, [command] { return place(*command); }};
}

}  // namespace plimsoll::cli
