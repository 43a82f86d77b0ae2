#include "watch_html.h"

#include <fmt/core.h>
#include <sys/random.h>

#include <algorithm>
#include <map>

#include "files.h"
#include "report.h"
#include "watch_parts.h"
#include "watch_text.h"

namespace plimsoll::cli {
namespace {

#include "kPageCss.inc"
#include "kPageHtml.inc"
#include "kPageJs.inc"
#include "kUplotCss.inc"
#include "kUplotJs.inc"

constexpr size_t kMostPoints = 5000;  // a screen has fewer columns

// Inside a script element `<` could end it: in JSON every one of these may be written as an escape.
std::string script_json(const Json& object) {
  std::string out;
  for (const char c : object.dump()) {
    if (c == '<' || c == '>' || c == '&')
      out += fmt::format("\\u{:04x}", c);
    else
      out += c;
  }
  return out;
}

std::string markup_text(const std::string& text) {
  std::string out;
  for (const char c : plain_text(text)) {
    if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
      out += fmt::format("&#{};", static_cast<int>(c));
    else
      out += c;
  }
  return out;
}

// What a stranger cannot guess: a script that slipped in all the same would not run.
std::string make_nonce() {
  unsigned char bytes[16] = {};
  if (::getrandom(bytes, sizeof(bytes), 0) < 0) return "0";
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Few enough points to draw; gaps stay.
std::vector<const Sample*> points(const std::vector<Sample>& samples) {
  const size_t step = std::max<size_t>(1, (samples.size() + kMostPoints - 1) / kMostPoints);
  std::vector<const Sample*> chosen;
  for (size_t i = 0; i < samples.size(); i += step)
    chosen.push_back(&samples[representative(samples, i, step)]);
  if (!chosen.empty() && chosen.back() != &samples.back()) chosen.push_back(&samples.back());
  return chosen;
}

// From the last reading before to the first after.
Json gaps_json(const std::vector<const Sample*>& samples) {
  Json gaps = Json::array();
  for (size_t i = 0; i < samples.size(); ++i) {
    if (!samples[i]->gap) continue;
    const size_t begin = i;
    while (i + 1 < samples.size() && samples[i + 1]->gap) ++i;
    gaps.push_back({{"from", samples[begin == 0 ? begin : begin - 1]->seconds},
                    {"to", samples[std::min(i + 1, samples.size() - 1)]->seconds},
                    {"reason", samples[begin]->gap_reason}});
  }
  return gaps;
}

// A series for each part that was ever there; `view_of` gives null where nothing was read.
template <typename View, typename ViewOf>
Json view_json(const std::vector<const Sample*>& samples, std::span<const Part<View>> parts, ViewOf view_of) {
  Json series = Json::array();
  const auto add = [&](const char* label, const char* colour, auto bytes_of) {
    Json values = Json::array();
    bool any = false;
    for (const Sample* sample : samples) {
      const View* view = view_of(*sample);
      const int64_t bytes = view ? std::max<int64_t>(0, bytes_of(*view)) : 0;
      values.push_back(view ? Json(bytes) : Json(nullptr));
      any |= bytes > 0;
    }
    if (any) series.push_back({{"label", label}, {"colour", colour}, {"bytes", std::move(values)}});
  };
  for (const Part<View>& part : parts)
    add(part.label, part.colour, [&](const View& view) { return view.*part.member; });
  add("unexplained", "#5c6670", [](const View& view) { return unexplained(view); });
  return {{"parts", std::move(series)}};
}

std::string facts_text(const WatchHistory& history) {
  const RecordingHeader& header = history.header;
  const double seconds = history.samples.empty() ? 0 : history.samples.back().seconds;
  std::string text = header.name.empty() ? "" : header.name + " ";
  text += fmt::format("(pid {}), {} samples in {:.1f} s", header.pid, history.samples.size(), seconds);
  if (!header.started.empty()) text += " from " + header.started;
  for (const char* fact : {"kernel"})
    if (header.facts.count(fact)) text += ", " + header.facts.at(fact);
  const Sample* last = last_reading(history.samples);
  if (last && last->container)
    text += fmt::format(", cgroup version {} {}", last->container->version, last->container->path);
  return text;
}

// The part that the verdict speaks of, what was fitted to it, and in a tree the process that grows most.
Json growth_json(const std::vector<const Sample*>& samples, const Verdict& verdict) {
  if (verdict.part.empty() || verdict.curve.empty()) return nullptr;
  Json values = Json::array(), process = Json::array();
  for (const Sample* sample : samples) {
    const auto figure = sample->gap ? std::nullopt : FigureOf(*sample, verdict.part);
    values.push_back(figure ? Json(std::max(*figure, 0.0)) : Json(nullptr));
    const auto is_grower = [&](const TreeMember& member) {
      return verdict.grower && member.pid == verdict.grower->pid;
    };
    const auto found = std::find_if(sample->members.begin(), sample->members.end(), is_grower);
    process.push_back(found != sample->members.end() ? Json(found->bytes) : Json(nullptr));
  }
  Json curve = Json::array();
  for (const FittedPoint& point : verdict.curve)
    curve.push_back({point.seconds, point.bytes, point.low, point.high});
  Json growth = {{"part", verdict.part}, {"values", std::move(values)}, {"curve", std::move(curve)}};
  if (verdict.grower) {
    growth["process"] = std::move(process);
    growth["process_label"] = fmt::format("process {} ({})", verdict.grower->pid, verdict.grower->command);
  }
  return growth;
}

Json page_data(const WatchHistory& history) {
  const std::vector<const Sample*> samples = points(history.samples);
  Json data = {{"title", target_text(history.header)},
               {"facts", facts_text(history)},
               {"verdict", verdict_name(history.verdict.kind)},
               {"verdict_text", verdict_text(history.verdict)},
               {"evidence", history.verdict.evidence},
               {"seconds", Json::array()},
               {"iterations", Json::array()},
               {"gaps", gaps_json(samples)},
               {"notes", history.notes},
               {"experiments", Json::array()}};
  for (const Sample* sample : samples) {
    data["seconds"].push_back(sample->seconds);
    data["iterations"].push_back(sample->iteration);
  }
  data["process"] = view_json<ProcessView>(
      samples, process_parts(), [](const Sample& sample) { return sample.gap ? nullptr : &sample.process; });
  data["growth"] = growth_json(samples, history.verdict);
  data["container"] = nullptr;
  const Sample* last = last_reading(history.samples);
  if (last && last->container) {
    data["container"] = view_json<ContainerView>(samples, container_parts(), [](const Sample& sample) {
      return sample.gap || !sample.container ? nullptr : &*sample.container;
    });
    data["container"]["limit"] = last->container->limit_bytes;
  }
  for (const Experiment& experiment : history.experiments)
    data["experiments"].push_back(experiment.name + ": " + experiment.finding);
  data["account"] = history.account ? Json::parse(ToJson(*history.account))["account"] : Json(nullptr);
  return data;
}

}  // namespace

std::string watch_page(const WatchHistory& history) {
  const std::map<std::string_view, std::string> values = {
      {"NONCE", make_nonce()},
      {"TITLE", markup_text("watch: " + target_text(history.header))},
      {"UPLOT_CSS", kUplotCss},
      {"PAGE_CSS", kPageCss},
      {"UPLOT_JS", kUplotJs},
      {"PAGE_JS", kPageJs},
      {"DATA", script_json(page_data(history))}};
  // What is put in is not looked at again: a name that reads @DATA@ stays one.
  std::string page;
  for (std::string_view rest = kPageHtml; !rest.empty();) {
    const size_t begin = rest.find('@');
    page += rest.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const size_t end = rest.find('@', begin + 1);
    page += values.at(rest.substr(begin + 1, end - begin - 1));
    rest.remove_prefix(end + 1);
  }
  return page;
}

void write_page(const std::string& path, const WatchHistory& history) {
  const std::string page = watch_page(history);
  NewFiles files;
  files.add(path, {page});
  files.commit();
}

}  // namespace plimsoll::cli
