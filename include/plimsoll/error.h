// The one exception type of Plimsoll.
//
// Whatever an outsider can cause (a file, a shape, a budget, a disk) is an Error; what only we can
// cause is an assertion. The message names the subject, what was expected and what was found. After
// any Error the object it came from is usable, and nothing is leaked.
#pragma once

#include <exception>
#include <string>

namespace plimsoll {

enum class ErrorCode {
  kInvalidArgument = 3,    // a wrong input, shape, option or name given by the caller
  kInvalidModel = 4,       // the bytes of a model, or what they say, are wrong
  kNotImplemented = 5,     // valid ONNX that this version cannot run; the message names it
  kBudgetExceeded = 6,     // would cross a memory limit; raised before the memory is taken
  kOutOfMemory = 7,        // the operating system refused memory below the limit
  kIo = 8,                 // a file could not be opened, read or written
  kCancelled = 9,          // the run was cancelled by its caller
  kDeadlineExceeded = 10,  // the run did not finish by its deadline
  kBusy = 11,              // max_concurrent_runs are under way and the caller asked not to wait
};

class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}
  ErrorCode code() const noexcept { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
};

// The code's name, such as "budget exceeded".
const char* error_code_name(ErrorCode code) noexcept;
// The exit code of the command line for it: the enumerator's own number.
int exit_code(ErrorCode code) noexcept;

}  // namespace plimsoll
