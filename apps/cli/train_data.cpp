#include "train_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <plimsoll/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "elements.h"

namespace plimsoll::cli {
namespace {

[[noreturn]] void cannot_read(const std::string& path, int error) {
  throw Error(ErrorCode::kIo, fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
}

uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::string file_name(const std::string& folder, std::string name) {
  for (char& c : name) {
    if (c == '/' || c == ':') c = '_';
  }
  return fmt::format("{}/{}.npy", folder, name);
}

bool is_integer(ElementType type) {
  switch (type) {
    case ElementType::kInt8:
    case ElementType::kInt16:
    case ElementType::kInt32:
    case ElementType::kInt64:
    case ElementType::kUint8:
    case ElementType::kUint16:
    case ElementType::kUint32:
      return true;
    default:
      return false;
  }
}

template <typename T>
void widen(const std::byte* from, size_t count, int64_t* to) {
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    to[i] = static_cast<int64_t>(value);
  }
}

void widen(ElementType type, const std::byte* from, size_t count, int64_t* to) {
  switch (type) {
    case ElementType::kInt8:
      return widen<int8_t>(from, count, to);
    case ElementType::kInt16:
      return widen<int16_t>(from, count, to);
    case ElementType::kInt32:
      return widen<int32_t>(from, count, to);
    case ElementType::kUint8:
      return widen<uint8_t>(from, count, to);
    case ElementType::kUint16:
      return widen<uint16_t>(from, count, to);
    default:
      return widen<uint32_t>(from, count, to);
  }
}

void widen_rows(const NpyFile& file, int64_t row, size_t count, int64_t* to) {
  std::byte narrow[4096];
  const auto width = static_cast<size_t>(*count_bytes(file.layout().type, {1}));
  for (size_t done = 0; done < count;) {
    const size_t part = std::min(count - done, sizeof narrow / width);
    file.read(row, done * width, {narrow, part * width});
    widen(file.layout().type, narrow, part, to + done);
    done += part;
  }
}

}  // namespace

NpyFile::NpyFile(const std::string& path) : path_(path) {
  constexpr size_t kHeader = 1 << 17;
  const std::optional<size_t> size = regular_file_size(path);
  std::string start(std::min(kHeader, size.value_or(0)), '\0');
  start.resize(read_part(path, 0, start));
  if (!size) cannot_read(path, EINVAL);
  layout_ = read_npy_layout(path, start, *size);
  row_bytes_ = rows() > 0 ? (*size - layout_.data_offset) / static_cast<size_t>(rows()) : 0;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) cannot_read(path, errno);
}

NpyFile::NpyFile(NpyFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      row_bytes_(other.row_bytes_),
      layout_(std::move(other.layout_)) {}

NpyFile::~NpyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void NpyFile::read(int64_t row, size_t offset, std::span<std::byte> to) const {
  size_t from = place(row) + offset;
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(from));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path_, errno);
    if (got == 0)
      throw Error(ErrorCode::kIo,
                  fmt::format("{}: expected {} examples, found a file that ends in example {}: it was cut "
                              "after training began",
                              path_, rows(), row));
    from += static_cast<size_t>(got);
    to = to.subspan(static_cast<size_t>(got));
  }
}

void NpyFile::expect_row(int64_t index) const {
  ::posix_fadvise(descriptor_, static_cast<off_t>(place(index)), static_cast<off_t>(row_bytes_),
                  POSIX_FADV_WILLNEED);
}

std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  uint64_t state = mixed(seed ^ mixed(static_cast<uint64_t>(epoch)));
  for (size_t i = order.size(); i > 1; --i) {
    state = mixed(state);
    std::swap(order[i - 1], order[static_cast<size_t>((static_cast<uint64_t>(state >> 32) * i) >> 32)]);
  }
  return order;
}

TrainData::TrainData(const std::string& folder, const std::vector<ValueInfo>& inputs) : inputs_(inputs) {
  files_.reserve(inputs.size());
  for (const ValueInfo& input : inputs) {
    files_.emplace_back(file_name(folder, input.name));
    const NpyFile& file = files_.back();
    const auto& [type, shape, offset] = file.layout();
    const bool same_type = type == input.type || (input.type == ElementType::kInt64 && is_integer(type));
    bool same_shape = !input.ranked || shape.size() == input.dims.size();
    for (size_t i = 1; same_shape && i < std::min(shape.size(), input.dims.size()); ++i)
      same_shape = input.dims[i] < 0 || input.dims[i] == shape[i];
    if (!same_type || !same_shape)
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected examples for input '{}', {}, found {}{}", file.path(), input.name,
                              input.type_text, element_type_name(type), shape_text(shape)));
    if (file.rows() != files_[0].rows())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected {} examples, as {} has, found {}", file.path(), files_[0].rows(),
                              files_[0].path(), file.rows()));
  }
  if (rows() == 0)
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected examples, found none", files_[0].path()));
}

Shapes TrainData::shapes(int64_t batch) const {
  Shapes shapes;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    shapes[inputs_[i].name] = files_[i].layout().shape;
    shapes[inputs_[i].name][0] = batch;
  }
  return shapes;
}

std::vector<Value> TrainData::make_batch(int64_t batch) const {
  std::vector<Value> values;
  const Shapes all = shapes(batch);
  for (const ValueInfo& input : inputs_)
    values.push_back(Value::CreateTensor(input.type, all.at(input.name)));
  return values;
}

void TrainData::fill(std::vector<Value>& batch, const int64_t* rows) const {
  for (size_t i = 0; i < files_.size(); ++i) {
    const NpyFile& file = files_[i];
    const auto count = static_cast<size_t>(batch[i].GetShape()[0]);
    const size_t bytes = batch[i].GetByteCount() / count;
    auto* to = static_cast<std::byte*>(batch[i].GetMutableData());
    for (size_t r = 0, run = 0; r < count; r += run, to += run * bytes) {
      for (run = 1; r + run < count && rows[r + run] == rows[r] + static_cast<int64_t>(run);) ++run;
      if (file.layout().type == inputs_[i].type) {
        file.read(rows[r], 0, {to, run * bytes});
      } else {
        widen_rows(file, rows[r], run * bytes / sizeof(int64_t), reinterpret_cast<int64_t*>(to));
      }
    }
  }
}

void TrainData::expect(const int64_t* rows, int64_t count) const {
  for (const NpyFile& file : files_) {
    for (int64_t r = 0; r < count; ++r) file.expect_row(rows[r]);
  }
}

}  // namespace plimsoll::cli
