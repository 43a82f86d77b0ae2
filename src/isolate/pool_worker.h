// One worker of a pool: its process, its socket, the job it has, and when what must have happened.
// Used by the pool's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "isolate/pool_frame.h"
#include "isolate/pool_queue.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

class PoolWorker {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : uint8_t {
    kStarting,  // until its first frame
    kIdle,
    kBusy,     // has job()
    kLeaving,  // was told to end by end of file
    kEnding,   // killed, or dead by itself; until Reap
  };
  // What came over the socket.
  enum class News : uint8_t { kNothing, kMore, kReady, kRefused, kAnswer, kTooLong, kGarbage, kGone };

  // Starts the process; throws what Job::Start throws.
  PoolWorker(const PoolOptions& options, int64_t serial);
  ~PoolWorker();
  PoolWorker(const PoolWorker&) = delete;
  PoolWorker& operator=(const PoolWorker&) = delete;

  int64_t serial() const noexcept { return serial_; }
  int pid() const noexcept { return job_process_.pid(); }
  int pidfd() const noexcept { return job_process_.pidfd(); }
  int socket() const noexcept { return channels_.socket.get(); }  // -1 once closed
  int errors_fd() const noexcept {
    return channels_.errors.get();
  }  // its captured output; -1: not captured, or closed
  State state() const noexcept { return state_; }
  Clock::time_point deadline() const noexcept { return deadline_; }  // of its state; max(): none
  int64_t jobs_done() const noexcept { return jobs_done_; }
  int64_t MemoryBytes() const { return job_process_.MemoryBytes(); }

  // kIdle: there is something on the socket that nobody asked for.
  bool spoke_unasked() const noexcept;
  // The job's request goes out as far as the socket takes it.
  void Give(PoolJob job);
  bool wants_to_write() const noexcept { return state_ == State::kBusy && writing_; }
  void Write();
  // Reads at most one frame. kRefused, kAnswer: text() is the frame. kTooLong, kGarbage, kGone: text() says
  // what happened.
  News Read();
  std::string& text() noexcept { return text_; }
  std::shared_ptr<const Attachment> TakeAttachment() noexcept { return std::move(attachment_); }
  void ReadErrors();
  // Its last words: the end of its captured stderr, from a new line on, or nothing.
  std::string last_words() const;

  // kBusy to kIdle: gives the job back with the receipt of the worker during it.
  std::pair<PoolJob, Receipt> Finish();
  bool has_job() const noexcept { return job_.has_value(); }
  const PoolJob& job() const { return *job_; }
  std::optional<PoolJob> TakeJob();
  // Whether it ended before it had read all of its request: then the job never began.
  bool request_unread() const noexcept { return request_unread_; }
  bool over_cpu_time() const;

  void Leave(std::chrono::milliseconds patience);
  // Why a worker is killed decides how its job ends.
  void Kill(Outcome::Kind reason, std::string why);
  Outcome::Kind kill_reason() const noexcept { return kill_reason_; }
  const std::string& kill_why() const noexcept { return kill_why_; }
  // kEnding without a kill of ours: whoever closed the socket and does not exit is killed soon.
  void Died();
  bool was_ready() const noexcept { return was_ready_; }
  bool was_leaving() const noexcept { return was_leaving_; }
  // What a Job does only while somebody waits for it, such as sampling; true: it is over, Reap.
  bool Look();
  // kEnding: the receipt once the whole group is gone. Call again at deadline() until then.
  std::optional<Completed> Reap();
  Receipt JobReceipt(Receipt receipt) const;  // the worker's receipt with this job's times

 private:
  // Our ends of what connects us with the process.
  struct Channels {
    Descriptor socket, errors;
  };

  Job start(const PoolOptions& options);
  News on_frame();

  const PoolOptions& options_;
  const int64_t serial_;
  Channels channels_;
  Job job_process_;
  State state_ = State::kStarting;
  Clock::time_point deadline_ = Clock::time_point::max();
  std::optional<Clock::time_point> kill_at_;  // kEnding and not yet killed
  FrameReader reader_;
  FrameWriter writer_;
  std::optional<PoolJob> job_;
  bool writing_ = false;
  bool request_unread_ = false;
  bool was_ready_ = false;
  bool was_leaving_ = false;
  Clock::time_point job_begin_{};
  Receipt at_begin_;  // of the worker, when the job began
  int64_t jobs_done_ = 0;
  Outcome::Kind kill_reason_ = Outcome::Kind::kWorkerDied;
  std::string kill_why_;
  std::optional<Completed> completed_;
  std::string text_;
  std::shared_ptr<const Attachment> attachment_;
  std::string errors_tail_;
};

}  // namespace plimsoll
