#include "frontier_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report.h"

namespace plimsoll::cli {
namespace {

constexpr double kWidth = 720, kHeight = 420, kLeft = 86, kRight = 24, kTop = 46, kBottom = 58;

constexpr const char* kStyle = R"(
 text { font: 13px system-ui, sans-serif; fill: #1b1f24; } .title { font-size: 15px; font-weight: 600; }
 .back { fill: #fff; } .grid { stroke: #d8dde3; } .axis { stroke: #6b7480; }
 .path { fill: none; stroke: #2f6fb3; stroke-width: 2; } .point { fill: #fff; stroke: #2f6fb3; stroke-width: 2; }
 .chosen { fill: #2f6fb3; stroke: #2f6fb3; } .note { paint-order: stroke; stroke: #fff; stroke-width: 4px; } .line { stroke: #c2452d; stroke-dasharray: 6 4; } .limit { fill: #c2452d; }
 @media (prefers-color-scheme: dark) { text { fill: #e6e8eb; } .back { fill: #14171a; } .grid { stroke: #2b3138; }
  .point { fill: #14171a; } .note { stroke: #14171a; } .path, .point { stroke: #74aee8; } .chosen { fill: #74aee8; stroke: #74aee8; } }
)";

// 1, 2 or 5 times a power of ten, so that there are about five steps.
double nice_step(double range) {
  const double rough = std::max(range, 1e-12) / 5, power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

struct Axis {
  double low, high, step;
  Axis(double from, double to) {
    step = nice_step(to - from);
    low = std::floor(from / step) * step;
    high = std::max(std::ceil(to / step) * step, low + step);
  }
  double share(double value) const { return (value - low) / (high - low); }
};

}  // namespace

std::string frontier_picture(const QuantizeReport& report, std::optional<double> max_loss) {
  int64_t largest = 0;
  for (const QuantizeReport::Candidate& c : report.frontier) largest = std::max(largest, c.bytes);
  const double unit = largest < 1'000'000 ? 1e3 : 1e6;
  const auto size = [&](const QuantizeReport::Candidate& c) { return static_cast<double>(c.bytes) / unit; };
  double least = HUGE_VAL, most = 0, worst = max_loss.value_or(0) * 100;
  for (const QuantizeReport::Candidate& c : report.frontier) {
    least = std::min(least, size(c));
    most = std::max(most, size(c));
    if (std::isfinite(c.loss)) worst = std::max(worst, 100 * c.loss);
  }
  if (report.frontier.empty()) least = 0;
  const Axis bytes(least, most), loss(0, worst);
  const auto x = [&](double units) { return kLeft + bytes.share(units) * (kWidth - kLeft - kRight); };
  const auto y = [&](double percent) {
    return kHeight - kBottom - std::min(loss.share(percent), 1.0) * (kHeight - kTop - kBottom);
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\">\n"
      "<style>{2}</style>\n<rect class=\"back\" width=\"{0}\" height=\"{1}\"/>\n"
      "<text class=\"title\" x=\"{3}\" y=\"26\">Bytes of the file against what is lost</text>\n",
      kWidth, kHeight, kStyle, kLeft);
  for (double at = loss.low; at <= loss.high + loss.step / 2; at += loss.step)
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}%</text>\n",
        kLeft, kWidth - kRight, y(at), kLeft - 8, y(at) + 4, at);
  for (double at = bytes.low; at <= bytes.high + bytes.step / 2; at += bytes.step)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.6g}</text>\n", x(at),
                       kHeight - kBottom + 20, at);
  svg += fmt::format(
      "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
      "<text x=\"{3}\" y=\"{4}\" text-anchor=\"middle\">{5}</text>\n",
      kLeft, kWidth - kRight, kHeight - kBottom, (kLeft + kWidth - kRight) / 2, kHeight - 14,
      unit < 1e6 ? "kilobytes" : "megabytes");
  if (max_loss) {
    // At the end where the chosen point is not: others crowd around it.
    const bool is_left = std::any_of(
        report.frontier.begin(), report.frontier.end(),
        [&](const QuantizeReport::Candidate& c) { return c.chosen && bytes.share(size(c)) > 0.5; });
    svg += fmt::format(
        "<line class=\"line\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"limit\" x=\"{5}\" y=\"{3:.1f}\" text-anchor=\"{6}\">allowed: {4:.4g}%</text>\n",
        kLeft, kWidth - kRight, y(100 * *max_loss), y(100 * *max_loss) - 6, 100 * *max_loss,
        is_left ? kLeft : kWidth - kRight, is_left ? "start" : "end");
  }
  std::string path, points, chosen;
  for (const QuantizeReport::Candidate& c : report.frontier) {
    const double px = x(size(c)), py = y(std::isfinite(c.loss) ? 100 * c.loss : worst);
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", px, py);
    (c.chosen ? chosen : points) += fmt::format(
        "<circle class=\"point{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{} layers in floats: {} bytes, "
        "loss {:.4f}%</title></circle>\n",
        c.chosen ? " chosen" : "", px, py, c.float_layers, grouped(c.bytes), 100 * c.loss);
    // Below its point, where the line of what is allowed is not; above it where there is no room below.
    const bool is_low = py > kHeight - kBottom - 32;
    if (c.chosen)
      chosen += fmt::format(
          "<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{} of {} layers in "
          "floats</text>\n",
          px, is_low ? py - 12 : py + 24, bytes.share(size(c)) > 0.6 ? "end" : "start", c.float_layers,
          report.layers.size());
  }
  return svg + fmt::format("<polyline class=\"path\" points=\"{}\"/>\n", path) + points + chosen + "</svg>\n";
}

}  // namespace plimsoll::cli
