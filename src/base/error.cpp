#include "plimsoll/error.h"

#include "base/checked.h"
#include "base/fail.h"
#include "base/overflow.h"

namespace plimsoll {

std::string printable(std::string message) {
  for (char& c : message) {
    const auto code = static_cast<unsigned char>(c);
    if ((code < 0x20 && c != '\n' && c != '\t') || code == 0x7f) c = '?';
  }
  return message;
}

void fail_with(ErrorCode code, std::string message) {
  throw Error(code, printable(std::move(message)));
}

void fail_overflow(int64_t a, const char* operation, int64_t b) {
  throw Overflow(ErrorCode::kInvalidModel, fmt::format("size {} {} {} overflows 64 bits", a, operation, b));
}

const char* error_code_name(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid argument";
    case ErrorCode::kInvalidModel:
      return "invalid model";
    case ErrorCode::kNotImplemented:
      return "not implemented";
    case ErrorCode::kBudgetExceeded:
      return "budget exceeded";
    case ErrorCode::kOutOfMemory:
      return "out of memory";
    case ErrorCode::kIo:
      return "input/output error";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDeadlineExceeded:
      return "deadline exceeded";
    case ErrorCode::kBusy:
      return "busy";
  }
  return "unknown error";
}

int exit_code(ErrorCode code) noexcept {
  return static_cast<int>(code);
}

}  // namespace plimsoll
