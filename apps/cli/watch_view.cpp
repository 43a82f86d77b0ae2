#include "watch_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report.h"
#include "watch_line.h"
#include "watch_parts.h"
#include "watch_text.h"

namespace plimsoll::cli {
namespace {

constexpr int kLabelCells = 11;   // "container  "
constexpr int kFigureCells = 11;  // "1023.9 MiB "
constexpr int kRangeCells = 26;   // "  1023.9 MiB to 1023.9 MiB"
constexpr int kNarrowCells = 32;  // below there is no room for labels beside the text

// What one part contributes to a bar.
struct Segment {
  const char* label;
  char letter;
  int ansi;
  int64_t bytes;
};

template <typename View>
std::vector<Segment> segments(const View& view, std::span<const Part<View>> parts) {
  std::vector<Segment> found;
  for (const Part<View>& part : parts)
    if (view.*part.member > 0) found.push_back({part.label, part.letter, part.ansi, view.*part.member});
  if (unexplained(view) > 0) found.push_back({"unexplained", '?', 240, unexplained(view)});
  return found;
}

// `width` cells are `whole` bytes; boundaries are rounded, so that the bar's length is that of the
// sum.
void add_bar(Line& line, const std::vector<Segment>& parts, double whole, int width) {
  double sum = 0;
  int drawn = 0;
  for (const Segment& part : parts) {
    sum += static_cast<double>(part.bytes);
    const int end = std::min(width, static_cast<int>(std::lround(sum / std::max(whole, 1.0) * width)));
    if (end <= drawn) continue;
    std::string cells(static_cast<size_t>(end - drawn), part.letter);
    line.add(cells, fmt::format("38;5;16;48;5;{}", part.ansi));
    drawn = end;
  }
}

// "h heap 80.1 MiB  a arenas 3.0 MiB": the largest parts that fit on one line.
void add_legend(Line& line, std::vector<Segment> parts) {
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Segment& a, const Segment& b) { return a.bytes > b.bytes; });
  for (const Segment& part : parts) {
    const std::string text = fmt::format(" {} {}", part.label, human_bytes(part.bytes));
    if (static_cast<int>(text.size()) + 3 > line.left()) continue;
    line.add(std::string(1, part.letter), fmt::format("38;5;16;48;5;{}", part.ansi)).add(text).add("  ");
  }
}

using Figure = std::function<std::optional<double>(const Sample&)>;

// One character per group of samples, from the least to the largest; a group with a gap is blank.
struct Sparkline {
  std::vector<std::optional<double>> groups;
  double least = 0, largest = 0;
};

Sparkline summarize(const std::vector<Sample>& samples, size_t width, const Figure& figure) {
  Sparkline line;
  const size_t count = samples.size(), groups = std::min(count, width);
  bool any = false;
  for (size_t group = 0; group < groups; ++group) {
    std::optional<double> value;
    for (size_t i = group * count / groups; i < (group + 1) * count / groups; ++i) {
      const std::optional<double> one = figure(samples[i]);
      if (!one) {
        value.reset();
        break;
      }
      value = std::max(value.value_or(*one), *one);
      line.least = any ? std::min(line.least, *one) : *one;
      line.largest = any ? std::max(line.largest, *one) : *one;
      any = true;
    }
    line.groups.push_back(value);
  }
  return line;
}

void add_sparkline(Line& line, const Sparkline& spark, bool utf8) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* kAscii[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
  for (const std::optional<double>& value : spark.groups) {
    if (!value) {
      line.add_cell(" ");
      continue;
    }
    const double range = spark.largest - spark.least;
    const int level = range > 0 ? static_cast<int>((*value - spark.least) / range * 7.999) : 0;
    line.add_cell((utf8 ? kBlocks : kAscii)[std::clamp(level, 0, 7)]);
  }
}

std::optional<double> process_figure(const Sample& sample) {
  if (sample.gap) return {};
  return static_cast<double>(sample.process.kernel_bytes);
}

std::optional<double> container_figure(const Sample& sample) {
  if (sample.gap || !sample.container) return {};
  return static_cast<double>(sample.container->kernel_bytes);
}

class View {
 public:
  View(const WatchHistory& history, const Screen& screen)
      : history_(history), screen_(screen), cells_(std::max(1, screen.columns - 1)) {}

  std::vector<std::string> lines() {
    add_title();
    const Sample* sample = last_reading(history_.samples);
    if (sample) {
      const Sparkline process = summarize(history_.samples, spark_cells(), process_figure);
      add_view("process", segments(sample->process, process_parts()), sample->process.kernel_bytes,
               process.largest);
      if (sample->container) {
        const Sparkline container = summarize(history_.samples, spark_cells(), container_figure);
        const auto limit = static_cast<double>(sample->container->limit_bytes);
        add_view("container", segments(*sample->container, container_parts()),
                 sample->container->kernel_bytes,
                 limit > 0 && limit < 4 * container.largest ? limit : container.largest);
        add_history("process", process);
        add_history("container", container);
      } else {
        add_history("process", process);
      }
    }
    add_verdict();
    const auto most = static_cast<size_t>(std::max(3, screen_.rows - 1));
    if (lines_.size() > most) lines_.resize(most);
    return lines_;
  }

 private:
  Line line() const { return Line(cells_, screen_.colour); }
  void finish(const Line& line) { lines_.push_back(line.text()); }

  void add_title() {
    const double seconds = history_.samples.empty() ? 0 : history_.samples.back().seconds;
    std::string right = clock_text(seconds);
    if (!history_.samples.empty() && history_.samples.back().iteration >= 0)
      right = fmt::format("iteration {}  {}", grouped(history_.samples.back().iteration), right);
    Line title = line();
    const int room = cells_ - static_cast<int>(right.size()) - 2;
    std::string left = target_text(history_.header);
    if (static_cast<int>(left.size()) > room)
      left = left.substr(0, static_cast<size_t>(std::max(0, room - 3))) + "...";
    left.resize(static_cast<size_t>(std::max(0, room)), ' ');
    finish(title.add(left, "1").add("  ").add(right));
    if (!history_.samples.empty() && history_.samples.back().gap)
      finish(line().add(fmt::format("gap: {}", plain_text(history_.samples.back().gap_reason)), "33"));
  }

  void add_view(const char* name, const std::vector<Segment>& parts, int64_t bytes, double whole) {
    Line bar = line();
    if (is_narrow()) {
      finish(line().add(fmt::format("{} {}", name, human_bytes(bytes))));
    } else {
      bar.add(fmt::format("{:<{}}{:>{}} ", name, kLabelCells, human_bytes(bytes), kFigureCells));
    }
    add_bar(bar, parts, whole, bar.left());
    finish(bar);
    Line legend = line();
    legend.add(std::string(label_cells(), ' '));
    add_legend(legend, parts);
    finish(legend);
  }

  bool is_narrow() const { return cells_ < kNarrowCells; }
  size_t label_cells() const { return is_narrow() ? 0 : kLabelCells; }
  // The range stands beside the sparkline only where both have room.
  bool shows_range() const { return cells_ >= kLabelCells + 8 + kRangeCells; }
  size_t spark_cells() const {
    return static_cast<size_t>(cells_) - label_cells() - (shows_range() ? kRangeCells : 0);
  }

  void add_history(const char* name, const Sparkline& spark) {
    Line text = line();
    if (!is_narrow()) text.add(fmt::format("{:<{}}", name, kLabelCells));
    add_sparkline(text, spark, screen_.utf8);
    if (shows_range()) text.add(fmt::format("  {} to {}", amount(spark.least), amount(spark.largest)));
    finish(text);
  }

  void add_sentence(const char* label, const std::string& sentence, const char* style) {
    for (const std::string& piece :
         wrapped(plain_text(sentence), static_cast<size_t>(cells_) - label_cells())) {
      finish(line().add(is_narrow() ? "" : fmt::format("{:<{}}", label, kLabelCells)).add(piece, style));
      label = "";
    }
  }

  void add_verdict() {
    const char* style = "36";
    if (history_.verdict.kind == VerdictKind::kLeak) style = "1;31";
    if (history_.verdict.kind == VerdictKind::kFlat || history_.verdict.kind == VerdictKind::kPlateau)
      style = "1;32";
    if (history_.verdict.kind == VerdictKind::kCache) style = "1;33";
    add_sentence("verdict", verdict_text(history_.verdict), style);
    constexpr size_t kSentences = 3;
    for (size_t i = 0; i < std::min(history_.verdict.evidence.size(), kSentences); ++i)
      add_sentence("", history_.verdict.evidence[i], "0");
  }

  const WatchHistory& history_;
  const Screen& screen_;
  const int cells_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> view_lines(const WatchHistory& history, const Screen& screen) {
  return View(history, screen).lines();
}

}  // namespace plimsoll::cli
