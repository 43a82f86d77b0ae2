#include "receipt.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <string.h>

namespace plimsoll::cli {
namespace {

std::string seconds(double milliseconds) {
  return milliseconds < 1000 ? fmt::format("{:.1f} ms", milliseconds)
                             : fmt::format("{:.2f} s", milliseconds / 1000);
}

std::string ending_text(const Receipt& receipt) {
  const std::string by_signal =
      receipt.signal != 0 ? fmt::format("signal {} ({})", receipt.signal, ::strsignal(receipt.signal)) : "";
  switch (receipt.ending) {
    case Ending::kExited:
      return fmt::format("exited with {}", receipt.exit_code);
    case Ending::kSignalled:
      return "ended by " + by_signal;
    case Ending::kCancelled:
      return "cancelled";
    default:
      return fmt::format("stopped: {}", ending_name(receipt.ending));
  }
}

std::string line(const char* name, const std::string& text) {
  return fmt::format("  {:<10}{}\n", name, text);
}

Json leftovers_json(const std::vector<Leftover>& leftovers) {
  Json list = Json::array();
  for (const Leftover& left : leftovers)
    list.push_back({{"kind", left.kind},
                    {"name", left.name},
                    {"owner", left.owner >= 0 ? Json(left.owner) : Json()},
                    {"bytes", left.bytes},
                    {"removed", left.removed}});
  return list;
}

std::string leftover_text(const Leftover& left) {
  const std::string owner = left.owner >= 0 ? fmt::format(", user {}", left.owner) : "";
  return fmt::format("{} {}: {}{}{}", left.kind, left.name, human_bytes(left.bytes), owner,
                     left.removed ? "; removed" : "");
}

std::string returned_text(const Receipt& receipt) {
  if (!receipt.residue_known)
    return "cannot be told here: the job had no memory cgroup of its own that would count it";
  return fmt::format("{} of cache and slab; residue of the job: {}", human_bytes(receipt.returned_bytes),
                     human_bytes(receipt.residue_bytes));
}

}  // namespace

Json receipt_json(const Receipt& receipt) {
  return {{"ending", ending_name(receipt.ending)},
          {"exit_code", receipt.exit_code},
          {"signal", receipt.signal},
          {"wall_ms", receipt.wall_ms},
          {"cpu_ms", receipt.cpu_ms},
          {"peak_bytes", receipt.peak_bytes},
          {"limit_bytes", receipt.limit_bytes},
          {"limit_hit", receipt.limit_hit},
          {"thrashing", receipt.thrashing},
          {"byte_seconds", receipt.byte_seconds},
          {"returned_bytes", receipt.returned_bytes},
          {"residue_bytes", receipt.residue_known ? Json(receipt.residue_bytes) : Json()},
          {"socket_peak_bytes", receipt.socket_peak_bytes},
          {"processes_killed", receipt.processes_killed},
          {"kill_to_report_ms", receipt.kill_to_report_ms},
          {"mechanism", receipt.mechanism},
          {"cannot_promise", receipt.cannot_promise},
          {"sandbox", receipt.sandbox},
          {"noticed", receipt.noticed},
          {"alive", receipt.alive},
          {"leftovers", leftovers_json(receipt.leftovers)}};
}

std::string receipt_text(const Receipt& receipt) {
  std::string text = fmt::format("plimsoll: {} after {}, CPU {}\n", ending_text(receipt),
                                 seconds(receipt.wall_ms), seconds(receipt.cpu_ms));
  text += line("peak", human_bytes(receipt.peak_bytes) +
                           (receipt.limit_bytes > 0 ? " of " + human_bytes(receipt.limit_bytes) : "") +
                           ", by " + receipt.mechanism + (receipt.limit_hit ? "; the limit was hit" : ""));
  if (receipt.thrashing)
    text += line("thrashing", "it only read its own program again and again: give it a larger limit");
  text += line("billed", fmt::format("{:.3f} MiB s", receipt.byte_seconds / (1 << 20)));
  if (receipt.socket_peak_bytes > 0) text += line("sockets", human_bytes(receipt.socket_peak_bytes));
  text += line("returned", returned_text(receipt));
  if (receipt.processes_killed > 0)
    text += line("killed", fmt::format("{} still alive when the job ended", receipt.processes_killed));
  if (!receipt.alive.empty())
    text += line("ALIVE", fmt::format("{} could not be ended: {}", receipt.alive.size(),
                                      fmt::join(receipt.alive, ", ")));
  for (const std::string& sentence : receipt.noticed) text += line("noticed", sentence);
  for (const Leftover& left : receipt.leftovers) text += line("left", leftover_text(left));
  for (const std::string& layer : receipt.sandbox) text += line("sandbox", layer);
  for (const std::string& doubt : receipt.cannot_promise) text += line("but", doubt);
  return text;
}

}  // namespace plimsoll::cli
