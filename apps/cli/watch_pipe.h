// A pipe whose ends are closed on exec; our end does not block.
#pragma once

#include <string>

namespace plimsoll::cli {

class Pipe {
 public:
  Pipe() = default;
  ~Pipe() { close_both(); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void open();  // throws kIo
  void close_write();
  void close_both();
  int read_end() const { return ends_[0]; }
  int write_end() const { return ends_[1]; }
  // What can be read now, at most 64 KiB; `ended` at end of file.
  std::string read_some(bool& ended);

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace plimsoll::cli
