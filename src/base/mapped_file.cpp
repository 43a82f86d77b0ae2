#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/descriptor.h"
#include "base/fail.h"

namespace plimsoll {
namespace {

void read_all(int fd, size_t offset, std::byte* data, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, data + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kIo, "file '{}': cannot be read: {}", path, std::strerror(errno));
    if (n == 0)
      fail(ErrorCode::kIo, "file '{}': expected {} bytes, found {}", path, offset + size, offset + done);
    done += static_cast<size_t>(n);
  }
}

void advise_pages(const std::byte* data, size_t size, int advice) {
  if (size == 0) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + size + page - 1) / page * page;
  ::madvise(reinterpret_cast<void*>(begin), end - begin, advice);
}

// Of Linux 5.14, younger than some headers.
constexpr int kPopulateRead = 22, kPopulateWrite = 23;

}  // namespace

void populate_for_reading(std::span<const std::byte> bytes) noexcept {
  advise_pages(bytes.data(), bytes.size(), kPopulateRead);
}

void populate_for_writing(std::span<std::byte> bytes) noexcept {
  advise_pages(bytes.data(), bytes.size(), kPopulateWrite);
}

MappedFile::MappedFile(const std::string& path, Access access, const Admit& admit)
    : path_(path), access_(access) {
  // Without waiting: opening a pipe would, for somebody who writes to it.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) fail(ErrorCode::kIo, "file '{}': cannot be opened: {}", path, std::strerror(errno));
  struct stat info;
  if (::fstat(file.get(), &info) != 0) fail(ErrorCode::kIo, "file '{}': {}", path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::kIo, "file '{}': expected a regular file", path);
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  const bool copy = access == Access::kRead;
  if (copy && admit) admit(round_up(info.st_size, ::sysconf(_SC_PAGESIZE)));
  void* mapping = ::mmap(nullptr, size_, copy ? PROT_READ | PROT_WRITE : PROT_READ,
                         MAP_PRIVATE | (copy ? MAP_ANONYMOUS : 0), copy ? -1 : file.get(), 0);
  if (mapping == MAP_FAILED) {
    const int error = errno;
    size_ = 0;
    fail(error == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kIo, "file '{}': cannot be mapped: {}", path,
         std::strerror(error));
  }
  data_ = static_cast<std::byte*>(mapping);
  if (!copy) {
    constexpr size_t kWorthADescriptor = 1 << 20;
    if (size_ >= kWorthADescriptor) open_ = std::move(file);
    return;
  }
  try {
    read_all(file.get(), 0, data_, size_, path);
  } catch (...) {
    ::munmap(data_, size_);
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      access_(other.access_),
      open_(std::move(other.open_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(access_, other.access_);
  std::swap(open_, other.open_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::drop(size_t offset, size_t size) const noexcept {
  if (access_ != Access::kMap || data_ == nullptr) return;
  if (size == 0 || offset > size_ || size > size_ - offset) return;
  // Linux maps what is around a page with it, up to multiples of this.
  constexpr uintptr_t kAround = 64 << 10;
  const auto first = reinterpret_cast<uintptr_t>(data_), last = first + size_;
  const uintptr_t begin = std::max(first, (first + offset) / kAround * kAround);
  const uintptr_t end = std::min(last, (first + offset + size + kAround - 1) / kAround * kAround);
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void MappedFile::read(size_t offset, std::span<std::byte> to) const {
  read_all(open_.get(), offset, to.data(), to.size(), path_);
}

void MappedFile::read_in_small_pages() const noexcept {
  if (access_ == Access::kMap && data_ != nullptr) ::madvise(data_, size_, MADV_NOHUGEPAGE);
}

}  // namespace plimsoll
