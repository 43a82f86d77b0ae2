#include "lab_report.h"

#include <fmt/core.h>

#include <algorithm>

namespace plimsoll::cli {
namespace {

double mib(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

std::string signed_mib(int64_t bytes) {
  return fmt::format("{:+.1f} MiB", mib(bytes));
}

const WayResult* find(const LabResult& result, const char* way) {
  for (const WayResult& row : result.ways)
    if (row.way == way) return &row;
  return nullptr;
}

int64_t process_left(const WayResult& row) {
  return row.after.process_bytes - row.before.process_bytes;
}

int64_t container_left(const WayResult& row) {
  return row.after.container_bytes - row.before.container_bytes;
}

int64_t cache_left(const WayResult& row) {
  return row.after.parts.page_cache_bytes - row.before.parts.page_cache_bytes;
}

int64_t anonymous_left(const WayResult& row) {
  return row.after.parts.anonymous_bytes - row.before.parts.anonymous_bytes;
}

// How much of what the peak added has come back, in percent.
double returned_percent(int64_t before, int64_t peak, int64_t after) {
  return peak > before ? 100.0 * static_cast<double>(peak - after) / static_cast<double>(peak - before)
                       : 100.0;
}

constexpr int64_t kNoise = int64_t{2} << 20;

std::string about_collecting(const WayResult& row) {
  const int64_t left = process_left(row);
  return fmt::format(
      "collecting: after gc.collect() {} stay in the process, {:.1f} times the {:.1f} MiB before. The "
      "article says that "
      "the collector cannot free it: {}.",
      signed_mib(left),
      static_cast<double>(row.after.process_bytes) /
          static_cast<double>(std::max<int64_t>(row.before.process_bytes, 1)),
      mib(row.before.process_bytes), left > kNoise ? "so it is here" : "here it did");
}

std::string about_trimming(const WayResult& collected, const WayResult& trimmed) {
  const int64_t gain = process_left(collected) - process_left(trimmed);
  return fmt::format(
      "resetting caches and malloc_trim: {} stay in the process, {} against collecting alone. The article "
      "saw no drop "
      "on its dashboard: {}.",
      signed_mib(process_left(trimmed)), signed_mib(-gain),
      process_left(trimmed) <= kNoise ? "here it all comes back"
      : gain <= kNoise                ? "neither is there one here"
      : gain > process_left(trimmed)  ? "here most of it comes back, not all"
                                      : "here part of it comes back, most does not");
}

std::string about_fork(const WayResult& row) {
  const int64_t left = container_left(row);
  std::string text =
      fmt::format("fork: the process's view ends {} against before; the container's view stays at {}",
                  signed_mib(process_left(row)), signed_mib(left));
  if (!row.after.has_container) return text + " (not known: no memory cgroup).";
  text += fmt::format(", of which page cache {}, anonymous memory {}.", signed_mib(cache_left(row)),
                      signed_mib(anonymous_left(row)));
  if (left > kNoise && cache_left(row) * 2 > left && anonymous_left(row) < kNoise) {
    text +=
        " The article blames copy-on-write and fragmented arenas: those would be anonymous memory of the "
        "parent, and "
        "there is none. It is the page cache of the files that the worker read, charged to the container "
        "that read "
        "them first.";
  }
  return text;
}

std::string about_spawn(const WayResult& forked, const WayResult& spawned) {
  const int64_t left = container_left(spawned);
  std::string text = fmt::format(
      "spawn: the container's view stays at {}, {} against fork; of it page cache {}, anonymous memory {}. "
      "The article "
      "says that spawn gives everything back: {}.",
      signed_mib(left), signed_mib(left - container_left(forked)), signed_mib(cache_left(spawned)),
      signed_mib(anonymous_left(spawned)), left > kNoise ? "it does not here" : "so it does here");
  if (left > kNoise && cache_left(spawned) > kNoise)
    text += " Files are cached however the worker was started.";
  if (spawned.after.processes > spawned.before.processes)
    text +=
        " One more process is there than before: multiprocessing's resource tracker, which spawn starts and "
        "keeps.";
  return text;
}

std::string about_receipt(const WayResult& row) {
  return fmt::format(
      "plimsoll exec (spawn, then the job's own cgroup is reclaimed): the container's view stays at {}.",
      signed_mib(container_left(row)));
}

Json views_json(const TwoViews& views) {
  Json json{{"process_bytes", views.process_bytes}};
  if (!views.has_container) return json;
  json["container_bytes"] = views.container_bytes;
  json["anonymous_bytes"] = views.parts.anonymous_bytes;
  json["page_cache_bytes"] = views.parts.page_cache_bytes;
  json["slab_bytes"] = views.parts.slab_bytes;
  json["shared_memory_bytes"] = views.parts.shared_memory_bytes;
  return json;
}

constexpr const char* kStyle = R"(
 .lab { --ink: #1b1f24; --paper: #ffffff; --grid: #d5dae0; --process: #2f6f9f; --container: #c2571a; }
 @media (prefers-color-scheme: dark) {
  .lab { --ink: #e6e8eb; --paper: #14171a; --grid: #3a4047; --process: #6fb1e0; --container: #f0935a; }
 }
 .lab .paper { fill: var(--paper); }
 .lab text { fill: var(--ink); font: 12px system-ui, sans-serif; }
 .lab text.title { font-size: 15px; font-weight: 600; }
 .lab .grid { stroke: var(--grid); stroke-width: 1; }
 .lab .process { fill: var(--process); }
 .lab .container { fill: var(--container); }
 .lab .before { fill-opacity: 0.45; }
 .lab .peak { fill-opacity: 0.25; }
)";

struct Chart {
  double left = 70, top = 60, height = 300, group = 190, bar = 22;
  int64_t most = 1;
  double y(int64_t bytes) const {
    return top + height * (1 - static_cast<double>(bytes) / static_cast<double>(most));
  }
};

std::string bars(const Chart& chart, double x, const char* view, int64_t before, int64_t peak,
                 int64_t after) {
  std::string svg;
  const std::pair<const char*, int64_t> values[] = {{"before", before}, {"peak", peak}, {"after", after}};
  for (const auto& [moment, bytes] : values) {
    const double y = chart.y(std::max<int64_t>(bytes, 0));
    svg += fmt::format(
        R"(<rect class="{} {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{} {}: {:.1f} MiB</title></rect>)",
        view, moment, x, y, chart.bar, chart.top + chart.height - y, view, moment, mib(bytes));
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{:.0f}</text>)", x + chart.bar / 2,
                       y - 4, mib(bytes));
    x += chart.bar + 3;
  }
  return svg + "\n";
}

std::string grid(const Chart& chart, double width) {
  std::string svg;
  constexpr int kLines = 4;
  for (int line = 0; line <= kLines; ++line) {
    const int64_t bytes = chart.most * line / kLines;
    svg += fmt::format(
        R"(<line class="grid" x1="{0:.0f}" y1="{1:.1f}" x2="{2:.0f}" y2="{1:.1f}"/><text x="{3:.0f}" y="{4:.1f}" text-anchor="end">{5:.0f} MiB</text>)",
        chart.left, chart.y(bytes), width - 20, chart.left - 8, chart.y(bytes) + 4, mib(bytes));
  }
  return svg + "\n";
}

}  // namespace

std::vector<std::string> lab_findings(const LabResult& result) {
  std::vector<std::string> findings;
  const WayResult* collected = find(result, "in process");
  const WayResult* trimmed = find(result, "reset and trim");
  const WayResult* forked = find(result, "fork");
  const WayResult* spawned = find(result, "spawn");
  const WayResult* receipt = find(result, "plimsoll exec");
  if (collected != nullptr) findings.push_back(about_collecting(*collected));
  if (collected != nullptr && trimmed != nullptr) findings.push_back(about_trimming(*collected, *trimmed));
  if (forked != nullptr) findings.push_back(about_fork(*forked));
  if (forked != nullptr && spawned != nullptr && spawned->after.has_container)
    findings.push_back(about_spawn(*forked, *spawned));
  if (receipt != nullptr && receipt->after.has_container) findings.push_back(about_receipt(*receipt));
  return findings;
}

std::string lab_table(const LabResult& result) {
  std::string text = fmt::format("{:<15}{:>30}{:>32}{:>22}\n", "", "the process's view, MiB",
                                 "the container's view, MiB", "of what stays");
  text += fmt::format("{:<15}{:>10}{:>10}{:>10}{:>12}{:>10}{:>10}{:>12}{:>10}\n", "", "before", "peak",
                      "after", "before", "peak", "after", "page cache", "anon");
  for (const WayResult& row : result.ways) {
    text += fmt::format("{:<15}{:>10.1f}{:>10.1f}{:>10.1f}", row.way, mib(row.before.process_bytes),
                        mib(row.peak.process_bytes), mib(row.after.process_bytes));
    if (row.after.has_container) {
      text += fmt::format("{:>12.1f}{:>10.1f}{:>10.1f}{:>+12.1f}{:>+10.1f}", mib(row.before.container_bytes),
                          mib(row.peak.container_bytes), mib(row.after.container_bytes), mib(cache_left(row)),
                          mib(anonymous_left(row)));
    }
    text += "\n";
  }
  return text;
}

std::string lab_svg(const LabResult& result) {
  Chart chart;
  for (const WayResult& row : result.ways)
    chart.most = std::max({chart.most, row.peak.process_bytes, row.peak.container_bytes});
  const double width = chart.left + chart.group * static_cast<double>(result.ways.size()) + 20;
  const double height = chart.top + chart.height + 60;
  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" class="lab" viewBox="0 0 {0:.0f} {1:.0f}" width="{0:.0f}" height="{1:.0f}">)"
      "\n<style>{2}</style>\n",
      width, height, kStyle);
  svg += fmt::format(R"(<rect class="paper" width="{:.0f}" height="{:.0f}"/>)", width, height);
  svg += fmt::format(
      R"(<text class="title" x="{:.0f}" y="24">Memory before a job, at its peak and after it, in MiB</text>)",
      chart.left);
  svg += fmt::format(
      R"(<rect class="process" x="{0:.0f}" y="34" width="12" height="12"/><text x="{1:.0f}" y="44">the process's view</text>)"
      R"(<rect class="container" x="{2:.0f}" y="34" width="12" height="12"/><text x="{3:.0f}" y="44">the container's view</text>)",
      chart.left, chart.left + 18, chart.left + 160, chart.left + 178);
  svg += grid(chart, width);
  double x = chart.left + 12;
  for (const WayResult& row : result.ways) {
    svg +=
        bars(chart, x, "process", row.before.process_bytes, row.peak.process_bytes, row.after.process_bytes);
    svg += bars(chart, x + 3 * (chart.bar + 3) + 10, "container", row.before.container_bytes,
                row.peak.container_bytes, row.after.container_bytes);
    svg += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)",
                       x + 3 * (chart.bar + 3) + 5, chart.top + chart.height + 24, row.way);
    x += chart.group;
  }
  return svg + "</svg>\n";
}

Json lab_json(const LabResult& result) {
  Json ways = Json::array();
  for (const WayResult& row : result.ways) {
    Json json{{"way", row.way}, {"before", views_json(row.before)}, {"after", views_json(row.after)}};
    json["peak"] = {{"process_bytes", row.peak.process_bytes}, {"container_bytes", row.peak.container_bytes}};
    json["process_returned_percent"] =
        returned_percent(row.before.process_bytes, row.peak.process_bytes, row.after.process_bytes);
    json["container_returned_percent"] =
        returned_percent(row.before.container_bytes, row.peak.container_bytes, row.after.container_bytes);
    ways.push_back(std::move(json));
  }
  return {{"kernel", result.kernel},   {"python", result.python},
          {"snippet", result.snippet}, {"mechanism", result.mechanism},
          {"files", result.files},     {"still_cached_bytes", result.still_cached_bytes},
          {"ways", std::move(ways)},   {"findings", lab_findings(result)}};
}

}  // namespace plimsoll::cli
