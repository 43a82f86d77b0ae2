#include "watch_json.h"

#include <cmath>

#include "watch_parts.h"

namespace plimsoll::cli {

std::string json_line(const Json& object) {
  return object.dump() + "\n";
}

Json sample_object(const Sample& sample) {
  Json object = Json::parse(ToJson(sample));
  if (sample.gap) return object;
  int64_t larger = unexplained(sample.process);
  object["process"]["unexplained_bytes"] = larger;
  if (sample.container) {
    const int64_t container = unexplained(*sample.container);
    object["container"]["unexplained_bytes"] = container;
    if (std::abs(container) > std::abs(larger)) larger = container;
  } else {
    object["container"] = nullptr;
  }
  object["unexplained_bytes"] = larger;
  return object;
}

Json verdict_object(const WatchHistory& history) {
  Json object = Json::parse(ToJson(history.verdict));
  const Sample* last = last_reading(history.samples);
  const Json sample = last ? sample_object(*last) : Json::object();
  for (const char* key : {"seconds", "iteration", "process", "container", "unexplained_bytes"})
    object[key] = sample.contains(key) ? sample[key] : Json(nullptr);
  object["target"] = Json::parse(ToJson(history.header));
  object["account"] = history.account ? Json::parse(ToJson(*history.account))["account"] : Json(nullptr);
  object["experiments"] = Json::array();
  for (const Experiment& experiment : history.experiments)
    object["experiments"].push_back({{"name", experiment.name},
                                     {"finding", experiment.finding},
                                     {"before", sample_object(experiment.before)},
                                     {"after", sample_object(experiment.after)}});
  object["notes"] = history.notes;
  return object;
}

}  // namespace plimsoll::cli
