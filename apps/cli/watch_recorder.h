// Writes a recording as it happens, a whole line at a time, so that whatever ends us leaves one that can be
// read.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::cli {

class Recorder {
 public:
  Recorder() = default;
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // What is there stays until the first line is written, and is replaced then; a descriptor of ours
  // (/dev/stdout) goes on from where it is. Throws kIo.
  void open(const std::string& path);
  // Nothing if it is not open. A disk that is full ends the recording, not the watch: the last line that is
  // whole stays, and problem() tells.
  void add(std::string_view line);
  void close();
  const std::string& problem() const { return problem_; }

 private:
  void give_up(int error);
  bool await_reader() const;  // of a pipe, for a moment

  std::string path_, problem_;
  int descriptor_ = -1;
  bool replaces_ = false;  // a regular file that is ours alone
  bool created_ = false;
  long long written_bytes_ = 0;
};

}  // namespace plimsoll::cli
