#include "compiled/reservation.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/fail.h"

namespace plimsoll {

Reservation::Reservation(int64_t size) : size_(static_cast<size_t>(size)) {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* mapping = ::mmap(nullptr, size_, PROT_NONE, kFlags, -1, 0);
  if (mapping == MAP_FAILED)
    fail(ErrorCode::kOutOfMemory, "the operating system refused {} addresses: {}", size,
         std::strerror(errno));
  data_ = static_cast<std::byte*>(mapping);
}

Reservation::~Reservation() {
  ::munmap(data_, size_);
}

}  // namespace plimsoll
