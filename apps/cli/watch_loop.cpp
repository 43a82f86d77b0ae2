#include "watch_loop.h"

#include <fmt/core.h>
#include <plimsoll/error.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <exception>
#include <filesystem>

#include "files.h"
#include "report.h"
#include "watch_experiments.h"
#include "watch_html.h"
#include "watch_text.h"
#include "watch_trim.h"

namespace plimsoll::cli {
namespace {

constexpr size_t kMostSamples = 50000;       // then every second one goes
constexpr double kAccountEverySeconds = 10;  // at most
constexpr double kShareOfReading = 0.0018;   // of a core; together they stay below 0.5 %
constexpr double kShareOfJudging = 0.001;
constexpr double kShareOfAccounts = 0.001;

double monotonic_seconds() {
  struct timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Whether the process numbers in /proc mean the same to us.
bool numbers_are_ours() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self", error) == std::to_string(::getpid());
}

void thin_out(std::vector<Sample>& samples) {
  if (samples.size() < kMostSamples) return;
  size_t kept = 0;
  for (size_t i = 0; i < samples.size(); i += 2)
    std::swap(samples[kept++], samples[representative(samples, i, 2)]);
  samples.resize(kept);
}

}  // namespace

Watch::Watch(const WatchOptions& options)
    : options_(options),
      display_(make_display(options.json)),
      target_(options, display_->wants_output(),
              [this](std::string_view text) { show([&] { display_->pass_output(text); }); }),
      began_seconds_(monotonic_seconds()) {}

double Watch::elapsed_seconds() const {
  return monotonic_seconds() - began_seconds_;
}

void Watch::note(std::string text) {
  history_.notes.push_back(std::move(text));
}

// Nobody looks any more when stdout is closed: the watch ends, but its files are still finished.
void Watch::show(const std::function<void()>& draw) {
  if (display_problem_) return;
  try {
    draw();
  } catch (const Error& error) {
    display_problem_ = std::current_exception();
    note(fmt::format("{} after {:.1f} s", error.what(), elapsed_seconds()));
    over_ = true;
  }
}

int Watch::run() {
  begin();
  if (observer_) observe(options_.duration_seconds > 0 ? options_.duration_seconds : HUGE_VAL);
  judge_now();
  if (observer_ && !over_) run_experiments();
  finish();
  if (!recorder_.problem().empty()) throw Error(ErrorCode::kIo, recorder_.problem());
  return history_.verdict.kind == VerdictKind::kLeak ? 1 : 0;
}

// Whatever can be known to fail later fails here, before anything is started.
void Watch::begin() {
  if (target_.ours() && !numbers_are_ours())
    throw Error(
        ErrorCode::kInvalidArgument,
        "/proc shows another PID namespace than ours, or nothing: the command could not be found there "
        "(unshare has --mount-proc)");
  if (options_.trim && !can_trim())
    throw Error(ErrorCode::kNotImplemented, "--trim: only on x86-64 with glibc");
  if (!options_.html.empty()) check_can_write(options_.html);
  if (options_.reclaim && !target_.can_have_cgroup())
    throw Error(ErrorCode::kNotImplemented,
                "--reclaim: no memory cgroup can be made for the command on this machine, and no other is "
                "touched");
  if (!target_.ours()) attach();
  if (!options_.record.empty()) recorder_.open(options_.record);
  if (target_.ours()) {
    target_.start();
    began_seconds_ = monotonic_seconds();
    try {
      attach();
    } catch (const Error&) {
      // It may have ended already; otherwise the error stands.
      if (!wait(elapsed_seconds() + 1) && !target_.ending().empty())
        note("the command ended before its memory could be read");
      else
        throw;
    }
  }
  history_.header = recording_header(options_, target_.pid());
  recorder_.add(ToJson(history_.header));
}

void Watch::attach() {
  ObserverOptions observer_options;
  observer_options.tree = !options_.only_process;
  observer_options.cost_limit = kShareOfReading;
  observer_options.told_directory = target_.told_directory();
  observer_offset_ = target_.ours() ? elapsed_seconds() : 0;
  observer_.emplace(target_.pid(), observer_options);
  young_reads_ = target_.ours() ? 2 : 0;
}

// Waits for a moment, and meanwhile reads what the command prints.
bool Watch::wait(double until_seconds) {
  while (!over_) {
    const double left = until_seconds - elapsed_seconds();
    if (left <= 0) return true;
    std::vector<pollfd> descriptors = {{signals_.descriptor(), POLLIN, 0}};
    // What the command prints is taken no faster than it is read from us.
    target_.add_descriptors(descriptors, display_->is_ready_for_output());
    if (!display_problem_) display_->add_descriptors(descriptors);
    const double slice = std::min(left, 3600.0);
    struct timespec timeout = {static_cast<time_t>(slice),
                               static_cast<long>((slice - std::floor(slice)) * 1e9)};
    ::ppoll(descriptors.data(), descriptors.size(), &timeout, nullptr);
    hear_signals();
    show([&] { display_->flush(); });
    target_.read_all(display_->is_ready_for_output());
    if (target_.job_ended()) {
      note(fmt::format("the command {} after {:.1f} s", target_.ending(), elapsed_seconds()));
      over_ = true;
    }
    if (signals_.stop()) {
      note(fmt::format("stopped by a signal after {:.1f} s", elapsed_seconds()));
      over_ = true;
    }
  }
  return false;
}

void Watch::hear_signals() {
  signals_.read();
  if (signals_.take_resumed()) show([&] { display_->resumed(); });
  if (signals_.take_resized()) show([&] { display_->resized(history_); });
}

// The report waits for its reader as long as that goes on reading; what the command printed, and what is
// asked to end, not for long.
void Watch::await_reader() {
  constexpr double kSeconds = 5, kFewSeconds = 1;
  double patience = signals_.take_stop() ? kFewSeconds : kSeconds;
  double since = elapsed_seconds();
  const double error_until = since + kFewSeconds;
  Outlet &output = display_->output(), &error = display_->error();
  while (!display_problem_) {
    const double now = elapsed_seconds();
    const bool waits =
        (output.is_behind() && now < since + patience) || (error.is_behind() && now < error_until);
    if (!waits || signals_.stop()) break;
    std::vector<pollfd> descriptors = {{signals_.descriptor(), POLLIN, 0}};
    display_->add_descriptors(descriptors);
    ::poll(descriptors.data(), descriptors.size(), 100);
    signals_.read();
    const int64_t before = output.bytes_behind();
    show([&] { display_->flush(); });
    if (output.bytes_behind() < before) since = elapsed_seconds();
  }
  if (!display_problem_ && output.is_behind())
    display_problem_ = std::make_exception_ptr(Error(
        ErrorCode::kIo,
        fmt::format("standard output: nobody read the last {} bytes of the report", output.bytes_behind())));
}

// Programs of a few seconds get a verdict too: their beginning is watched more closely.
double Watch::interval_seconds() const {
  constexpr double kYoungSeconds = 12, kYoungInterval = 0.25;
  const bool is_young = !options_.interval_is_given && elapsed_seconds() < kYoungSeconds;
  return is_young ? kYoungInterval : options_.interval_seconds;
}

void Watch::observe(double until_seconds) {
  double next = elapsed_seconds();
  while (!over_) {
    if (elapsed_seconds() >= until_seconds) return;
    sample();
    if (!target_.ours() && observer_->Ended()) {
      note(fmt::format("the process ended after {:.1f} s", elapsed_seconds()));
      over_ = true;
      return;
    }
    // Moments that were missed, because the machine slept or was busy, are left out.
    const double interval = interval_seconds();
    next = std::max(next + interval, next + interval * std::floor((elapsed_seconds() - next) / interval));
    if (!wait(std::min(next, until_seconds))) return;
  }
}

void Watch::sample() {
  Sample one = observer_->Read(target_.iteration());
  // Our own exec may still have been under way when the observer first looked: that is no gap.
  if (one.gap && young_reads_ > 0) one = observer_->Read(target_.iteration());
  if (young_reads_ > 0) --young_reads_;
  one.seconds += observer_offset_;
  // On a busy machine reading takes a while, and iterations go on: what was read belongs to the middle.
  target_.read_all(display_->is_ready_for_output());
  if (one.iteration >= 0) one.iteration += (target_.iteration() - one.iteration) / 2;
  add_sample(std::move(one));
  judge_at_times();
  if (elapsed_seconds() >= next_account_ && !history_.samples.back().gap) account_now();
  hear_signals();
  show([&] { display_->show(history_); });
}

void Watch::add_sample(Sample sample) {
  if (!history_.samples.empty()) sample.seconds = std::max(sample.seconds, history_.samples.back().seconds);
  recorder_.add(ToJson(sample));
  history_.samples.push_back(std::move(sample));
  thin_out(history_.samples);
}

void Watch::judge_now() {
  history_.verdict = Judge(history_.samples);
}

// Judging takes longer as samples become many: then it is done less often.
void Watch::judge_at_times() {
  const double before = elapsed_seconds();
  if (before < next_judgement_) return;
  judge_now();
  next_judgement_ = before + (elapsed_seconds() - before) / kShareOfJudging;
}

// The whole account is read now and then, so that there is one when the process is gone.
void Watch::account_now() {
  const double before = elapsed_seconds();
  MemoryAccount account = observer_->Account();
  // An exec since the last sample is told as a gap, once: what is there now comes with the next look.
  if (account.sample.gap && !observer_->Ended()) account = observer_->Account();
  account.sample.seconds += observer_offset_;
  if (!account.sample.gap) history_.account = std::move(account);
  next_account_ = before + std::max(kAccountEverySeconds, (elapsed_seconds() - before) / kShareOfAccounts);
}

void Watch::run_experiments() {
  account_now();  // as it was before they changed anything
  const auto add = [&](Experiment experiment) {
    experiment.before.seconds += observer_offset_;
    experiment.after.seconds += observer_offset_;
    history_.experiments.push_back(std::move(experiment));
  };
  if (options_.trim) add(trim(*observer_, target_.pid()));
  if (options_.reclaim) add(reclaim(*observer_, target_.cgroup_directory()));
  if (options_.restart) restart();
  if (target_.job_ended()) note(fmt::format("the command {} during the experiments", target_.ending()));
}

// The same command anew: what it takes when it is young.
void Watch::restart() {
  constexpr double kLongestSeconds = 10;
  const Sample* last = last_reading(history_.samples);
  if (!last) return;
  Experiment experiment;
  experiment.name = "restart";
  experiment.before = *last;
  try {
    start_anew();
    const Verdict verdict = history_.verdict;
    next_judgement_ = next_account_ = HUGE_VAL;
    observe(observer_offset_ + std::min(options_.duration_seconds, kLongestSeconds));
    history_.verdict = verdict;
    experiment.after = *last_reading(history_.samples);
    const int64_t before = experiment.before.process.kernel_bytes,
                  after = experiment.after.process.kernel_bytes;
    experiment.finding = fmt::format(
        "{} at the end, {} after a restart and {:.1f} s: {} {}", human_bytes(before), human_bytes(after),
        experiment.after.seconds - observer_offset_, human_bytes(std::abs(before - after)),
        before >= after ? "came back" : "more than before");
    if (experiment.after.seconds < observer_offset_)
      experiment.finding = "not done: the command ended before its memory could be read again";
  } catch (const Error& error) {  // does not cost the report of what was there before
    experiment.after = experiment.before;
    experiment.finding = fmt::format("not done: {}", error.what());
  }
  history_.experiments.push_back(std::move(experiment));
}

void Watch::start_anew() {
  observer_.reset();
  target_.start();
  Sample gap;
  gap.seconds = elapsed_seconds();
  gap.gap = true;
  gap.gap_reason = "restarted";
  add_sample(std::move(gap));
  show([&] { display_->show(history_); });
  attach();
}

void Watch::finish() {
  if (observer_ && history_.experiments.empty() && !observer_->Ended()) account_now();
  observer_.reset();
  target_.kill();
  if (target_.counts_iterations() && target_.iteration() < 0)
    note(options_.pattern.empty()
             ? fmt::format("nothing was written to descriptor {}: judged by time", options_.iterations_fd)
             : fmt::format("no line of the command's stdout matched '{}': judged by time", options_.pattern));
  if (display_->output().dropped() > 0)
    note(fmt::format("{} samples are not among these lines: nobody read them", display_->output().dropped()));
  if (std::string asked = asked_text(history_.samples); !asked.empty()) note(std::move(asked));
  if (history_.samples.empty()) note("there is nothing to judge: not one sample was read");
  if (history_.account) recorder_.add(ToJson(*history_.account));
  for (const Experiment& experiment : history_.experiments)
    recorder_.add(NoteToJson(fmt::format("{}: {}", experiment.name, experiment.finding)));
  for (const std::string& text : history_.notes) recorder_.add(NoteToJson(text));
  recorder_.add(ToJson(history_.verdict));
  recorder_.close();
  // A page that cannot be written does not cost the report.
  std::exception_ptr page_problem;
  if (!options_.html.empty()) {
    try {
      write_page(options_.html, history_);
    } catch (const Error&) {
      page_problem = std::current_exception();
    }
  }
  show([&] { display_->finish(history_); });
  await_reader();
  if (page_problem) std::rethrow_exception(page_problem);
  if (display_problem_) std::rethrow_exception(display_problem_);
}

}  // namespace plimsoll::cli
