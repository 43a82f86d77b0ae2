#include "recording.h"

#include <fmt/format.h>
#include <plimsoll/error.h>

#include <istream>
#include <utility>

namespace plimsoll::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<const char*, int64_t ProcessView::*> kProcessFields[] = {
    {"heap_bytes", &ProcessView::heap_bytes},
    {"allocator_bytes", &ProcessView::allocator_bytes},
    {"stack_bytes", &ProcessView::stack_bytes},
    {"anonymous_bytes", &ProcessView::anonymous_bytes},
    {"huge_page_bytes", &ProcessView::huge_page_bytes},
    {"private_file_bytes", &ProcessView::private_file_bytes},
    {"shared_file_bytes", &ProcessView::shared_file_bytes},
    {"shared_memory_bytes", &ProcessView::shared_memory_bytes},
    {"swap_bytes", &ProcessView::swap_bytes},
    {"sum_bytes", &ProcessView::sum_bytes},
    {"kernel_bytes", &ProcessView::kernel_bytes},
    {"rss_bytes", &ProcessView::rss_bytes},
    {"page_table_bytes", &ProcessView::page_table_bytes},
    {"processes", &ProcessView::processes},
    {"threads", &ProcessView::threads},
    {"descriptors", &ProcessView::descriptors},
    {"mappings", &ProcessView::mappings},
};

constexpr std::pair<const char*, int64_t ContainerView::*> kContainerFields[] = {
    {"anonymous_bytes", &ContainerView::anonymous_bytes},
    {"page_cache_bytes", &ContainerView::page_cache_bytes},
    {"shared_memory_bytes", &ContainerView::shared_memory_bytes},
    {"slab_bytes", &ContainerView::slab_bytes},
    {"slab_reclaimable_bytes", &ContainerView::slab_reclaimable_bytes},
    {"page_table_bytes", &ContainerView::page_table_bytes},
    {"kernel_stack_bytes", &ContainerView::kernel_stack_bytes},
    {"socket_bytes", &ContainerView::socket_bytes},
    {"other_kernel_bytes", &ContainerView::other_kernel_bytes},
    {"swap_bytes", &ContainerView::swap_bytes},
    {"sum_bytes", &ContainerView::sum_bytes},
    {"kernel_bytes", &ContainerView::kernel_bytes},
    {"peak_bytes", &ContainerView::peak_bytes},
    {"limit_bytes", &ContainerView::limit_bytes},
};

template <typename View, typename Fields>
Json fields_json(const View& view, const Fields& fields) {
  Json json = Json::object();
  for (const auto& [name, member] : fields) {
    if (view.*member != 0) json[name] = view.*member;
  }
  return json;
}

template <typename View, typename Fields>
void read_fields(const Json& json, const Fields& fields, View& view) {
  for (const auto& [name, member] : fields) view.*member = json.value(name, int64_t{0});
}

Sample sample_from(const Json& json) {
  Sample sample;
  sample.seconds = json.at("seconds").get<double>();
  sample.iteration = json.value("iteration", int64_t{-1});
  sample.gap = json.value("gap", false);
  sample.gap_reason = json.value("gap_reason", "");
  sample.exact = json.value("exact", true);
  if (json.contains("process")) read_fields(json["process"], kProcessFields, sample.process);
  if (json.contains("container")) {
    const Json& container = json["container"];
    ContainerView view;
    view.version = container.value("version", 0);
    view.path = container.value("path", "");
    view.pressure_some_avg10 = container.value("pressure_some_avg10", 0.0);
    read_fields(container, kContainerFields, view);
    sample.container = std::move(view);
  }
  return sample;
}

}  // namespace

Json sample_json(const Sample& sample) {
  Json json;
  json["seconds"] = sample.seconds;
  if (sample.iteration >= 0) json["iteration"] = sample.iteration;
  if (sample.gap) {
    json["gap"] = true;
    json["gap_reason"] = sample.gap_reason;
    return json;
  }
  if (!sample.exact) json["exact"] = false;
  json["process"] = fields_json(sample.process, kProcessFields);
  if (sample.container) {
    Json container{{"version", sample.container->version}, {"path", sample.container->path}};
    container.update(fields_json(*sample.container, kContainerFields));
    if (sample.container->pressure_some_avg10 != 0) {
      container["pressure_some_avg10"] = sample.container->pressure_some_avg10;
    }
    json["container"] = std::move(container);
  }
  return json;
}

std::string recording_header_line(const Json& header) {
  Json line{{"plimsoll_recording", 1}};
  line.update(header);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string recording_line(const Sample& sample) {
  return sample_json(sample).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Recording read_recording(std::istream& in, const std::string& name) {
  Recording recording;
  std::string line;
  const auto wrong = [&](size_t number, const char* reason) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("recording '{}', line {}: expected what `plimsoll watch --record` writes, found: {}",
                    name, number, reason));
  };
  for (size_t number = 1; std::getline(in, line); ++number) {
    const bool whole = !in.eof();  // a newline came behind it
    try {
      const Json json = Json::parse(line);
      if (number == 1) {
        if (json.at("plimsoll_recording").get<int>() != 1) wrong(number, "a version this one does not know");
        recording.header = json;
      } else {
        recording.samples.push_back(sample_from(json));
      }
    } catch (const Json::exception& error) {
      if (whole || number == 1) wrong(number, error.what());
      recording.cut_short = true;
    }
  }
  if (recording.header.is_null()) wrong(1, "nothing");
  return recording;
}

}  // namespace plimsoll::cli
