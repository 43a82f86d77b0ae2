// One of ONNX's test directories: model.onnx and test_data_set_*.
#pragma once

#include <plimsoll/session.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compare.h"
#include "tensor_pb.h"

namespace plimsoll::cli {

// kContradiction: an input of the data set has another shape than the model itself declares, so that refusing
// it is right; ONNX's CastLike cases with bfloat16 are such.
enum class Status { kPassed, kFailed, kNotImplemented, kContradiction };

struct Verdict {
  Status status = Status::kPassed;
  std::string reason;
  std::vector<std::string> missing;  // operators
};

// What is in a directory and starts with `prefix`, sorted.
std::vector<std::filesystem::path> children(const std::filesystem::path& path,
                                            const std::string& prefix = "");

class CaseVerifier {
 public:
  CaseVerifier(const Env& env, const SessionOptions& session_options, const Tolerance& tolerance, int repeat)
      : env_(env), session_options_(session_options), tolerance_(tolerance), repeat_(repeat) {}

  // Runs every data set. Throws nothing but kCancelled: all else is a verdict.
  Verdict verify(const std::filesystem::path& directory) const;

 private:
  Verdict run_case(const std::filesystem::path& directory, const std::string& model) const;
  std::optional<std::string> run_set(Session& session, const std::filesystem::path& set) const;
  std::vector<std::string> missing_operators(const std::string& model) const;

  Env env_;
  SessionOptions session_options_;
  Tolerance tolerance_;
  int repeat_;
};

}  // namespace plimsoll::cli
