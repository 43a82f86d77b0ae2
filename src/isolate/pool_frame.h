// Frames between a pool and its workers: a 64-bit little-endian length, then that many bytes.
// Sockets are non-blocking. What a worker writes is distrusted: a length is believed only up to a limit, and
// memory is taken as bytes arrive, not as they are announced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

constexpr int kWorkerDescriptor = 3;            // the worker's end of its socket
constexpr int64_t kReadyFrameBytes = 64 << 10;  // at most, of its first frame

class FrameReader {
 public:
  enum class Status : uint8_t {
    kMore,     // nothing more to read now
    kPause,    // there is more, but others want their turn
    kFrame,    // one frame is complete: take() it
    kEnd,      // the other side closed
    kReset,    // the other side closed without reading all that was sent to it
    kTooLong,  // announces more than the limit: length_bytes()
  };

  // Forgets what it holds; the next frame may have so many bytes.
  void Expect(int64_t limit_bytes);
  // Reads what is there, never beyond the frame. Throws std::bad_alloc.
  Status Read(int socket);
  std::string take() { return std::move(body_); }
  // What came with the frame; null: nothing.
  std::shared_ptr<const Attachment> take_attachment();
  uint64_t length_bytes() const noexcept { return length_bytes_; }

 private:
  Status read_header(int socket);
  ssize_t receive(int socket, void* buffer, size_t size);

  int64_t limit_bytes_ = 0;
  unsigned char header_[8] = {};
  size_t header_bytes_ = 0;
  uint64_t length_bytes_ = 0;
  std::string body_;
  std::vector<Descriptor> attached_;
};

class FrameWriter {
 public:
  enum class Status : uint8_t { kMore, kDone, kBroken };

  // `body` must outlive the last Write, and so must what is attached (null: nothing).
  void Begin(const std::string& body, const Attachment* attachment = nullptr);
  Status Write(int socket);

 private:
  unsigned char header_[8] = {};
  const std::string* body_ = nullptr;
  const Attachment* attachment_ = nullptr;
  size_t written_bytes_ = 0;  // header included
};

}  // namespace plimsoll
