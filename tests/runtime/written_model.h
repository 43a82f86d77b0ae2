// A model that lies in a file, as long as this lives: a session under a limit may open it twice.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/session_support.h"

namespace plimsoll {

class WrittenModel {
 public:
  explicit WrittenModel(ModelBuilder& model)
      : path_((std::filesystem::temp_directory_path() /
               ("plimsoll_written_" + std::to_string(::getpid()) + ".onnx"))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << model.bytes();
  }
  ~WrittenModel() { std::filesystem::remove(path_); }
  WrittenModel(const WrittenModel&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace plimsoll
