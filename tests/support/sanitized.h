// Whether this binary was built with a sanitizer, which has a heap of its own and slows everything down.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLIMSOLL_SANITIZED 1
#else
#define PLIMSOLL_SANITIZED 0
#endif

namespace plimsoll {

inline constexpr bool kSanitized = PLIMSOLL_SANITIZED != 0;

}  // namespace plimsoll
