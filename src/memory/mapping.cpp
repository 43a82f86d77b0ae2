#include "memory/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.h"

namespace plimsoll {

int64_t page_bytes() noexcept {
  static const int64_t kPage = ::sysconf(_SC_PAGESIZE);
  return kPage;
}

Mapping::Mapping(int64_t size, bool guard) {
  if (size == 0) return;
  const int64_t rounded = round_up(size, page_bytes());
  const int64_t guard_bytes = guard ? page_bytes() : 0;
  void* mapping = ::mmap(nullptr, static_cast<size_t>(rounded + guard_bytes), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED)
    fail(ErrorCode::kOutOfMemory, "the operating system refused {} bytes: {}", rounded, std::strerror(errno));
  data_ = static_cast<std::byte*>(mapping);
  size_ = rounded;
  guard_ = guard_bytes;
  if (guard) ::mprotect(data_ + size_, static_cast<size_t>(guard_), PROT_NONE);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      guard_(std::exchange(other.guard_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(guard_, other.guard_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, static_cast<size_t>(size_ + guard_));
}

void Mapping::discard() noexcept {
  if (data_ != nullptr) ::madvise(data_, static_cast<size_t>(size_), MADV_DONTNEED);
}

}  // namespace plimsoll
