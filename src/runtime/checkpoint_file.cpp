#include "runtime/checkpoint_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/fail.h"
#include "onnx/new_file.h"
#include "tensor/element_type.h"

namespace plimsoll {
namespace {

constexpr std::string_view kMagic = "PLIMSOLL";
constexpr uint32_t kVersion = 1;
constexpr size_t kAlignment = 64;
constexpr size_t kPreamble = 32;  // magic, version, bytes and checksum of the header

class HeaderWriter {
 public:
  template <typename T>
  void number(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view value) {
    number(static_cast<uint32_t>(value.size()));
    text_ += value;
  }
  void property(const Property& value) {
    number(static_cast<uint8_t>(value.index()));
    if (const auto* i = std::get_if<int64_t>(&value)) number(*i);
    if (const auto* f = std::get_if<float>(&value)) number(*f);
    if (const auto* s = std::get_if<std::string>(&value)) string(*s);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Everything that is read is distrusted.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::byte> bytes, const std::string& subject)
      : bytes_(bytes), subject_(subject) {}
  [[noreturn]] void reject(const std::string& what) const {
    fail(ErrorCode::kInvalidModel, "checkpoint '{}': {}", subject_, what);
  }
  std::span<const std::byte> take(size_t count) {
    if (count > bytes_.size()) reject("its header ends too early");
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string string() {
    const std::span<const std::byte> taken = take(number<uint32_t>());
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }
  Property property() {
    switch (number<uint8_t>()) {
      case 0:
        return number<int64_t>();
      case 1:
        return number<float>();
      case 2:
        return string();
      default:
        reject("a property of an unknown type");
    }
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& subject_;
};

std::string header_of(const CheckpointContents& contents, size_t header_bytes) {
  HeaderWriter writer;
  writer.number(static_cast<uint32_t>(contents.properties.size()));
  for (const auto& [name, value] : contents.properties) {
    writer.string(name);
    writer.property(value);
  }
  writer.number(static_cast<uint32_t>(contents.entries.size()));
  auto at = static_cast<uint64_t>(
      round_up(static_cast<int64_t>(kPreamble + header_bytes), static_cast<int64_t>(kAlignment)));
  for (const CheckpointEntry& entry : contents.entries) {
    writer.string(entry.name);
    writer.number(static_cast<uint8_t>(entry.role));
    writer.number(static_cast<uint8_t>(entry.type));
    writer.number(static_cast<uint32_t>(entry.dims.size()));
    for (int64_t d : entry.dims) writer.number(d);
    writer.number(at);
    writer.number(static_cast<uint64_t>(entry.bytes.size()));
    writer.number(header_bytes == 0 ? uint64_t{0} : checksum(entry.bytes));
    at = (at + entry.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  return writer.text();
}

std::string_view text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What was renamed survives the machine, too.
void sync_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

CheckpointEntry read_entry(HeaderReader& reader, std::span<const std::byte> file) {
  CheckpointEntry entry;
  entry.name = reader.string();
  const auto role = reader.number<uint8_t>(), type = reader.number<uint8_t>();
  if (role > static_cast<uint8_t>(StateRole::kStatistic)) reader.reject("a tensor of an unknown role");
  entry.role = static_cast<StateRole>(role);
  entry.type = static_cast<ElementType>(type);
  if (type > static_cast<uint8_t>(ElementType::kInt2) || element_bits(entry.type) % 8 != 0 ||
      element_bits(entry.type) == 0)
    reader.reject(fmt::format("tensor '{}': an unknown type", entry.name));
  auto expected = static_cast<int64_t>(element_bits(entry.type) / 8);
  const auto rank = reader.number<uint32_t>();
  if (rank > 64) reader.reject(fmt::format("tensor '{}': {} dimensions", entry.name, rank));
  for (uint32_t i = 0; i < rank; ++i) {
    entry.dims.push_back(reader.number<int64_t>());
    if (entry.dims.back() < 0 || __builtin_mul_overflow(expected, entry.dims.back(), &expected))
      reader.reject(fmt::format("tensor '{}': a dimension of {}", entry.name, entry.dims.back()));
  }
  const auto at = reader.number<uint64_t>(), bytes = reader.number<uint64_t>(),
             sum = reader.number<uint64_t>();
  if (bytes != static_cast<uint64_t>(expected) || at > file.size() || bytes > file.size() - at)
    reader.reject(fmt::format("tensor '{}': expected {} bytes at {}, the file has {}", entry.name, expected,
                              at, file.size()));
  entry.bytes = file.subspan(static_cast<size_t>(at), static_cast<size_t>(bytes));
  if (checksum(entry.bytes) != sum)
    reader.reject(fmt::format("tensor '{}' is damaged: its checksum differs", entry.name));
  return entry;
}

}  // namespace

void write_checkpoint(const std::string& path, const CheckpointContents& contents) {
  const std::string header = header_of(contents, header_of(contents, 0).size());
  HeaderWriter preamble;
  preamble.number(kVersion);
  preamble.number(uint32_t{0});
  preamble.number(static_cast<uint64_t>(header.size()));
  preamble.number(checksum(std::as_bytes(std::span<const char>(header))));
  onnx::remove_abandoned(path);  // first: a full disk may need the room
  onnx::NewFile file(path);
  file.write(kMagic);
  file.write(preamble.text());
  file.write(header);
  size_t at = kPreamble + header.size();
  for (const CheckpointEntry& entry : contents.entries) {
    static constexpr char kZeros[kAlignment] = {};
    file.write({kZeros, (kAlignment - at % kAlignment) % kAlignment});
    at = (at + kAlignment - 1) / kAlignment * kAlignment + entry.bytes.size();
    file.write(text(entry.bytes));
  }
  file.sync();
  file.commit();
  sync_folder(path);
}

CheckpointContents read_checkpoint(std::span<const std::byte> file, const std::string& subject) {
  HeaderReader preamble(file, subject);
  if (file.size() < kPreamble || text(file.first(kMagic.size())) != kMagic)
    preamble.reject("expected a checkpoint, found something else");
  preamble.take(kMagic.size());
  if (const auto version = preamble.number<uint32_t>(); version != kVersion)
    preamble.reject(fmt::format("expected version {}, found {}", kVersion, version));
  preamble.number<uint32_t>();
  const auto header_bytes = preamble.number<uint64_t>(), sum = preamble.number<uint64_t>();
  if (header_bytes > file.size() - kPreamble) preamble.reject("its header ends too early");
  const std::span<const std::byte> header = file.subspan(kPreamble, static_cast<size_t>(header_bytes));
  if (checksum(header) != sum) preamble.reject("its header is damaged: its checksum differs");
  HeaderReader reader(header, subject);
  CheckpointContents contents;
  for (auto count = reader.number<uint32_t>(); count > 0; --count) {
    std::string name = reader.string();
    contents.properties.insert_or_assign(std::move(name), reader.property());
  }
  for (auto count = reader.number<uint32_t>(); count > 0; --count)
    contents.entries.push_back(read_entry(reader, file));
  if (!reader.at_end()) reader.reject("its header goes on behind the last tensor");
  return contents;
}

}  // namespace plimsoll
