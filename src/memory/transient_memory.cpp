#include "memory/transient_memory.h"

#include <sys/mman.h>

#include "base/checked.h"

namespace plimsoll {
namespace {
constexpr size_t kSmall = 32 << 10;  // smaller blocks are pieces of a chunk
}

void* ChargedResource::do_allocate(size_t bytes, size_t alignment) {
  if (bytes < kSmall) return chunks_.allocate(bytes, alignment);
  const int64_t mapped = round_up(static_cast<int64_t>(bytes), page_bytes());
  Charge charge(*budget_, account_, mapped);
  Mapping mapping(mapped);
  charge.keep();
  return mapping.release();
}

void ChargedResource::do_deallocate(void* data, size_t bytes, size_t) {
  if (bytes < kSmall) return;
  const int64_t mapped = round_up(static_cast<int64_t>(bytes), page_bytes());
  ::munmap(data, static_cast<size_t>(mapped));
  budget_->release(account_, mapped);
}

}  // namespace plimsoll
