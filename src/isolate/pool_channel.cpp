#include "isolate/pool_channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr int kLastTurns = 64;  // a dead process's pipes hold 64 KiB each, its socket a little more

}  // namespace

WorkerChannel::WorkerChannel(std::string request, CallOptions options)
    : request_(std::move(request)),
      options_(std::move(options)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  int pair[2];
  if (!wake_ || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    fail(ErrorCode::kIo, "no descriptors for a call: {}", std::strerror(errno));
  socket_ = Descriptor(pair[0]);
  their_socket_ = Descriptor(pair[1]);
  fcntl(socket_.get(), F_SETFL, O_NONBLOCK);
  reader_.Expect(kReadyFrameBytes);
  writer_.Begin(request_, options_.attachment.get());
}

WorkerChannel::~WorkerChannel() {
  Stop();
}

void WorkerChannel::open(Stream& stream) {
  int pair[2];
  if (pipe2(pair, O_CLOEXEC) != 0) fail(ErrorCode::kIo, "no pipe for a call: {}", std::strerror(errno));
  stream.ours = Descriptor(pair[0]);
  stream.theirs = Descriptor(pair[1]);
  fcntl(stream.ours.get(), F_SETFL, O_NONBLOCK);
}

void WorkerChannel::Connect(Command& command) {
  command.descriptors.emplace_back(their_socket_.get(), kWorkerDescriptor);
  const auto capture = [&](Output& how, Stream& stream, int number) {
    if (how != Output::kCapture) return;
    open(stream);
    command.descriptors.emplace_back(stream.theirs.get(), number);
    how = Output::kInherit;
  };
  capture(command.standard_output, output_, STDOUT_FILENO);
  capture(command.standard_error, error_, STDERR_FILENO);
}

void WorkerChannel::ForgetTheirs() {
  their_socket_.reset();
  output_.theirs.reset();
  error_.theirs.reset();
}

void WorkerChannel::Begin(std::function<void()> stop_it) {
  stop_it_ = std::move(stop_it);
  thread_ = std::thread([this] { run(); });
}

void WorkerChannel::Stop() {
  stop_ = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void WorkerChannel::run() {
  while (!stop_ && turn(false)) continue;
  for (int i = 0; i < kLastTurns && turn(true); ++i) continue;
}

bool WorkerChannel::turn(bool last) {
  const short writes = writing_ ? POLLOUT : 0;
  pollfd polled[] = {{socket_.get(), static_cast<short>(POLLIN | writes), 0},
                     {output_.ours.get(), POLLIN, 0},
                     {error_.ours.get(), POLLIN, 0},
                     {wake_.get(), static_cast<short>(last ? 0 : POLLIN), 0}};
  if (!socket_ && !output_.ours && !error_.ours) return false;
  const int ready = poll(polled, 4, last ? 0 : -1);
  if (ready < 0) return errno == EINTR;
  if (polled[0].revents) on_socket(polled[0].revents);
  if (polled[1].revents) on_stream(output_);
  if (polled[2].revents) on_stream(error_);
  return ready > 0;
}

void WorkerChannel::on_socket(short events) {
  if (writing_ && (events & POLLOUT)) writing_ = writer_.Write(socket_.get()) == FrameWriter::Status::kMore;
  if (!(events & (POLLIN | POLLHUP | POLLERR))) return;
  FrameReader::Status status = FrameReader::Status::kTooLong;
  try {
    status = reader_.Read(socket_.get());
    text_ = fmt::format("announces {} bytes where at most {} are allowed", reader_.length_bytes(),
                        ready_ ? options_.result_bytes : kReadyFrameBytes);
  } catch (const std::bad_alloc&) {
    text_ = "is longer than there is memory here";
  }
  switch (status) {
    case FrameReader::Status::kMore:
    case FrameReader::Status::kPause:
      return;
    case FrameReader::Status::kFrame:
      return on_frame();
    case FrameReader::Status::kTooLong:
      said_ = Said::kTooLong;
      stop_it_();
      break;
    case FrameReader::Status::kEnd:
    case FrameReader::Status::kReset:
      break;
  }
  socket_.reset();
}

void WorkerChannel::on_frame() {
  std::string frame = reader_.take();
  if (!ready_ && frame == "ready") {
    ready_ = true;
    return reader_.Expect(options_.result_bytes);
  }
  said_ = ready_ ? Said::kAnswer : Said::kRefusal;
  text_ = std::move(frame);
  attachment_ = reader_.take_attachment();
  socket_.reset();  // it reads end of file, and exits
  answered_ = true;
}

void WorkerChannel::on_stream(Stream& stream) {
  char chunk[16 << 10];
  const ssize_t got = read(stream.ours.get(), chunk, sizeof chunk);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return stream.ours.reset();
  const size_t room = static_cast<size_t>(options_.output_bytes) - stream.text.size();
  stream.text.append(chunk, std::min(room, static_cast<size_t>(got)));
  stream.truncated |= static_cast<size_t>(got) > room;
}

}  // namespace plimsoll
