#include "runtime/ort_checkpoint.h"

#include <cstring>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"
#include "ops/utf8.h"
#include "tensor/element_type.h"

namespace plimsoll {
namespace {

// Every read is inside the file, or an Error.
class FlatFile {
 public:
  FlatFile(std::span<const std::byte> bytes, const std::string& subject) : bytes_(bytes), subject_(subject) {}

  template <typename T>
  T read(size_t at) const {
    T value;
    std::memcpy(&value, range(at, sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::span<const std::byte> range(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      fail(ErrorCode::kInvalidModel, "{}: expected {} bytes at {}, found the end of the file at {}", subject_,
           size, at, bytes_.size());
    return bytes_.subspan(at, size);
  }
  size_t follow(size_t at) const { return at + read<uint32_t>(at); }
  // The elements of a vector of `width` bytes each.
  std::span<const std::byte> vector(size_t at, size_t width) const {
    return range(at + sizeof(uint32_t), size_t{read<uint32_t>(at)} * width);
  }
  const std::string& subject() const { return subject_; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  const std::string& subject_;
};

class Table {
 public:
  Table(const FlatFile& file, size_t at) : file_(&file), at_(at) {
    const int64_t vtable = static_cast<int64_t>(at) - file.read<int32_t>(at);
    if (vtable < 0 || vtable > static_cast<int64_t>(file.size()))
      fail(ErrorCode::kInvalidModel, "{}: the table at {} points outside of the file", file.subject(), at);
    vtable_ = static_cast<size_t>(vtable);
    vtable_bytes_ = file.read<uint16_t>(vtable_);
    file.range(vtable_, vtable_bytes_);
  }

  template <typename T>
  T number(size_t field, T absent) const {
    const auto place = find(field);
    return place ? file_->read<T>(*place) : absent;
  }
  std::string text(size_t field) const {
    const auto place = find(field);
    if (!place) return {};
    const auto bytes = file_->vector(file_->follow(*place), 1);
    std::string result(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!is_utf8(result))
      fail(ErrorCode::kInvalidModel, "{}: the text at {} is not UTF-8", file_->subject(), *place);
    return result;
  }
  std::span<const std::byte> vector(size_t field, size_t width) const {
    const auto place = find(field);
    return place ? file_->vector(file_->follow(*place), width) : std::span<const std::byte>();
  }
  std::optional<Table> table(size_t field) const {
    const auto place = find(field);
    return place ? std::optional(Table(*file_, file_->follow(*place))) : std::nullopt;
  }
  // f(table) for each of a vector of tables.
  template <typename F>
  void each(size_t field, F f) const {
    const auto place = find(field);
    if (!place) return;
    const size_t first = file_->follow(*place);
    const size_t count = file_->vector(first, sizeof(uint32_t)).size() / sizeof(uint32_t);
    for (size_t i = 0; i < count; ++i) f(Table(*file_, file_->follow(first + (i + 1) * sizeof(uint32_t))));
  }

 private:
  std::optional<size_t> find(size_t field) const {
    const size_t entry = 4 + 2 * field;
    if (entry + 2 > vtable_bytes_) return std::nullopt;
    const uint16_t offset = file_->read<uint16_t>(vtable_ + entry);
    return offset == 0 ? std::nullopt : std::optional(at_ + offset);
  }

  const FlatFile* file_;
  size_t at_, vtable_ = 0, vtable_bytes_ = 0;
};

// Fields of the schema, by number.
enum TensorField : size_t { kTensorName, kTensorDoc, kTensorDims, kTensorType, kTensorData };
enum ModuleField : size_t { kTrainable, kFrozen, kIsNominal, kIsExternal };
enum GroupField : size_t { kGroupName, kGroupStep, kGroupRate, kGroupStates };
enum RootField : size_t { kVersion, kModule, kGroups, kBag };

CheckpointEntry entry_of(const Table& tensor, const std::string& name, StateRole role,
                         const std::string& subject) {
  CheckpointEntry entry{name, role, ElementType::kUndefined, {}, tensor.vector(kTensorData, 1)};
  const int32_t type = tensor.number<int32_t>(kTensorType, 0);
  if (type <= 0 || !is_known_type(type) || type == static_cast<int32_t>(ElementType::kString))
    fail(ErrorCode::kInvalidModel, "{}: '{}': expected a type of numbers, found {}", subject, name, type);
  entry.type = static_cast<ElementType>(type);
  const auto dims = tensor.vector(kTensorDims, sizeof(int64_t));
  int64_t bits = element_bits(entry.type);
  for (size_t i = 0; i < dims.size(); i += sizeof(int64_t)) {
    int64_t size = 0;
    std::memcpy(&size, dims.data() + i, sizeof size);
    if (size < 0 || __builtin_mul_overflow(bits, size, &bits))
      fail(ErrorCode::kInvalidModel, "{}: '{}': no memory holds a dimension of {}", subject, name, size);
    entry.dims.push_back(size);
  }
  if (static_cast<size_t>((bits + 7) / 8) != entry.bytes.size())
    fail(ErrorCode::kInvalidModel, "{}: '{}': expected {} bytes, found {}", subject, name, (bits + 7) / 8,
         entry.bytes.size());
  return entry;
}

void read_module(const Table& module, const std::string& subject, CheckpointContents& contents) {
  if (module.number<uint8_t>(kIsNominal, 0) != 0 || module.number<uint8_t>(kIsExternal, 0) != 0)
    fail(ErrorCode::kNotImplemented,
         "{}: expected a checkpoint with its tensors, found one that has none, or has them in another file",
         subject);
  for (const size_t field : {kTrainable, kFrozen}) {
    module.each(field, [&](const Table& tensor) {
      contents.entries.push_back(entry_of(tensor, tensor.text(kTensorName), StateRole::kParameter, subject));
    });
  }
}

void read_group(const Table& group, const std::string& subject, CheckpointContents& contents) {
  contents.properties["plimsoll.step"] = std::max<int64_t>(0, group.number<int64_t>(kGroupStep, 0));
  contents.properties["plimsoll.rate"] = group.number<float>(kGroupRate, 0);
  group.each(kGroupStates, [&](const Table& state) {
    const std::string parameter = state.text(0);
    size_t number = 0;
    state.each(1, [&](const Table& tensor) {
      contents.entries.push_back(entry_of(tensor, fmt::format("{}.momentum{}", parameter, number++),
                                          StateRole::kOptimizer, subject));
    });
  });
}

void read_properties(const Table& bag, CheckpointContents& contents) {
  bag.each(0, [&](const Table& p) { contents.properties[p.text(0)] = p.number<int64_t>(1, 0); });
  bag.each(1, [&](const Table& p) { contents.properties[p.text(0)] = p.number<float>(1, 0); });
  bag.each(2, [&](const Table& p) { contents.properties[p.text(0)] = p.text(1); });
}

}  // namespace

bool is_ort_checkpoint(std::span<const std::byte> file) {
  return file.size() >= 8 && std::memcmp(file.data() + 4, "ODTC", 4) == 0;
}

CheckpointContents read_ort_checkpoint(std::span<const std::byte> bytes, const std::string& subject) {
  const FlatFile file(bytes, subject);
  const Table root(file, file.follow(0));
  CheckpointContents contents;
  if (const auto module = root.table(kModule)) read_module(*module, subject, contents);
  size_t groups = 0;
  root.each(kGroups, [&](const Table& group) {
    if (++groups > 1)
      fail(ErrorCode::kNotImplemented, "{}: expected one group of parameters, found several", subject);
    read_group(group, subject, contents);
  });
  if (const auto bag = root.table(kBag)) read_properties(*bag, contents);
  return contents;
}

}  // namespace plimsoll
