#include "isolate/pool_frame.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

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

// With the first byte, once.
void attach(msghdr& message, char* control, const std::vector<int>& descriptors) {
  const size_t count = std::min(descriptors.size(), Attachment::kMost);
  if (count == 0) return;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * count);
  std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * count);
}

}  // namespace

Attachment::~Attachment() {
  for (const int descriptor : descriptors_) ::close(descriptor);
}

// Whatever descriptors come along are ours to close.
ssize_t FrameReader::receive(int socket, void* buffer, size_t size) {
  iovec part = {buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * Attachment::kMost)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (received < 0) return received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      Descriptor owned(descriptor);
      if (attached_.size() < Attachment::kMost) attached_.push_back(std::move(owned));
    }
  }
  return received;
}

std::shared_ptr<const Attachment> FrameReader::take_attachment() {
  if (attached_.empty()) return nullptr;
  std::vector<int> descriptors;
  descriptors.reserve(attached_.size());
  for (Descriptor& descriptor : attached_) descriptors.push_back(descriptor.release());
  attached_.clear();
  return std::make_shared<const Attachment>(std::move(descriptors));
}

void FrameReader::Expect(int64_t limit_bytes) {
  limit_bytes_ = limit_bytes;
  header_bytes_ = 0;
  length_bytes_ = 0;
  body_ = std::string();
  attached_.clear();
}

FrameReader::Status FrameReader::read_header(int socket) {
  while (header_bytes_ < kHeaderBytes) {
    const ssize_t received = receive(socket, header_ + header_bytes_, kHeaderBytes - header_bytes_);
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
    const ssize_t received = receive(socket, body_.data() + before, body_.size() - before);
    body_.resize(before + static_cast<size_t>(std::max<ssize_t>(received, 0)));
    if (received <= 0) return status_of(received);
  }
  header_bytes_ = 0;
  return Status::kFrame;
}

void FrameWriter::Begin(const std::string& body, const Attachment* attachment) {
  body_ = &body;
  attachment_ = attachment;
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
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * Attachment::kMost)];
    if (written_bytes_ == 0 && attachment_ != nullptr) attach(message, control, attachment_->descriptors());
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Status::kMore;
    if (sent < 0) return Status::kBroken;
    written_bytes_ += static_cast<size_t>(sent);
  }
  return Status::kDone;
}

}  // namespace plimsoll
