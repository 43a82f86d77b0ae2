#include "compiled/compiled_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <system_error>

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
  packed_threads = static_cast<int>(header_.threads);
  places = program_memory();
  places.push_back(file_.bytes());
  places.push_back(absent);
  read_images();
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
                             header_.weights, header_.packed, header_.images}) {
    if (range.offset < end || range.size > header_.file_bytes ||
        range.offset > header_.file_bytes - range.size)
      refuse("parts outside of the file");
    end = range.end();
  }
  const uint64_t payload = header_.packed.end() - header_.weights.offset;
  const uint64_t blocks = (payload + kBlockBytes - 1) / kBlockBytes;
  if (header_.weights.offset % kPage != 0 || header_.packed.offset % kPage != 0 ||
      header_.images.offset != header_.packed.end() || header_.images.end() != header_.file_bytes ||
      header_.blocks.size != blocks * sizeof(uint64_t) || header_.largest_absent > (uint64_t{1} << 46))
    refuse("parts of a wrong size");
}

// Numbers and what they count, from the front of a part.
class CompiledFile::Reader {
 public:
  Reader(const CompiledFile& file, const Range& range, const char* name)
      : file_(file), rest_(file.part(range)), name_(name) {}
  bool at_end() const { return rest_.empty(); }
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::vector<int64_t> numbers() {
    const int64_t count = number();
    if (count < 0 || static_cast<uint64_t>(count) > rest_.size() / sizeof(int64_t)) end_early();
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t& value : values) value = number();
    return values;
  }
  ArenaImage image() {
    const auto found = ArenaImage::in(bytes(static_cast<uint64_t>(number())));
    if (!found) file_.refuse(fmt::format("{} that are none", name_));
    return *found;
  }

 private:
  std::span<const std::byte> bytes(uint64_t size) {
    if (size > rest_.size()) end_early();
    const std::span<const std::byte> first = rest_.first(size);
    rest_ = rest_.subspan(size);
    return first;
  }
  [[noreturn]] void end_early() const { file_.refuse(fmt::format("{} that end early", name_)); }

  const CompiledFile& file_;
  std::span<const std::byte> rest_;
  const char* name_;
};

// Per entry: the problem, the number of offsets, the offsets.
void CompiledFile::read_placements() {
  Reader part(*this, header_.placements, "placements");
  while (!part.at_end()) {
    const auto problem = static_cast<uint64_t>(part.number());
    placements.add({problem, part.numbers()});
  }
}

// Those of another program are of no use, but they are as they were written.
void CompiledFile::read_images() {
  if (stream_sum(part(header_.images)) != header_.images_sum) refuse("altered images");
  Reader part(*this, header_.images, "images");
  const std::string program = text_of(header_.program);
  if (part.at_end() || program.empty() || program != program_id()) return;
  image = part.image();
  while (!part.at_end()) {
    CompiledParts::Plan& plan = plans.emplace_back();
    const int64_t inputs = part.number();
    for (int64_t i = 0; i < inputs; ++i) plan.shapes.push_back(part.numbers());
    plan.image = part.image();
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

std::span<const std::byte> CompiledFile::payload() const {
  return file_.bytes().subspan(header_.weights.offset, header_.packed.end() - header_.weights.offset);
}

bool CompiledFile::is_intact(int64_t block) const {
  const size_t begin = static_cast<size_t>(block) * kBlockBytes;
  uint64_t expected;
  std::memcpy(&expected, part(header_.blocks).data() + static_cast<size_t>(block) * sizeof expected,
              sizeof expected);
  return stream_sum(payload().subspan(begin, std::min<size_t>(kBlockBytes, payload().size() - begin))) ==
         expected;
}

void CompiledFile::verify_blocks(Verification& verification) const noexcept {
  const auto blocks = static_cast<int64_t>(header_.blocks.size / sizeof(uint64_t));
  for (int64_t block = 0; (block = verification.next.fetch_add(1, std::memory_order_acq_rel)) < blocks;) {
    if (!is_intact(block)) verification.altered.store(block, std::memory_order_relaxed);
  }
}

void CompiledFile::begin_verifying(int threads) const {
  constexpr uint64_t kBlocksWorthAThread = 8;
  const std::lock_guard lock(mutex_);
  if (verified_.load(std::memory_order_relaxed) || ahead_ != nullptr) return;
  const uint64_t most = header_.blocks.size / sizeof(uint64_t) / kBlocksWorthAThread;
  const auto wanted = std::min<size_t>(static_cast<size_t>(std::max(threads, 1)) - 1, most);
  if (wanted == 0) return;
  ahead_ = std::make_unique<Verification>();
  ahead_->process = ::getpid();
  ahead_->helpers.reserve(wanted);
  try {
    while (ahead_->helpers.size() < wanted)
      ahead_->helpers.emplace_back([this, verification = ahead_.get()] {
        verification->at_work.fetch_add(1);
        verify_blocks(*verification);
        if (verification->at_work.fetch_sub(1) == 1) verification->at_work.notify_all();
      });
  } catch (const std::system_error&) {  // no more processes: those that are there do it
  }
}

CompiledFile::~CompiledFile() {
  if (ahead_ == nullptr) return;
  if (ahead_->process != ::getpid()) {  // its threads stayed with the parent
    static_cast<void>(ahead_.release());
    return;
  }
  ahead_->next.store(std::numeric_limits<int64_t>::max() / 2);
  for (std::thread& helper : ahead_->helpers) helper.join();
}

void CompiledFile::verify_weights(int threads) const {
  if (verified_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  if (verified_.load(std::memory_order_relaxed)) return;
  Verification now;
  Verification& verification = ahead_ != nullptr && ahead_->process == ::getpid() ? *ahead_ : now;
  if (&verification == &now && threads > 1) {
    const auto blocks = static_cast<int64_t>(header_.blocks.size / sizeof(uint64_t));
    kernels::parallel_for(threads, blocks, [&](int64_t block) {
      if (!is_intact(block)) now.altered.store(block, std::memory_order_relaxed);
    });
  } else {
    verify_blocks(verification);
    // A helper that has not begun finds nothing to do; its end takes longer than its work, and is not waited
    // for.
    for (int left = 0; (left = verification.at_work.load()) > 0;) verification.at_work.wait(left);
  }
  if (const int64_t block = verification.altered.load(); block >= 0)
    refuse(fmt::format("altered weights in its bytes from {} on",
                       header_.weights.offset + static_cast<uint64_t>(block) * kBlockBytes));
  verified_.store(true, std::memory_order_release);
}

}  // namespace plimsoll
