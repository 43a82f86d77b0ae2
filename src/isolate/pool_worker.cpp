#include "isolate/pool_worker.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr size_t kTailBytes = 4 << 10;
// Between closing its socket and its end a process frees its memory.
constexpr std::chrono::milliseconds kPatienceWithTheDead{200};

struct Ends {
  Descriptor ours, theirs;
};

Ends make_ends(bool talk) {
  int pair[2];
  if ((talk ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) : pipe2(pair, O_CLOEXEC)) != 0)
    fail(ErrorCode::kIo, "pool: no descriptors for a worker: {}", std::strerror(errno));
  fcntl(pair[0], F_SETFL, O_NONBLOCK);  // ours; the worker's end blocks
  return {Descriptor(pair[0]), Descriptor(pair[1])};
}

}  // namespace

PoolWorker::PoolWorker(const PoolOptions& options, int64_t serial)
    : options_(options), serial_(serial), job_process_(start(options)) {
  reader_.Expect(kReadyFrameBytes);
  if (options.start_timeout.count() > 0) deadline_ = Clock::now() + options.start_timeout;
}

PoolWorker::~PoolWorker() = default;

Job PoolWorker::start(const PoolOptions& options) {
  Ends talk = make_ends(true), errors;
  Command command = options.worker;
  command.descriptors.emplace_back(talk.theirs.get(), kWorkerDescriptor);
  const auto capture = [&](Output& how, int number) {
    if (how != Output::kCapture) return;
    if (!errors.ours) errors = make_ends(false);
    command.descriptors.emplace_back(errors.theirs.get(), number);
    how = Output::kInherit;
  };
  capture(command.standard_output, STDOUT_FILENO);
  capture(command.standard_error, STDERR_FILENO);

  Limits limits = options.limits;
  limits.wall_time = limits.cpu_time = {};  // they hold for a job: ours to enforce
  limits.grace = {};
  Job job = Job::Start(command, limits);
  channels_ = {std::move(talk.ours), std::move(errors.ours)};
  return job;
}

bool PoolWorker::spoke_unasked() const noexcept {
  char byte = 0;
  return recv(socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void PoolWorker::Give(PoolJob job) {
  job_ = std::move(job);
  state_ = State::kBusy;
  request_unread_ = true;
  reader_.Expect(options_.result_bytes);
  writer_.Begin(job_->request, job_->options.attachment.get());
  job_process_.ResetPeak();
  at_begin_ = job_process_.Snapshot();
  job_begin_ = Clock::now();
  const auto wall = job_->options.wall_time.count() > 0 ? job_->options.wall_time : options_.limits.wall_time;
  deadline_ = wall.count() > 0 ? job_begin_ + wall : Clock::time_point::max();
  Write();
}

void PoolWorker::Write() {
  // A broken socket is noticed by the reader, which also knows whether the worker read the request.
  const FrameWriter::Status status = writer_.Write(socket());
  writing_ = status == FrameWriter::Status::kMore;
  request_unread_ = status != FrameWriter::Status::kDone;
}

PoolWorker::News PoolWorker::Read() {
  const bool awaited = state_ == State::kStarting || state_ == State::kBusy;
  switch (reader_.Read(socket())) {
    case FrameReader::Status::kMore:
      return News::kNothing;
    case FrameReader::Status::kPause:
      return News::kMore;
    case FrameReader::Status::kFrame:
      if (awaited) return on_frame();
      break;
    case FrameReader::Status::kTooLong:
      if (!awaited) break;
      text_ = fmt::format("announces {} bytes where at most {} are allowed", reader_.length_bytes(),
                          state_ == State::kBusy ? options_.result_bytes : kReadyFrameBytes);
      return News::kTooLong;
    case FrameReader::Status::kReset:
      request_unread_ = true;
      [[fallthrough]];
    case FrameReader::Status::kEnd:
      text_ = "closed descriptor 3";
      return News::kGone;
  }
  text_ = "wrote to descriptor 3 without a request";
  return News::kGarbage;
}

PoolWorker::News PoolWorker::on_frame() {
  text_ = reader_.take();
  attachment_ = reader_.take_attachment();
  reader_.Expect(0);
  if (state_ == State::kBusy) return News::kAnswer;
  if (text_ != "ready") return News::kRefused;
  state_ = State::kIdle;
  was_ready_ = true;
  deadline_ =
      options_.idle_timeout.count() > 0 ? Clock::now() + options_.idle_timeout : Clock::time_point::max();
  return News::kReady;
}

void PoolWorker::ReadErrors() {
  char chunk[kTailBytes];
  for (int i = 0; i < 16 && channels_.errors; ++i) {  // one that prints without end must not keep us here
    const ssize_t got = read(channels_.errors.get(), chunk, sizeof chunk);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return channels_.errors.reset();
    errors_tail_.append(chunk, static_cast<size_t>(got));
    if (errors_tail_.size() > 2 * kTailBytes) errors_tail_.erase(0, errors_tail_.size() - kTailBytes);
  }
}

std::string PoolWorker::last_words() const {
  std::string words =
      errors_tail_.size() > kTailBytes ? errors_tail_.substr(errors_tail_.size() - kTailBytes) : errors_tail_;
  while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
  return words.empty() ? words : "\n" + words;
}

Receipt PoolWorker::JobReceipt(Receipt receipt) const {
  receipt.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - job_begin_).count();
  receipt.cpu_ms -= at_begin_.cpu_ms;
  receipt.byte_seconds -= at_begin_.byte_seconds;
  return receipt;
}

std::pair<PoolJob, Receipt> PoolWorker::Finish() {
  Receipt receipt;
  try {
    receipt = JobReceipt(job_process_.Snapshot());
    if (receipt.peak_bytes == 0)
      receipt.peak_bytes = MemoryBytes();  // where peaks are sampled: too short for it
  } catch (const Error&) {                 // an answer counts with or without its figures
  }
  PoolJob job = std::move(*TakeJob());
  ++jobs_done_;
  state_ = State::kIdle;
  deadline_ =
      options_.idle_timeout.count() > 0 ? Clock::now() + options_.idle_timeout : Clock::time_point::max();
  return {std::move(job), std::move(receipt)};
}

std::optional<PoolJob> PoolWorker::TakeJob() {
  std::optional<PoolJob> job = std::move(job_);
  job_.reset();
  return job;
}

bool PoolWorker::over_cpu_time() const {
  const auto limit = options_.limits.cpu_time;
  if (state_ != State::kBusy || limit.count() == 0) return false;
  try {
    return job_process_.Snapshot().cpu_ms - at_begin_.cpu_ms >= static_cast<double>(limit.count());
  } catch (const Error&) {  // ended, most likely: others notice
    return false;
  }
}

void PoolWorker::Leave(std::chrono::milliseconds patience) {
  state_ = State::kLeaving;
  was_leaving_ = true;
  deadline_ = Clock::now() + patience;
  shutdown(socket(), SHUT_WR);
}

void PoolWorker::Kill(Outcome::Kind reason, std::string why) {
  kill_reason_ = reason;
  kill_why_ = std::move(why);
  job_process_.Kill();
  state_ = State::kEnding;
  deadline_ = Clock::now();
  kill_at_.reset();
}

void PoolWorker::Died() {
  state_ = State::kEnding;
  deadline_ = Clock::now();
  kill_at_ = deadline_ + kPatienceWithTheDead;
}

bool PoolWorker::Look() {
  try {
    if (!completed_) completed_ = job_process_.WaitFor(std::chrono::milliseconds(0));
  } catch (const Error& error) {  // it cannot be waited for; its Job's end is its own
    completed_.emplace().receipt.ending = Ending::kCancelled;
    if (kill_why_.empty()) kill_why_ = error.what();
  }
  return completed_.has_value();
}

std::optional<Completed> PoolWorker::Reap() {
  if (Look()) return completed_;
  const auto now = Clock::now();
  if (kill_at_ && now >= *kill_at_) {
    job_process_.Kill();
    kill_at_.reset();
  }
  deadline_ = now + std::chrono::milliseconds(2);
  return std::nullopt;
}

}  // namespace plimsoll
