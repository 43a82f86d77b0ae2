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
  struct Options {
    Tolerance tolerance;
    int repeat = 1;
    bool compiled =
        false;  // the model runs from a compiled file, which is made for it in the folder for such
  };
  CaseVerifier(const Env& env, const SessionOptions& session_options, const Options& options)
      : env_(env), session_options_(session_options), options_(options) {}

  // Runs every data set. Throws nothing but kCancelled: all else is a verdict.
  Verdict verify(const std::filesystem::path& directory) const;

 private:
  Verdict run_case(const std::filesystem::path& directory, const std::string& model) const;
  void compile(const std::string& model, const std::filesystem::path& set, const std::string& to) const;
  std::optional<std::string> run_set(Session& session, const std::filesystem::path& set) const;
  std::vector<std::string> missing_operators(const std::string& model) const;

  Env env_;
  SessionOptions session_options_;
  Options options_;
};

}  // namespace plimsoll::cli
