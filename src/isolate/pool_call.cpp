// One request, one process.
#include <chrono>
#include <cstring>

#include "base/fail.h"
#include "isolate/patience.h"
#include "isolate/pool_channel.h"
#include "isolate/pool_describe.h"
#include "isolate/request.h"
#include "plimsoll/isolate.h"

namespace plimsoll {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLeavingPatience{2000};  // from the answer to the process's exit
constexpr milliseconds kLook{100};

Job start(Command command, const Limits& limits, WorkerChannel& channel) {
  channel.Connect(command);
  Job job = Job::Start(command, limits);
  channel.ForgetTheirs();
  return job;
}

}  // namespace

struct Call::Impl {
  Impl(Command command, const Limits& limits, std::string request, CallOptions options)
      : channel(std::move(request), std::move(options)), job(start(std::move(command), limits, channel)) {
    channel.Begin([this] { job.Kill(); });
  }
  ~Impl() {
    job.Kill();
    channel.Stop();  // its thread may be about to kill the job, which goes first
  }

  Outcome outcome(Receipt receipt);

  WorkerChannel channel;
  Job job;
  std::optional<Clock::time_point> answered_at;
};

Outcome Call::Impl::outcome(Receipt receipt) {
  using Said = WorkerChannel::Said;
  Outcome outcome;
  outcome.receipt = std::move(receipt);
  outcome.attempts = 1;
  std::string& text = channel.text();
  if (channel.said() == Said::kAnswer) {
    outcome.answer = std::move(text);
    outcome.attachment = channel.attachment();
  } else if (channel.said() == Said::kRefusal) {
    outcome.kind = Outcome::Kind::kStartFailed;
    outcome.message = "it could not start: " + text;
  } else if (channel.said() == Said::kTooLong) {
    outcome.kind = Outcome::Kind::kTooLarge;
    outcome.message = "its answer " + text + "; it was killed";
  } else {
    outcome.kind = kind_of_end(outcome.receipt);
    outcome.message = "its process " + describe_end(outcome.receipt);
  }
  return outcome;
}

Call Call::Start(Command worker, const Limits& limits, std::string request, CallOptions options) {
  if (options.result_bytes < 1 || options.output_bytes < 0)
    fail(ErrorCode::kInvalidArgument,
         "call: result_bytes is {} and output_bytes {}; expected at least 1 and 0", options.result_bytes,
         options.output_bytes);
  fill_standard_descriptors();
  return Call(std::make_unique<Impl>(std::move(worker), limits, std::move(request), std::move(options)));
}

Call::Call(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Call::Call(Call&&) noexcept = default;
Call& Call::operator=(Call&&) noexcept = default;
Call::~Call() = default;

std::optional<Called> Call::WaitFor(milliseconds timeout) {
  const auto deadline = Clock::now() + within_the_clock(timeout);
  std::optional<Completed> completed;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    completed = impl_->job.WaitFor(std::clamp(left, milliseconds(0), kLook));
    if (completed || left <= milliseconds(0)) break;
    if (!impl_->answered_at && impl_->channel.answered()) impl_->answered_at = Clock::now();
    if (impl_->answered_at && Clock::now() > *impl_->answered_at + kLeavingPatience) impl_->job.Kill();
  }
  if (!completed) return std::nullopt;
  impl_->channel.Stop();
  Called called;
  called.outcome = impl_->outcome(std::move(completed->receipt));
  called.output = std::move(impl_->channel.output());
  called.error = std::move(impl_->channel.error());
  called.truncated = impl_->channel.truncated();
  return called;
}

void Call::Kill() noexcept {
  impl_->job.Kill();
}

}  // namespace plimsoll
