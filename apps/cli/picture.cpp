#include "picture.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "report.h"
#include "utf32.h"

namespace plimsoll::cli {
namespace {

int64_t arena_bytes(const Plan& plan) {
  int64_t top = 1;
  for (const PlannedBuffer& buffer : plan.buffers) top = std::max(top, buffer.offset + buffer.size_bytes);
  return top;
}

int64_t step_count(const Plan& plan) {
  auto steps = static_cast<int64_t>(std::max<size_t>(plan.steps.size(), 1));
  for (const PlannedBuffer& buffer : plan.buffers) steps = std::max(steps, buffer.end_step);
  return steps;
}

// Names come from files: no markup, no control characters, and UTF-8 whatever they are.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : utf8_from_utf32(utf32_from_utf8(text))) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  }
  return out;
}

constexpr const char* kPageStyle = R"(
 :root { color-scheme: light dark; }
 body { font: 15px/1.5 system-ui, sans-serif; max-width: 1120px; margin: 2em auto; padding: 0 1em;
  background: #fff; color: #1b1f24; }
 @media (prefers-color-scheme: dark) { body { background: #14171a; color: #e6e8eb; } }
 td { padding: 0.1em 1.5em 0.1em 0; } td.n { text-align: right; font-variant-numeric: tabular-nums; }
 h1, code { overflow-wrap: anywhere; } .wide { overflow-x: auto; } svg { width: 100%; min-width: 640px; height: auto; }
)";

}  // namespace

std::string ascii_picture(const Plan& plan, int width, int height) {
  if (plan.buffers.empty()) return "";
  const auto columns = static_cast<int64_t>(width), rows = static_cast<int64_t>(height);
  const int64_t steps = step_count(plan);
  const int64_t used_columns = std::min(columns, steps);
  const double cell_bytes = static_cast<double>(arena_bytes(plan)) / static_cast<double>(rows);
  std::vector<double> filled(static_cast<size_t>(used_columns * rows));
  for (int64_t x = 0; x < used_columns; ++x) {
    const int64_t step = x * steps / used_columns;
    for (const PlannedBuffer& buffer : plan.buffers) {
      if (step < buffer.first_step || step >= buffer.end_step) continue;
      const double low = static_cast<double>(buffer.offset) / cell_bytes;
      const double high = static_cast<double>(buffer.offset + buffer.size_bytes) / cell_bytes;
      for (auto y = static_cast<int64_t>(low); y < rows && static_cast<double>(y) < high; ++y) {
        const auto cell = static_cast<double>(y);
        filled[static_cast<size_t>(y * used_columns + x)] += std::min(high, cell + 1) - std::max(low, cell);
      }
    }
  }
  constexpr std::string_view kShades = " .:+#";
  std::string text;
  for (int64_t y = rows; y-- > 0;) {
    text += "  |";
    for (int64_t x = 0; x < used_columns; ++x) {
      const double share = filled[static_cast<size_t>(y * used_columns + x)];
      text += kShades[share <= 0 ? 0 : static_cast<size_t>(1 + std::min(share, 0.999) * 4)];
    }
    text += "|\n";
  }
  return text + fmt::format("  +{}+\n", std::string(static_cast<size_t>(used_columns), '-'));
}

std::string html_page(const Plan& plan, const std::string& title) {
  std::string rows;
  const Json accounts = accounts_json(plan);
  for (const auto& [name, bytes] : accounts.items())
    rows += fmt::format("<tr><td>{}</td><td class=\"n\">{}</td></tr>\n", name, grouped(bytes.get<int64_t>()));
  for (const auto& [name, bytes] :
       {std::pair("peak", plan.peak_bytes), {"lower bound", plan.lower_bound_bytes}})
    rows += fmt::format("<tr><td><b>{}</b></td><td class=\"n\"><b>{}</b></td></tr>\n", name, grouped(bytes));
  // Of a training step there is none.
  const std::string formula =
      plan.formula.empty()
          ? ""
          : fmt::format("<p>For any shape, at least: <code>{}</code></p>\n", escaped(plan.formula));
  const std::string picture =
      plan.buffers.empty() ? "" : fmt::format("<div class=\"wide\">{}</div>\n", svg_picture(plan));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><style>{1}</style></head><body>\n"
      "<h1>{0}</h1>\n<table>\n{2}</table>\n{3}"
      "<p>Node at the peak: <code>{4}</code></p>\n{5}</body></html>\n",
      escaped(title), kPageStyle, rows, formula, escaped(plan.node_at_peak), picture);
}

}  // namespace plimsoll::cli
