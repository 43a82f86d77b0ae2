#include "compiled/compiled_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/checked.h"
#include "base/descriptor.h"
#include "base/fail.h"
#include "base/stream_sum.h"
#include "compiled/build_id.h"
#include "kernels/parallel.h"

namespace plimsoll {
namespace {

using compiled::Header;
using compiled::kBlockBytes;
using compiled::kHeaderBytes;
using compiled::kPage;
using compiled::Range;

template <size_t N>
std::string text_of(const std::array<char, N>& field) {
  return {field.begin(), std::find(field.begin(), field.end(), '\0')};
}

}  // namespace

bool CompiledFile::is_one(const std::string& path) {
  std::array<char, compiled::kMagic.size()> start{};
  // Without waiting, as a pipe would make us, and without taking anything out of it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file && ::pread(file.get(), start.data(), start.size(), 0) == std::ssize(start) &&
         start == compiled::kMagic;
}

bool CompiledFile::is_one(std::span<const std::byte> bytes) {
  return bytes.size() >= compiled::kMagic.size() &&
         std::memcmp(bytes.data(), compiled::kMagic.data(), compiled::kMagic.size()) == 0;
}

CompiledFile::CompiledFile(const std::string& name, MappedFile::Access access) : file_(name, access) {
  path = name;
  // All of it will be read: in huge pages if it comes from the disk.
  ::madvise(const_cast<std::byte*>(file_.bytes().data()), file_.bytes().size(), MADV_HUGEPAGE);
  if (file_.bytes().size() < kHeaderBytes) refuse("a file that ends in its header");
  std::memcpy(&header_, file_.bytes().data(), sizeof header_);
  check_header();
  check_ranges();
  const uint64_t tables_end = header_.weights.offset;
  if (stream_sum(file_.bytes().subspan(kHeaderBytes, tables_end - kHeaderBytes)) != header_.tables_sum)
    refuse("altered tables");
  graph = part(header_.graph);
  weights = part(header_.weights);
  packed = part(header_.packed);
  layout = header_.layout;
  if (header_.largest_absent > 0) {
    reservation_ = std::make_unique<Reservation>(static_cast<int64_t>(header_.largest_absent));
    absent = reservation_->addresses();
  }
  read_placements();
}

void CompiledFile::refuse(const std::string& found) const {
  fail(ErrorCode::kInvalidModel, "compiled file '{}': expected it as it was written, found {}", path, found);
}

std::span<const std::byte> CompiledFile::part(const Range& range) const {
  return file_.bytes().subspan(range.offset, range.size);
}

void CompiledFile::check_header() const {
  if (header_.magic != compiled::kMagic) refuse("another beginning");
  if (header_.format != compiled::kFormat)
    fail(ErrorCode::kInvalidModel, "compiled file '{}': expected format {}, found {}; compile it again", path,
         compiled::kFormat, header_.format);
  std::array<std::byte, kHeaderBytes> page;
  std::memcpy(page.data(), file_.bytes().data(), page.size());
  Header without_sum = header_;
  without_sum.header_sum = 0;
  std::memcpy(page.data(), &without_sum, sizeof without_sum);
  if (stream_sum(page) != header_.header_sum) refuse("an altered header");
  if (header_.file_bytes != file_.bytes().size())
    refuse(fmt::format("{} bytes instead of {}", file_.bytes().size(), header_.file_bytes));
}

// The parts lie in their order, inside the file. A checksum that is right says nothing of the one who wrote
// it.
void CompiledFile::check_ranges() const {
  uint64_t end = kHeaderBytes;
  for (const Range& range : {header_.graph, header_.placements, header_.blocks, header_.original,
                             header_.weights, header_.packed}) {
    if (range.offset < end || range.size > header_.file_bytes ||
        range.offset > header_.file_bytes - range.size)
      refuse("parts outside of the file");
    end = range.end();
  }
  const uint64_t payload = header_.file_bytes - header_.weights.offset;
  const uint64_t blocks = (payload + kBlockBytes - 1) / kBlockBytes;
  if (header_.weights.offset % kPage != 0 || header_.packed.offset % kPage != 0 ||
      header_.blocks.size != blocks * sizeof(uint64_t) || header_.largest_absent > (uint64_t{1} << 46))
    refuse("parts of a wrong size");
}

// Per entry: the problem, the number of offsets, the offsets.
void CompiledFile::read_placements() {
  std::span<const std::byte> rest = part(header_.placements);
  const auto next = [&] {
    int64_t value = 0;
    if (rest.size() < sizeof value) refuse("placements that end early");
    std::memcpy(&value, rest.data(), sizeof value);
    rest = rest.subspan(sizeof value);
    return value;
  };
  while (!rest.empty()) {
    plan::SolvedPlacements::Entry entry;
    entry.problem = static_cast<uint64_t>(next());
    const int64_t count = next();
    if (count < 0 || static_cast<uint64_t>(count) > rest.size() / sizeof(int64_t))
      refuse("placements that end early");
    for (int64_t i = 0; i < count; ++i) entry.offsets.push_back(next());
    placements.add(std::move(entry));
  }
}

std::string CompiledFile::mismatch(const std::string& instruction_set) const {
  if (const std::string found = text_of(header_.build); found != build_id().substr(0, header_.build.size()))
    return fmt::format("packed by another build ({})", found);
  if (const std::string found = text_of(header_.instruction_set); found != instruction_set)
    return fmt::format("packed for {}, not {}", found, instruction_set);
  return {};
}

std::string CompiledFile::original() const {
  const std::span<const std::byte> bytes = part(header_.original);
  std::string name(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    const MappedFile model(name);
    if (model.bytes().size() == header_.original_bytes && stream_sum(model.bytes()) == header_.original_sum)
      return name;
  } catch (const Error&) {
    fail(ErrorCode::kInvalidModel, "compiled file '{}': expected its original '{}' to pack again, found none",
         path, name);
  }
  fail(ErrorCode::kInvalidModel, "compiled file '{}': expected its original '{}' as it was, found another",
       path, name);
}

void CompiledFile::verify_weights(int threads) const {
  if (verified_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (verified_.load(std::memory_order_relaxed)) return;
  const std::span<const std::byte> payload = file_.bytes().subspan(header_.weights.offset);
  const std::span<const std::byte> sums = part(header_.blocks);
  const auto blocks = static_cast<int64_t>(sums.size() / sizeof(uint64_t));
  std::atomic<int64_t> altered{-1};
  kernels::parallel_for(threads, blocks, [&](int64_t block) {
    const size_t begin = static_cast<size_t>(block) * kBlockBytes;
    uint64_t expected;
    std::memcpy(&expected, sums.data() + static_cast<size_t>(block) * sizeof expected, sizeof expected);
    const size_t size = std::min<size_t>(kBlockBytes, payload.size() - begin);
    if (stream_sum(payload.subspan(begin, size)) != expected) altered.store(block);
  });
  if (const int64_t block = altered.load(); block >= 0)
    refuse(fmt::format("altered weights in its bytes from {} on",
                       header_.weights.offset + static_cast<uint64_t>(block) * kBlockBytes));
  verified_.store(true, std::memory_order_release);
}

}  // namespace plimsoll
