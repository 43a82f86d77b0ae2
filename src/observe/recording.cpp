#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "observe/fields.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = int64_t{1} << 56;  // sums of many of them still fit
constexpr double kMostSeconds = 1e10;
constexpr size_t kLongestLine = size_t{16} << 20;  // of JSON, which takes many times its length in memory

// Reads members of one JSON object. Absent ones keep what they have, so that older recordings stay readable;
// wrong ones are kInvalidArgument.
class Members {
 public:
  Members(const Json& object, const char* what) : object_(object), what_(what) {
    if (!object.is_object())
      fail(ErrorCode::kInvalidArgument, "{}: expected an object, found {}", what, object.type_name());
  }

  void read(const char* name, int64_t& value, int64_t least = 0, int64_t most = kMostBytes) const {
    const Json* member = find(name);
    if (!member) return;
    const bool in_range =
        member->is_number_integer() &&
        !(member->is_number_unsigned() && member->get<uint64_t>() > static_cast<uint64_t>(most)) &&
        member->get<int64_t>() >= least && member->get<int64_t>() <= most;
    if (!in_range) reject(name, fmt::format("an integer from {} to {}", least, most), *member);
    value = member->get<int64_t>();
  }
  void read(const char* name, int& value, int least, int most) const {
    int64_t wide = value;
    read(name, wide, least, most);
    value = static_cast<int>(wide);
  }
  void read(const char* name, double& value, double least, double most) const {
    const Json* member = find(name);
    if (!member) return;
    if (!member->is_number() || !(member->get<double>() >= least && member->get<double>() <= most))
      reject(name, fmt::format("a number from {:g} to {:g}", least, most), *member);
    value = member->get<double>();
  }
  void read(const char* name, bool& value) const {
    const Json* member = find(name);
    if (!member) return;
    if (!member->is_boolean()) reject(name, "true or false", *member);
    value = member->get<bool>();
  }
  void read(const char* name, std::string& value) const {
    const Json* member = find(name);
    if (!member) return;
    if (!member->is_string()) reject(name, "text", *member);
    value = member->get<std::string>();
  }
  void read(const char* name, std::vector<std::string>& value) const {
    const Json* member = find(name);
    if (!member) return;
    const auto is_text = [](const Json& item) { return item.is_string(); };
    if (!member->is_array() || !std::all_of(member->begin(), member->end(), is_text))
      reject(name, "a list of texts", *member);
    value = member->get<std::vector<std::string>>();
  }
  const Json* find(const char* name) const {
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  void require(const char* name) const {
    if (!find(name)) fail(ErrorCode::kInvalidArgument, "{}: '{}' is missing", what_, name);
  }

 private:
  [[noreturn]] void reject(const char* name, const std::string& expected, const Json& found) const {
    constexpr size_t kShown = 60;
    // What is nested is not shown: writing it out would go as deep as a stranger nested it.
    std::string shown = found.is_structured() ? std::string("an ") + found.type_name()
                                              : found.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (shown.size() > kShown) shown = shown.substr(0, kShown) + "...";
    fail(ErrorCode::kInvalidArgument, "{}: '{}': expected {}, found {}", what_, name, expected, shown);
  }

  const Json& object_;
  const char* what_;
};

void read_tree(const Json& array, std::vector<TreeMember>& members) {
  if (!array.is_array())
    fail(ErrorCode::kInvalidArgument, "members: expected a list, found {}", array.type_name());
  for (const Json& item : array) {
    TreeMember& member = members.emplace_back();
    const Members values(item, "a member of the tree");
    values.read("pid", member.pid, 0, 1 << 30);
    values.read("command", member.command);
    values.read("bytes", member.bytes);
    values.read("live_bytes", member.live_bytes, -1);
    values.read("collections", member.collections);
    values.read("heap_bytes", member.heap_bytes, -1);
    values.read("touched_bytes", member.touched_bytes, -1);
    values.read("untold_heaps", member.untold_heaps);
    values.read("asked_collections", member.asked_collections);
    values.read("asked_seconds", member.asked_seconds, 0, kMostSeconds);
  }
}

Sample read_sample(const Json& object) {
  Sample sample;
  const Members members(object, "a sample");
  members.require("seconds");
  members.read("seconds", sample.seconds, 0, kMostSeconds);
  members.read("iteration", sample.iteration, -1);
  members.read("gap", sample.gap);
  members.read("gap_reason", sample.gap_reason);
  if (sample.gap) return sample;
  members.read("exact", sample.exact);
  members.require("process");
  const Members process(*members.find("process"), "process");
  for_each_process_field(sample.process,
                         [&](const char* name, int64_t& value) { process.read(name, value); });
  if (const Json* found = members.find("container")) {
    ContainerView& view = sample.container.emplace();
    const Members container(*found, "container");
    container.read("version", view.version, 1, 2);
    container.read("path", view.path);
    for_each_container_field(view, [&](const char* name, int64_t& value) { container.read(name, value); });
    container.read("pressure_some_avg10", view.pressure_some_avg10, 0, 100);
  }
  if (const Json* found = members.find("members")) read_tree(*found, sample.members);
  return sample;
}

RecordingHeader read_header(const Json& object) {
  const Members members(object, "the header");
  if (!members.find("plimsoll_recording"))
    fail(ErrorCode::kInvalidArgument, "not a recording of `plimsoll watch`: it does not say so");
  int64_t version = 0;
  members.read("plimsoll_recording", version);
  if (version != 1)
    fail(ErrorCode::kInvalidArgument, "a recording of version {}; this program reads version 1", version);
  RecordingHeader header;
  members.read("command", header.command);
  members.read("pid", header.pid, 0, 1 << 30);
  members.read("name", header.name);
  members.read("started", header.started);
  members.read("interval_seconds", header.interval_seconds, 0, kMostSeconds);
  if (const Json* facts = members.find("facts")) {
    const Members values(*facts, "facts");
    for (const auto& [name, value] : facts->items()) values.read(name.c_str(), header.facts[name]);
  }
  return header;
}

std::vector<MemoryPart> read_parts(const Members& members, const char* name) {
  std::vector<MemoryPart> parts;
  const Json* array = members.find(name);
  if (!array) return parts;
  if (!array->is_array())
    fail(ErrorCode::kInvalidArgument, "account: '{}': expected a list, found {}", name, array->type_name());
  for (const Json& item : *array) {
    MemoryPart& part = parts.emplace_back();
    const Members values(item, "a part of an account");
    values.read("name", part.name);
    values.read("bytes", part.bytes, -kMostBytes);
    values.read("returnable_bytes", part.returnable_bytes);
    values.read("returns_by", part.returns_by);
  }
  return parts;
}

MemoryAccount read_account(const Json& object) {
  MemoryAccount account;
  const Members members(object, "account");
  account.process = read_parts(members, "process");
  account.libraries = read_parts(members, "libraries");
  account.container = read_parts(members, "container");
  account.cached_files = read_parts(members, "cached_files");
  members.read("process_unexplained_bytes", account.process_unexplained_bytes, -kMostBytes);
  members.read("container_unexplained_bytes", account.container_unexplained_bytes, -kMostBytes);
  members.read("notes", account.notes);
  if (const Json* sample = members.find("sample")) account.sample = read_sample(*sample);
  return account;
}

// The enumerator whose name it is.
template <typename Enum>
Enum by_name(const std::string& name, const char* what, Enum last, const char* (*name_of)(Enum) noexcept) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name == name_of(static_cast<Enum>(i))) return static_cast<Enum>(i);
  fail(ErrorCode::kInvalidArgument, "{}: '{}' is none that this program knows", what, name);
}

void read_curve(const Json& array, std::vector<FittedPoint>& curve) {
  const auto is_point = [](const Json& item) {
    return item.is_array() && item.size() == 4 &&
           std::all_of(item.begin(), item.end(), [](const Json& one) { return one.is_number(); });
  };
  if (!array.is_array() || !std::all_of(array.begin(), array.end(), is_point))
    fail(ErrorCode::kInvalidArgument, "the verdict: 'curve': expected a list of four numbers each");
  for (const Json& item : array)
    curve.push_back(
        {item[0].get<double>(), item[1].get<double>(), item[2].get<double>(), item[3].get<double>()});
}

Verdict read_verdict(const Json& object) {
  constexpr double kMost = 1e18;
  Verdict verdict;
  const Members members(object, "the verdict");
  std::string kind, cause = cause_name(Cause::kNone);
  members.read("verdict", kind);
  members.read("cause", cause);
  verdict.kind = by_name(kind, "verdict", VerdictKind::kCache, verdict_name);
  verdict.cause = by_name(cause, "cause", Cause::kProcesses, cause_name);
  members.read("bytes_per_second", verdict.bytes_per_second, -kMost, kMost);
  if (members.find("bytes_per_iteration"))
    members.read("bytes_per_iteration", verdict.bytes_per_iteration.emplace(), -kMost, kMost);
  members.read("low", verdict.low, -kMost, kMost);
  members.read("high", verdict.high, -kMost, kMost);
  members.read("confidence", verdict.confidence, 0, 1);
  members.read("seconds_needed", verdict.seconds_needed, 0, kMostSeconds);
  members.read("evidence", verdict.evidence);
  members.read("part", verdict.part);
  if (const Json* found = members.find("rivals")) {
    const Members values(*found, "rivals");
    for_each_rival(verdict.rivals.emplace(),
                   [&](const char* name, double& value) { values.read(name, value, -kMost, kMost); });
  }
  if (const Json* found = members.find("grower")) {
    GrowingProcess& grower = verdict.grower.emplace();
    const Members values(*found, "grower");
    values.read("pid", grower.pid, 0, 1 << 30);
    values.read("command", grower.command);
    values.read("bytes_per_second", grower.bytes_per_second, -kMost, kMost);
    values.read("first_bytes", grower.first_bytes);
    values.read("last_bytes", grower.last_bytes);
  }
  if (const Json* found = members.find("curve")) read_curve(*found, verdict.curve);
  return verdict;
}

// One more line of a recording whose header was read.
void add_line(Recording& recording, const Json& object) {
  if (recording.verdict) fail(ErrorCode::kInvalidArgument, "there is more after the verdict");
  if (object.contains("verdict")) {
    recording.verdict = read_verdict(object);
  } else if (object.contains("account")) {
    recording.account = read_account(object["account"]);
  } else if (object.contains("note")) {
    Members(object, "a note").read("note", recording.notes.emplace_back());
  } else {
    Sample sample = read_sample(object);
    if (!recording.samples.empty() && sample.seconds < recording.samples.back().seconds)
      fail(ErrorCode::kInvalidArgument, "a sample of {:g} s follows one of {:g} s", sample.seconds,
           recording.samples.back().seconds);
    recording.samples.push_back(std::move(sample));
  }
}

Json parse_line(std::string_view line) {
  return Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
}

}  // namespace

Sample SampleFromJson(std::string_view line) {
  const Json object = parse_line(line);
  if (object.is_discarded()) fail(ErrorCode::kInvalidArgument, "a sample: this is not JSON");
  return read_sample(object);
}

Recording ParseRecording(std::string_view text, const std::string& name) {
  Recording recording;
  size_t number = 0;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const bool complete = newline != std::string_view::npos;
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(complete ? newline + 1 : text.size());
    ++number;
    if (line.size() > kLongestLine)
      fail(ErrorCode::kInvalidArgument, "{}: line {} has {} bytes; a recording's lines have at most {}", name,
           number, line.size(), kLongestLine);
    const Json object = parse_line(line);
    if (object.is_discarded() || !object.is_object()) {
      if (complete || number == 1)
        fail(ErrorCode::kInvalidArgument, "{}: line {} is not a JSON object", name, number);
      recording.note = fmt::format("line {} is incomplete and was left out", number);
      break;
    }
    try {
      if (number == 1)
        recording.header = read_header(object);
      else
        add_line(recording, object);
    } catch (const Error& error) {
      fail(error.code(), "{}: line {}: {}", name, number, error.what());
    }
  }
  if (number == 0) fail(ErrorCode::kInvalidArgument, "{}: the recording is empty", name);
  if (!recording.verdict)
    recording.note = "the recording ends without a verdict: it was cut short, or its watch was" +
                     (recording.note.empty() ? std::string() : "; " + recording.note);
  return recording;
}

}  // namespace plimsoll
