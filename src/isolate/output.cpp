#include "isolate/output.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr size_t kMostWaiting = size_t{64} << 10;

bool is_ready(int descriptor, short events) noexcept {
  pollfd polled = {descriptor, events, 0};
  return ::poll(&polled, 1, 0) > 0;
}

}  // namespace

// Writing to a pipe that nobody reads any more must not end the process we live in.
ssize_t write_without_signal(int descriptor, const char* data, size_t size) noexcept {
  sigset_t pipe_signal, before;
  ::sigemptyset(&pipe_signal);
  ::sigaddset(&pipe_signal, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  const ssize_t written = ::write(descriptor, data, size);
  const int error = errno;
  if (written < 0 && error == EPIPE && ::sigismember(&before, SIGPIPE) == 0) {
    const timespec now = {};
    ::sigtimedwait(&pipe_signal, nullptr, &now);
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail(ErrorCode::kIo, "cannot make a pipe for a job's output: {}", std::strerror(errno));
  Pipe pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return pipe;
}

void OutputPump::capture(Descriptor source, std::string* sink) {
  streams_.push_back({std::move(source), sink, -1, {}});
}

void OutputPump::pass_on(Descriptor source, int destination) {
  streams_.push_back({std::move(source), nullptr, destination, {}});
}

void OutputPump::add_to(std::vector<pollfd>& polled) const {
  for (const Stream& stream : streams_) {
    if (stream.source && stream.waiting.size() < kMostWaiting)
      polled.push_back({stream.source.get(), POLLIN, 0});
    if (!stream.waiting.empty()) polled.push_back({stream.destination, POLLOUT, 0});
  }
}

void OutputPump::accept(Stream& stream, const char* data, size_t size) {
  if (limit_bytes_ > 0) {
    const auto room = static_cast<size_t>(std::max<int64_t>(0, limit_bytes_ - seen_bytes_));
    if (size > room) limit_reached_ = true;
    size = std::min(size, room);
  }
  seen_bytes_ += static_cast<int64_t>(size);
  (stream.sink != nullptr ? *stream.sink : stream.waiting).append(data, size);
}

bool OutputPump::read_some(Stream& stream) {
  char buffer[65536];
  if (!stream.source || stream.waiting.size() >= kMostWaiting) return false;
  const ssize_t got = ::read(stream.source.get(), buffer, sizeof(buffer));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    stream.source.reset();
    return false;
  }
  accept(stream, buffer, static_cast<size_t>(got));
  return true;
}

// At most as much as a pipe takes at once when it says that it is writable.
bool OutputPump::write_some(Stream& stream) {
  if (stream.waiting.empty() || !is_ready(stream.destination, POLLOUT)) return false;
  const ssize_t written = write_without_signal(stream.destination, stream.waiting.data(),
                                               std::min<size_t>(stream.waiting.size(), PIPE_BUF));
  if (written < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (written < 0) {
    stream.waiting.clear();
    stream.source.reset();  // the job learns it as it would from its own pipe
    return false;
  }
  stream.waiting.erase(0, static_cast<size_t>(written));
  return true;
}

void OutputPump::move() {
  for (Stream& stream : streams_) {
    constexpr int kRounds = 16;  // a job that writes without end must not keep us from looking at the clock
    bool moved = true;
    for (int round = 0; moved && round < kRounds; ++round) {
      const bool read = read_some(stream);
      moved = write_some(stream) || read;
    }
  }
}

bool OutputPump::owes() const noexcept {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const Stream& stream) { return !stream.waiting.empty(); });
}

void OutputPump::finish() {
  for (Stream& stream : streams_) {
    // The dead wrote at most a pipe's capacity; somebody who escaped may write for ever.
    constexpr int kRounds = 64;
    for (int round = 0; round < kRounds; ++round) {
      while (write_some(stream)) {
      }
      if (!stream.waiting.empty() && ::fcntl(stream.destination, F_GETFL) >= 0) {
        pollfd polled = {stream.destination, POLLOUT, 0};
        constexpr int kPatienceMs = 100;
        if (::poll(&polled, 1, kPatienceMs) <= 0) stream.waiting.clear();
        continue;
      }
      if (!read_some(stream)) break;
    }
    stream.source.reset();
  }
}

}  // namespace plimsoll
