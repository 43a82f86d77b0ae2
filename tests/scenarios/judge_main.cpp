// plimsoll_judge [--every SECONDS] [--at SECONDS] RECORDING...: one JSON object per recording with its
// verdict; with --every also when a leak was first found and not given up again, judging as the samples came;
// with --at as if it had ended then.
#include <plimsoll/observe.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace {

using Json = nlohmann::ordered_json;

Json delay_of(const plimsoll::Recording& recording, double every, bool& ever) {
  Json found;
  double next = 0;
  std::span<const plimsoll::Sample> samples = recording.samples;
  for (size_t count = 1; count <= samples.size(); ++count) {
    const plimsoll::Sample& last = samples[count - 1];
    if (last.seconds < next && count < samples.size()) continue;
    next = last.seconds + every;
    const bool leaks = plimsoll::Judge(samples.first(count)).kind == plimsoll::VerdictKind::kLeak;
    ever |= leaks;
    if (!leaks) found = nullptr;
    if (leaks && found.is_null()) found = {{"seconds", last.seconds}, {"iteration", last.iteration}};
  }
  return found;
}

Json judged(const char* path, double every, double at) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  plimsoll::Recording recording = plimsoll::ParseRecording(text.str(), path);
  if (at > 0) std::erase_if(recording.samples, [at](const auto& sample) { return sample.seconds > at; });
  Json result = Json::parse(ToJson(plimsoll::Judge(recording.samples)));
  result["file"] = path;
  const auto truth = recording.header.facts.find("truth_bytes_per_iteration");
  if (truth != recording.header.facts.end()) result["truth"] = std::strtod(truth->second.c_str(), nullptr);
  if (every > 0) {
    bool ever = false;
    result["found"] = delay_of(recording, every, ever);
    result["ever"] = ever;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  double every = 0, at = 0;
  int first = 1;
  for (; first + 1 < argc && argv[first][0] == '-'; first += 2)
    (std::strcmp(argv[first], "--every") == 0 ? every : at) = std::strtod(argv[first + 1], nullptr);
  int status = 0;
  for (int i = first; i < argc; ++i) {
    try {
      std::printf("%s\n", judged(argv[i], every, at).dump().c_str());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
  }
  return status;
}
