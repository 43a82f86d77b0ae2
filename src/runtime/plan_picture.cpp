#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "plimsoll/plan.h"

namespace plimsoll {
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

// Names come from files: no markup, no control characters.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f ? '?' : c;
  }
  return out;
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string human_bytes(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) value /= 1024, ++unit;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

constexpr const char* kStyle = R"(
 .picture { --ink: #1b1f24; --paper: #ffffff; --grid: #d5dae0; --line: #b42318; }
 @media (prefers-color-scheme: dark) {
  .picture { --ink: #e6e8eb; --paper: #14171a; --grid: #3a4047; --line: #ff7a6b; }
 }
 .picture .paper { fill: var(--paper); }
 .picture text { fill: var(--ink); font: 12px system-ui, sans-serif; }
 .picture .grid { stroke: var(--grid); stroke-width: 1; }
 .picture .peak { stroke: var(--line); stroke-width: 1.5; stroke-dasharray: 6 4; }
 .picture rect.b { stroke: var(--paper); stroke-width: 0.5; fill-opacity: 0.85; }
 .picture rect.b:hover { fill-opacity: 1; stroke: var(--ink); stroke-width: 1.5; }
)";

// Neighbours get hues that are far apart; both themes can bear them.
std::string color(size_t index) {
  return fmt::format("hsl({}, 55%, 52%)", index * 137 % 360);
}

struct Canvas {
  double left = 90, top = 40, width = 1000, height = 480;
  double total_width() const { return left + width + 20; }
  double total_height() const { return top + height + 50; }
};

std::string axes(const Plan& plan, const Canvas& frame) {
  std::string svg;
  const int64_t bytes = arena_bytes(plan), steps = step_count(plan);
  constexpr int kTicks = 4;
  for (int i = 0; i <= kTicks; ++i) {
    const double y = frame.top + frame.height * (kTicks - i) / kTicks;
    const double x = frame.left + frame.width * i / kTicks;
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>)", frame.left,
                       frame.left + frame.width, y, y);
    svg += fmt::format(R"(<text x="{}" y="{}" text-anchor="end">{}</text>)", frame.left - 8, y + 4,
                       human_bytes(bytes * i / kTicks));
    svg += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)", x,
                       frame.top + frame.height + 18, steps * i / kTicks);
  }
  svg += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">step</text>)", frame.left + frame.width / 2,
                     frame.top + frame.height + 38);
  return svg + "\n";
}

std::string boxes(const Plan& plan, const Canvas& frame) {
  std::string svg;
  const double per_byte = frame.height / static_cast<double>(arena_bytes(plan));
  const double per_step = frame.width / static_cast<double>(step_count(plan));
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const PlannedBuffer& buffer = plan.buffers[i];
    const double height = static_cast<double>(buffer.size_bytes) * per_byte;
    svg += fmt::format(
        "<rect class=\"b\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
        "fill=\"{}\"><title>{}\n"
        "made by {}\n{} bytes at offset {}\nsteps {} to {}</title></rect>\n",
        frame.left + static_cast<double>(buffer.first_step) * per_step,
        frame.top + frame.height - static_cast<double>(buffer.offset) * per_byte - height,
        static_cast<double>(buffer.end_step - buffer.first_step) * per_step, height, color(i),
        escaped(buffer.name), escaped(buffer.node), grouped(buffer.size_bytes), grouped(buffer.offset),
        buffer.first_step, buffer.end_step);
  }
  return svg;
}

std::string peak_line(const Plan& plan, const Canvas& frame) {
  const auto at = std::find(plan.steps.begin(), plan.steps.end(), plan.node_at_peak);
  if (at == plan.steps.end()) return "";
  const double x = frame.left + frame.width * (static_cast<double>(at - plan.steps.begin()) + 0.5) /
                                    static_cast<double>(step_count(plan));
  return fmt::format(
      R"(<line class="peak" x1="{0:.2f}" x2="{0:.2f}" y1="{1}" y2="{2}"><title>peak at {3}</title></line>)"
      "\n",
      x, frame.top, frame.top + frame.height, escaped(plan.node_at_peak));
}

}  // namespace

std::string svg_picture(const Plan& plan) {
  const Canvas frame;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"picture\" viewBox=\"0 0 {0} {1}\" "
             "width=\"{0}\" height=\"{1}\" role=\"img\">\n<style>{2}</style>\n"
             "<rect class=\"paper\" width=\"{0}\" height=\"{1}\"/>\n"
             "<text x=\"{3}\" y=\"24\">planned memory: {4} bytes, {5} buffers, {6} steps</text>\n",
             frame.total_width(), frame.total_height(), kStyle, frame.left, grouped(arena_bytes(plan)),
             plan.buffers.size(), plan.steps.size()) +
         axes(plan, frame) + boxes(plan, frame) + peak_line(plan, frame) + "</svg>\n";
}

}  // namespace plimsoll
