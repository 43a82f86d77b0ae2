#include "memory/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "memory/huge_page.h"

namespace plimsoll {

int64_t page_bytes() noexcept {
  static const int64_t kPage = ::sysconf(_SC_PAGESIZE);
  return kPage;
}

namespace {

constexpr int64_t kSeldomFilled = 64 << 10;
constexpr int kAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;

// Addresses that begin at a huge page, not yet memory; null if there are none.
void* reserve_at_huge_page(int64_t bytes) {
  const int64_t reserved = bytes + kHugePageBytes;
  void* found = ::mmap(nullptr, static_cast<size_t>(reserved), PROT_NONE, kAnonymous | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(found);
  const auto before = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(begin) % uint64_t{kHugePageBytes});
  if (before > 0) ::munmap(begin, static_cast<size_t>(before));
  ::munmap(begin + before + bytes, static_cast<size_t>(kHugePageBytes - before));
  return begin + before;
}

}  // namespace

// Large ones are in huge pages as far as these lie inside and there are any: a fault for 512 pages costs a
// fraction of 512 faults. What is in small pages is made resident at once, for half of what faults would
// cost, unless it is so little that it may never be filled: chunks of tables.
// What is more than the machine has, the system refuses here: with MAP_NORESERVE it would end the process
// later.
Mapping::Mapping(int64_t size, bool guard) {
  if (size == 0) return;
  const int64_t rounded = round_up(size, page_bytes());
  const int64_t guard_bytes = guard ? page_bytes() : 0;
  const auto bytes = static_cast<size_t>(rounded + guard_bytes);
  void* place = rounded < kHugePageBytes ? nullptr : reserve_at_huge_page(rounded + guard_bytes);
  void* mapping =
      ::mmap(place, bytes, PROT_READ | PROT_WRITE, kAnonymous | (place == nullptr ? 0 : MAP_FIXED), -1, 0);
  if (mapping == MAP_FAILED) {
    const int error = errno;
    if (place != nullptr) ::munmap(place, bytes);
    fail(ErrorCode::kOutOfMemory, "the operating system refused {} bytes: {}", rounded, std::strerror(error));
  }
  if (place != nullptr) ::madvise(mapping, bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapping);
  size_ = rounded;
  const int64_t in_huge_pages = place == nullptr ? 0 : rounded / kHugePageBytes * kHugePageBytes;
  if (rounded > kSeldomFilled)
    populate_for_writing({data_ + in_huge_pages, static_cast<size_t>(rounded - in_huge_pages)});
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
