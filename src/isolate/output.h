// What a job writes: captured, or passed on under a limit.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace plimsoll {

// A pipe; both ends close on exec.
struct Pipe {
  Descriptor read_end, write_end;
};
Pipe make_pipe();
// As write, without the signal when nobody reads any more.
ssize_t write_without_signal(int descriptor, const char* data, size_t size) noexcept;

// Reads what arrives on the job's streams without ever blocking on a reader of ours that is slow.
class OutputPump {
 public:
  explicit OutputPump(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  void capture(Descriptor source, std::string* sink);
  void pass_on(Descriptor source, int destination);
  // Adds what to wait for.
  void add_to(std::vector<pollfd>& polled) const;
  // Moves what is there to be moved.
  void move();
  // What was to be passed on is not yet written: its reader is slow.
  bool owes() const noexcept;
  // The job is dead: takes what the pipes still hold, waits for no more, and writes out what is taken at
  // once.
  void finish();
  bool limit_reached() const noexcept { return limit_reached_; }

 private:
  struct Stream {
    Descriptor source;
    std::string* sink = nullptr;
    int destination = -1;
    std::string waiting;  // for the destination
  };
  bool read_some(Stream& stream);
  bool write_some(Stream& stream);
  void accept(Stream& stream, const char* data, size_t size);

  std::vector<Stream> streams_;
  int64_t limit_bytes_, seen_bytes_ = 0;
  bool limit_reached_ = false;
};

}  // namespace plimsoll
