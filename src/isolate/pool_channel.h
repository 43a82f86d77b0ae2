// What a process that answers one request says: its frames and its output, read by a thread of their own so
// that whoever waits for the process can do just that.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "base/descriptor.h"
#include "isolate/pool_frame.h"
#include "plimsoll/isolate.h"

namespace plimsoll {

class WorkerChannel {
 public:
  enum class Said : uint8_t { kNothing, kRefusal, kAnswer, kTooLong };

  WorkerChannel(std::string request, CallOptions options);
  ~WorkerChannel();  // Stop
  WorkerChannel(const WorkerChannel&) = delete;
  WorkerChannel& operator=(const WorkerChannel&) = delete;

  // Adds the process's ends to its command; ForgetTheirs closes them here once it has them.
  void Connect(Command& command);
  void ForgetTheirs();
  // `stop_it` is called on the channel's thread if what the process says makes no sense.
  void Begin(std::function<void()> stop_it);
  // Takes in what is still in the pipes, and joins the thread. Call when the process is over.
  void Stop();

  // The process has said all that matters, and was told to end.
  bool answered() const noexcept { return answered_; }
  // After Stop.
  Said said() const noexcept { return said_; }
  std::string& text() noexcept { return text_; }
  std::shared_ptr<const Attachment> attachment() const noexcept { return attachment_; }
  std::string& output() noexcept { return output_.text; }
  std::string& error() noexcept { return error_.text; }
  bool truncated() const noexcept { return output_.truncated || error_.truncated; }

 private:
  struct Stream {
    Descriptor ours, theirs;
    std::string text;
    bool truncated = false;
  };

  void open(Stream& stream);
  void run();
  bool turn(bool last);  // false: everything is closed
  void on_socket(short events);
  void on_frame();
  void on_stream(Stream& stream);

  const std::string request_;
  const CallOptions options_;
  Descriptor socket_, their_socket_, wake_;
  Stream output_, error_;
  FrameReader reader_;
  FrameWriter writer_;
  bool writing_ = true;
  bool ready_ = false;
  Said said_ = Said::kNothing;
  std::string text_;
  std::shared_ptr<const Attachment> attachment_;
  std::function<void()> stop_it_;
  std::atomic<bool> answered_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace plimsoll
