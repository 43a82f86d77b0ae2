#include <nlohmann/json.hpp>

#include "observe/fields.h"
#include "plimsoll/observe.h"

namespace plimsoll {
namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_object(const Sample& sample) {
  Json object = {{"seconds", sample.seconds}, {"iteration", sample.iteration}, {"gap", sample.gap}};
  if (sample.gap) {
    object["gap_reason"] = sample.gap_reason;
    return object;
  }
  object["exact"] = sample.exact;
  Json process;
  for_each_process_field(sample.process, [&](const char* name, int64_t value) { process[name] = value; });
  object["process"] = std::move(process);
  if (sample.container) {
    Json container = {{"version", sample.container->version}, {"path", sample.container->path}};
    for_each_container_field(*sample.container,
                             [&](const char* name, int64_t value) { container[name] = value; });
    container["pressure_some_avg10"] = sample.container->pressure_some_avg10;
    object["container"] = std::move(container);
  }
  if (!sample.members.empty()) {
    Json members = Json::array();
    for (const TreeMember& member : sample.members) {
      Json& one = members.emplace_back(
          Json{{"pid", member.pid}, {"command", member.command}, {"bytes", member.bytes}});
      if (member.live_bytes < 0) continue;
      one["live_bytes"] = member.live_bytes;
      one["collections"] = member.collections;
      if (member.touched_bytes >= 0) one["touched_bytes"] = member.touched_bytes;
      if (member.heap_bytes < 0) continue;
      one["heap_bytes"] = member.heap_bytes;
      if (member.untold_heaps > 0) one["untold_heaps"] = member.untold_heaps;
      one["asked_collections"] = member.asked_collections;
      one["asked_seconds"] = member.asked_seconds;
    }
    object["members"] = std::move(members);
  }
  return object;
}

Json to_array(const std::vector<MemoryPart>& parts) {
  Json array = Json::array();
  for (const MemoryPart& part : parts)
    array.push_back({{"name", part.name},
                     {"bytes", part.bytes},
                     {"returnable_bytes", part.returnable_bytes},
                     {"returns_by", part.returns_by}});
  return array;
}

}  // namespace

std::string ToJson(const RecordingHeader& header) {
  Json facts = Json::object();
  for (const auto& [name, value] : header.facts) facts[name] = value;
  return line({{"plimsoll_recording", 1},
               {"command", header.command},
               {"pid", header.pid},
               {"name", header.name},
               {"started", header.started},
               {"interval_seconds", header.interval_seconds},
               {"facts", std::move(facts)}});
}

std::string ToJson(const Sample& sample) {
  return line(to_object(sample));
}

std::string ToJson(const MemoryAccount& account) {
  return line({{"account",
                {{"process", to_array(account.process)},
                 {"libraries", to_array(account.libraries)},
                 {"container", to_array(account.container)},
                 {"cached_files", to_array(account.cached_files)},
                 {"process_unexplained_bytes", account.process_unexplained_bytes},
                 {"container_unexplained_bytes", account.container_unexplained_bytes},
                 {"notes", account.notes},
                 {"sample", to_object(account.sample)}}}});
}

std::string ToJson(const Verdict& verdict) {
  Json object = {{"verdict", verdict_name(verdict.kind)},
                 {"cause", cause_name(verdict.cause)},
                 {"bytes_per_second", verdict.bytes_per_second}};
  object["bytes_per_iteration"] =
      verdict.bytes_per_iteration ? Json(*verdict.bytes_per_iteration) : Json(nullptr);
  object["low"] = verdict.low;
  object["high"] = verdict.high;
  object["confidence"] = verdict.confidence;
  object["seconds_needed"] = verdict.seconds_needed;
  object["evidence"] = verdict.evidence;
  object["part"] = verdict.part;
  if (const auto& rivals = verdict.rivals) {
    Json values;
    for_each_rival(*rivals, [&](const char* name, double value) { values[name] = value; });
    object["rivals"] = std::move(values);
  }
  if (const auto& grower = verdict.grower)
    object["grower"] = {{"pid", grower->pid},
                        {"command", grower->command},
                        {"bytes_per_second", grower->bytes_per_second},
                        {"first_bytes", grower->first_bytes},
                        {"last_bytes", grower->last_bytes}};
  if (!verdict.curve.empty()) {
    Json curve = Json::array();
    for (const FittedPoint& point : verdict.curve)
      curve.push_back({point.seconds, point.bytes, point.low, point.high});
    object["curve"] = std::move(curve);
  }
  return line(object);
}

std::string NoteToJson(const std::string& note) {
  return line({{"note", note}});
}

}  // namespace plimsoll
