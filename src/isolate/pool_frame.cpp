#include "isolate/pool_frame.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

namespace plimsoll {
namespace {

constexpr size_t kHeaderBytes = 8;
constexpr size_t kChunkBytes = size_t{256} << 10;
constexpr int kChunksPerRead = 32;  // then the pool looks after its other workers

FrameReader::Status status_of(ssize_t received) {
  if (received == 0) return FrameReader::Status::kEnd;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return FrameReader::Status::kMore;
  return errno == ECONNRESET ? FrameReader::Status::kReset : FrameReader::Status::kEnd;
}

}  // namespace

void FrameReader::Expect(int64_t limit_bytes) {
  limit_bytes_ = limit_bytes;
  header_bytes_ = 0;
  length_bytes_ = 0;
  body_ = std::string();
}

FrameReader::Status FrameReader::read_header(int socket) {
  while (header_bytes_ < kHeaderBytes) {
    const ssize_t received = recv(socket, header_ + header_bytes_, kHeaderBytes - header_bytes_, 0);
    if (received <= 0) return status_of(received);
    header_bytes_ += static_cast<size_t>(received);
  }
  length_bytes_ = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i) length_bytes_ |= uint64_t{header_[i]} << (8 * i);
  return length_bytes_ > static_cast<uint64_t>(limit_bytes_) ? Status::kTooLong : Status::kFrame;
}

FrameReader::Status FrameReader::Read(int socket) {
  if (header_bytes_ < kHeaderBytes) {
    const Status status = read_header(socket);
    if (status != Status::kFrame) return status;
  }
  for (int chunk = 0; body_.size() < length_bytes_; ++chunk) {
    if (chunk == kChunksPerRead) return Status::kPause;
    const size_t before = body_.size();
    body_.resize(before + std::min<uint64_t>(kChunkBytes, length_bytes_ - before));
    const ssize_t received = recv(socket, body_.data() + before, body_.size() - before, 0);
    body_.resize(before + static_cast<size_t>(std::max<ssize_t>(received, 0)));
    if (received <= 0) return status_of(received);
  }
  header_bytes_ = 0;
  return Status::kFrame;
}

void FrameWriter::Begin(const std::string& body) {
  body_ = &body;
  written_bytes_ = 0;
  for (size_t i = 0; i < kHeaderBytes; ++i)
    header_[i] = static_cast<unsigned char>(uint64_t{body.size()} >> (8 * i));
}

FrameWriter::Status FrameWriter::Write(int socket) {
  while (written_bytes_ < kHeaderBytes + body_->size()) {
    const size_t of_header = std::min(written_bytes_, kHeaderBytes);
    const size_t of_body = written_bytes_ - of_header;
    iovec parts[2] = {{header_ + of_header, kHeaderBytes - of_header},
                      {const_cast<char*>(body_->data()) + of_body, body_->size() - of_body}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Status::kMore;
    if (sent < 0) return Status::kBroken;
    written_bytes_ += static_cast<size_t>(sent);
  }
  return Status::kDone;
}

}  // namespace plimsoll
