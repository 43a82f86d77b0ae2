#include "plimsoll/error.h"

namespace plimsoll {

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
