// A recording of `plimsoll watch`: JSON lines. First a header {"plimsoll_recording": 1, ...}, then one object
// per sample. Fields have the names of `Sample`, `ProcessView` and `ContainerView`; fields that are 0 are
// left out of the views; unknown fields are ignored. A file that ends within a line is a recording cut short:
// the lines before it count.
#pragma once

#include <plimsoll/observe.h>

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace plimsoll::cli {

nlohmann::ordered_json sample_json(const Sample& sample);

struct Recording {
  nlohmann::ordered_json header;
  std::vector<Sample> samples;
  bool cut_short = false;  // the last line was not whole
};

// `header` gets "plimsoll_recording": 1 as its first field.
std::string recording_header_line(const nlohmann::ordered_json& header);
std::string recording_line(const Sample& sample);  // both end in a newline

// Throws kInvalidArgument, with the number of the line, for what is not a recording.
Recording read_recording(std::istream& in, const std::string& name);

}  // namespace plimsoll::cli
