#include "compiled/file_writer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/fail.h"

namespace plimsoll {
namespace {

// Zeros in writes of the size of a huge page, for each of which the kernel's cache then takes one: whoever
// maps the file has one fault instead of 512. Returns an error number.
int fill_with_zeros(int file, size_t from, size_t size) {
  constexpr size_t kHugePage = 2 << 20;
  const std::vector<std::byte> zeros(std::min(size - from, kHugePage));
  for (size_t done = from; done < size;) {
    const ssize_t written = ::pwrite(file, zeros.data(), std::min(size - done, kHugePage - done % kHugePage),
                                     static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    done += static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace

FileWriter::FileWriter(const std::string& path, size_t size)
    : path_(path),
      partial_(fmt::format("{}.{}.partial", path, ::getpid())),
      file_(::open(partial_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (!file_) fail_with("made", errno);
  try {
    grow(size);
  } catch (...) {
    ::unlink(partial_.c_str());
    throw;
  }
}

void FileWriter::grow(size_t size) {
  // Otherwise a full disk would show as a signal when a page is written.
  int error = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(size));
  if (error == 0) error = fill_with_zeros(file_.get(), size_, size);
  if (error != 0) fail_with("written", error);
  void* mapping = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapping == MAP_FAILED) fail_with("mapped", errno);
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = static_cast<std::byte*>(mapping);
  size_ = size;
}

FileWriter::~FileWriter() {
  ::munmap(data_, size_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void FileWriter::fail_with(const char* action, int error) const {
  fail(ErrorCode::kIo, "file '{}': cannot be {}: {}", path_, action, std::strerror(error));
}

void FileWriter::put(size_t offset, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(data_ + offset, bytes.data(), bytes.size());
}

void FileWriter::commit() {
  if (::msync(data_, size_, MS_SYNC) != 0 || ::fsync(file_.get()) != 0) fail_with("written", errno);
  if (std::rename(partial_.c_str(), path_.c_str()) != 0) fail_with("renamed", errno);
  partial_.clear();
}

}  // namespace plimsoll
