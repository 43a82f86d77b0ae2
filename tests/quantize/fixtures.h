// What the tests of quantization share: files of their own, weights.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / fmt::format("plimsoll-quantize-{}", ::getpid())) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<float> normal(size_t count, unsigned seed, float size = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> next(0, size);
  std::vector<float> values(count);
  for (float& value : values) value = next(random);
  return values;
}

}  // namespace plimsoll
