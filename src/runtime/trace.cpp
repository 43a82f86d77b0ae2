#include "runtime/trace.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/fail.h"

namespace plimsoll {
namespace {

constexpr size_t kBuffer = 64 << 10;

// A JSON string; what is not ASCII passes as it is, control characters become spaces.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

int64_t microseconds(Trace::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// [{"float":[1,3,224,224]}, ...]; absent ones are left out, of lists the kind is told.
std::string shapes(std::span<const TensorView> views) {
  std::string text;
  for (const TensorView& view : views) {
    if (view.type == ElementType::kUndefined) continue;
    const bool is_tensor = view.kind == ValueKind::kTensor;
    text += fmt::format("{}{{\"{}\":[", text.empty() ? "" : ",",
                        is_tensor ? element_type_name(view.type) : value_kind_name(view.kind));
    for (size_t d = 0; d < view.dims.size(); ++d)
      text += fmt::format("{}{}", d == 0 ? "" : ",", view.dims[d]);
    text += "]}";
  }
  return "[" + text + "]";
}

int64_t bytes_of(const TensorView& view) {
  return view.kind == ValueKind::kTensor && view.type != ElementType::kUndefined ? view.bytes() : 0;
}

std::string accounts(const MemoryReport& report) {
  std::string text;
  for (size_t i = 0; i < kAccounts; ++i)
    text += fmt::format("{}\"{}\":{}", i == 0 ? "" : ",", account_name(static_cast<Account>(i)),
                        report.accounts[i].now_bytes);
  return "{" + text + "}";
}

// A file that was not there before.
std::FILE* open_new(const std::string& prefix, std::string& path) {
  const std::string time = fmt::format("{:%Y-%m-%d_%H-%M-%S}", fmt::localtime(std::time(nullptr)));
  constexpr int kMostTries = 1000;
  for (int i = 0; i < kMostTries; ++i) {
    path = fmt::format("{}_{}{}.json", prefix, time, i == 0 ? "" : fmt::format("_{}", i + 1));
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor >= 0) return ::fdopen(descriptor, "w");
    if (errno != EEXIST) break;
  }
  fail(ErrorCode::kIo, "profile '{}': cannot be opened: {}", path, std::strerror(errno));
}

}  // namespace

Trace::Trace(const std::string& prefix, Budget& session)
    : session_(session), charge_(session, Account::kSession, kBuffer) {
  buffer_.reserve(kBuffer);
  file_.reset(open_new(prefix, path_));
  add("[\n");
}

Trace::~Trace() {
  try {
    finish();
  } catch (const Error&) {
    // Nobody asked for the file: nobody can be told.
  }
}

void Trace::write() {
  if (error_ == 0 && std::fwrite(buffer_.data(), 1, buffer_.size(), file_.get()) != buffer_.size())
    error_ = errno;
  buffer_.clear();
}

void Trace::add(const std::string& event) {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return;
  if (buffer_.size() + event.size() + 2 > kBuffer) write();
  const bool is_event = event[0] == '{';
  if (is_event && !empty_) buffer_ += ",\n";
  if (is_event) empty_ = false;
  buffer_ += event;
}

void Trace::add_session_event(const char* name, Clock::time_point start, const std::string& run_tag) {
  add(fmt::format(
      "{{\"cat\" : \"Session\",\"pid\" :{},\"tid\" :{},\"dur\" :{},\"ts\" :{},\"ph\" : \"X\",\"name\" "
      ":{},\"args\" : {{{}}}}}",
      ::getpid(), ::gettid(), microseconds(Clock::now() - start), microseconds(start - start_), quoted(name),
      run_tag.empty() ? "" : "\"run_tag\" : " + quoted(run_tag)));
}

void Trace::add_node(const Step& step, std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs, std::span<const bool> constant_inputs,
                     Clock::time_point start, Clock::time_point end, int threads) {
  int64_t parameters = 0, activations = 0, made = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    (constant_inputs[i] ? parameters : activations) += bytes_of(inputs[i]);
  for (const TensorView& view : outputs) made += bytes_of(view);
  const MemoryReport memory = session_.report();
  const Node& node = *step.node;
  add(
      fmt::format("{{\"cat\" : \"Node\",\"pid\" :{},\"tid\" :{},\"dur\" :{},\"ts\" :{},\"ph\" : "
                  "\"X\",\"name\" :{},\"args\" : "
                  "{{\"op_name\" : {},\"provider\" : \"CPUExecutionProvider\",\"node_index\" : "
                  "\"{}\",\"parameter_size\" : "
                  "\"{}\",\"activation_size\" : \"{}\",\"output_size\" : \"{}\",\"input_type_shape\" : "
                  "{},\"output_type_shape\" : {},\"thread_scheduling_stats\" : {{\"main_thread\": "
                  "{{\"thread_pool_name\": "
                  "\"intra-op\", \"thread_id\": \"{}\", \"core\": {}}}, \"threads\": {}}},\"memory_bytes\" : "
                  "{},\"memory_total_"
                  "bytes\" : {}}}}}",
                  ::getpid(), ::gettid(), microseconds(end - start), microseconds(start - start_),
                  quoted(fmt::format("{}_kernel_time", node.name)), quoted(node.op_type), node.id, parameters,
                  activations, made, shapes(inputs), shapes(outputs), ::gettid(), ::sched_getcpu(), threads,
                  accounts(memory), memory.now_bytes));
}

std::string Trace::finish() {
  const std::lock_guard lock(mutex_);
  if (file_ == nullptr) return {};
  buffer_ += "\n]\n";
  write();
  if (std::fclose(file_.release()) != 0 && error_ == 0) error_ = errno;
  buffer_ = {};
  charge_.reset();
  if (error_ != 0) {
    ::unlink(path_.c_str());  // a part of it is no JSON
    fail(ErrorCode::kIo, "profile '{}': could not be written: {}", path_, std::strerror(error_));
  }
  return path_;
}

}  // namespace plimsoll
