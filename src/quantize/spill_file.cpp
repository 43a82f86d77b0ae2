#include "quantize/spill_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/checked.h"
#include "base/fail.h"
#include "memory/mapping.h"

namespace plimsoll {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Not every file system makes files without a name.
Descriptor open_nameless(const std::string& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  std::string name = folder + "/.plimsoll-quantize-XXXXXX";
  file.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) fail(ErrorCode::kIo, "folder '{}': no file can be made in it: {}", folder, std::strerror(errno));
  ::unlink(name.c_str());
  return file;
}

}  // namespace

SpillFile::SpillFile(const std::string& path) : folder_(folder_of(path)), file_(open_nameless(folder_)) {}

SpillFile::~SpillFile() {
  for (std::span<std::byte> part : parts_) ::munmap(part.data(), part.size());
}

std::span<std::byte> SpillFile::take(int64_t bytes) {
  const int64_t whole = round_up(std::max<int64_t>(bytes, 1), page_bytes());
  const int error = file_ ? ::posix_fallocate(file_.get(), size_, whole) : 0;
  if (error != 0)
    fail(ErrorCode::kIo, "folder '{}': {} more bytes cannot be written to a file in it: {}", folder_, whole,
         std::strerror(error));
  const int flags = file_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* data = ::mmap(nullptr, static_cast<size_t>(whole), PROT_READ | PROT_WRITE, flags,
                      file_ ? file_.get() : -1, file_ ? size_ : 0);
  if (data == MAP_FAILED)
    fail(ErrorCode::kOutOfMemory, "{} bytes of a file cannot be mapped: {}", whole, std::strerror(errno));
  size_ += whole;
  parts_.emplace_back(static_cast<std::byte*>(data), static_cast<size_t>(whole));
  return parts_.back().first(static_cast<size_t>(bytes));
}

void SpillFile::settle(std::span<const std::byte> part) const noexcept {
  const int64_t whole = round_up(static_cast<int64_t>(part.size()), page_bytes());
  ::madvise(const_cast<std::byte*>(part.data()), static_cast<size_t>(whole), MADV_DONTNEED);
}

}  // namespace plimsoll
