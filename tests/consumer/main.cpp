#include <plimsoll/error.h>

#include <cstdio>

int main() {
  std::printf("plimsoll: %s\n", plimsoll::error_code_name(plimsoll::ErrorCode::kBudgetExceeded));
}
