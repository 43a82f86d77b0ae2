// A directory of files that stands in for /proc and /sys/fs/cgroup; removed with the object.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace plimsoll {

class RecordedTree {
 public:
  RecordedTree() {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll-tree-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::filesystem::filesystem_error("mkdtemp", {});
    root_ = name;
  }
  RecordedTree(const RecordedTree&) = delete;
  RecordedTree& operator=(const RecordedTree&) = delete;
  ~RecordedTree() { std::filesystem::remove_all(root_); }

  // `path` starts with a slash; directories on the way are made.
  void add(const std::string& path, std::string_view text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
  }
  void remove(const std::string& path) { std::filesystem::remove_all(root_ + path); }
  const std::string& root() const { return root_; }

 private:
  std::string root_;
};

}  // namespace plimsoll
