#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/descriptor.h"
#include "base/fail.h"

namespace plimsoll {
namespace {

void read_all(int fd, std::byte* data, size_t size, const std::string& path) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::pread(fd, data + done, size - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(ErrorCode::kIo, "file '{}': cannot be read: {}", path, std::strerror(errno));
    if (n == 0) fail(ErrorCode::kIo, "file '{}': expected {} bytes, found {}", path, size, done);
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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
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
  if (!copy) return;
  try {
    read_all(file.get(), data_, size_, path);
  } catch (...) {
    ::munmap(data_, size_);
    throw;
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      access_(other.access_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(access_, other.access_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MappedFile::drop(size_t offset, size_t size) const noexcept {
  if (access_ != Access::kMap || data_ == nullptr) return;
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t begin = (offset + page - 1) / page * page;
  const size_t end = (offset + size) / page * page;
  if (begin < end && end <= size_) ::madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

void MappedFile::read_in_small_pages() const noexcept {
  if (access_ == Access::kMap && data_ != nullptr) ::madvise(data_, size_, MADV_NOHUGEPAGE);
}

}  // namespace plimsoll
