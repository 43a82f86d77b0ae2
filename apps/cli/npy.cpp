#include "npy.h"

#include <fmt/core.h>
#include <plimsoll/error.h>

#include <cstring>
#include <optional>
#include <span>

#include "elements.h"
#include "utf32.h"

namespace plimsoll::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct NumpyType {
  const char* descr;
  ElementType type;
};

constexpr NumpyType kTypes[] = {
    {"<f4", ElementType::kFloat},     {"<f8", ElementType::kDouble},     {"<f2", ElementType::kFloat16},
    {"|b1", ElementType::kBool},      {"|i1", ElementType::kInt8},       {"|u1", ElementType::kUint8},
    {"<i2", ElementType::kInt16},     {"<u2", ElementType::kUint16},     {"<i4", ElementType::kInt32},
    {"<u4", ElementType::kUint32},    {"<i8", ElementType::kInt64},      {"<u8", ElementType::kUint64},
    {"<c8", ElementType::kComplex64}, {"<c16", ElementType::kComplex128}};

// The header is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (1, 3), }
class HeaderReader {
 public:
  HeaderReader(const std::string& path, std::string_view text) : path_(path), text_(text) {}

  [[noreturn]] void reject(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a .npy file, found {}", path_, what));
  }
  // What follows "'key':".
  std::string_view after(std::string_view key) const {
    const size_t at = text_.find(fmt::format("'{}'", key));
    if (at == std::string_view::npos) reject(fmt::format("no '{}' in its header", key));
    std::string_view rest = text_.substr(at + key.size() + 2);
    rest.remove_prefix(std::min(rest.find_first_not_of(": "), rest.size()));
    return rest;
  }
  std::string_view descr() const {
    const std::string_view rest = after("descr");
    const size_t end = rest.empty() || rest[0] != '\'' ? std::string_view::npos : rest.find('\'', 1);
    if (end == std::string_view::npos) reject("a type that is no single number (a structured array?)");
    return rest.substr(1, end - 1);
  }
  std::vector<int64_t> shape() const {
    std::string_view rest = after("shape");
    const size_t end = rest.find(')');
    if (rest.empty() || rest[0] != '(' || end == std::string_view::npos) reject("a header without a shape");
    rest = rest.substr(1, end - 1);
    std::vector<int64_t> shape;
    while (!rest.empty()) {
      if (rest[0] == ',' || rest[0] == ' ') {
        rest.remove_prefix(1);
        continue;
      }
      int64_t size = 0;
      size_t digits = 0;
      for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits) {
        if (__builtin_mul_overflow(size, 10, &size) ||
            __builtin_add_overflow(size, rest[digits] - '0', &size))
          reject("a size above 64 bits");
      }
      if (digits == 0) reject(fmt::format("a shape of '{}'", rest));
      rest.remove_prefix(digits);
      shape.push_back(size);
    }
    return shape;
  }

 private:
  const std::string& path_;
  std::string_view text_;
};

struct Parts {
  std::string_view header, data;
};

Parts split(const std::string& path, std::string_view bytes) {
  const HeaderReader whole(path, bytes);
  if (!bytes.starts_with(kMagic)) whole.reject("other bytes");
  if (bytes.size() < 10) whole.reject("the end of the file in its header");
  const int version = bytes[6];
  if (version < 1 || version > 3) whole.reject(fmt::format("version {}", version));
  const size_t start = version == 1 ? 10 : 12;
  if (bytes.size() < start) whole.reject("the end of the file in its header");
  uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, version == 1 ? 2 : 4);
  if (length > bytes.size() - start) whole.reject("the end of the file in its header");
  return {bytes.substr(start, length), bytes.substr(start + length)};
}

// '<U5' or '|S5': fixed-width strings, padded with zeros.
Value read_strings(const HeaderReader& header, char kind, size_t width, std::vector<int64_t> shape,
                   std::string_view data) {
  const auto count = count_elements(shape);
  const size_t step = kind == 'U' ? 4 * width : width;
  // Strings of no width would be as many as the header likes, out of no data at all.
  size_t needed = 0;
  if (!count || __builtin_mul_overflow(static_cast<size_t>(*count), step, &needed) || needed != data.size() ||
      (step == 0 && *count > 0))
    header.reject(fmt::format("{} bytes for {} strings", data.size(), shape_text(shape)));
  std::vector<std::string> strings;
  for (int64_t i = 0; i < *count; ++i) {
    std::string_view field = data.substr(static_cast<size_t>(i) * step, step);
    std::string text = kind == 'U' ? utf8_from_utf32(field) : std::string(field);
    text.erase(std::min(text.find_last_not_of('\0') + 1, text.size()));
    strings.push_back(std::move(text));
  }
  return Value::CreateStrings(strings, std::move(shape));
}

struct Encoded {
  std::string descr, bytes;  // bytes: only if they are not the value's own
  bool own_bytes = false;
};

template <typename T>
std::string widen(const Value& value) {
  std::string bytes;
  for (size_t i = 0; i < value.GetElementCount(); ++i) {
    const auto element = static_cast<T>(real_element(value, i));
    bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
  }
  return bytes;
}

Encoded encode(const Value& value) {
  const ElementType type = value.GetElementType();
  for (const NumpyType& known : kTypes) {
    if (known.type == type) return {known.descr, {}, true};
  }
  if (type == ElementType::kInt4 || type == ElementType::kInt2) return {"|i1", widen<int8_t>(value)};
  if (type == ElementType::kUint4 || type == ElementType::kUint2) return {"|u1", widen<uint8_t>(value)};
  if (type != ElementType::kString) return {"<f4", widen<float>(value)};
  std::vector<std::string> fields;
  size_t width = 4;
  for (size_t i = 0; i < value.GetElementCount(); ++i) {
    fields.push_back(utf32_from_utf8(value.GetString(i)));
    width = std::max(width, fields.back().size());
  }
  std::string bytes;
  for (std::string& field : fields) {
    field.resize(width, '\0');
    bytes += field;
  }
  return {fmt::format("<U{}", width / 4), std::move(bytes)};
}

std::string make_header(const std::string& descr, const std::vector<int64_t>& shape) {
  std::string sizes;
  for (int64_t size : shape) sizes += fmt::format("{}, ", size);
  if (shape.size() > 1) sizes.erase(sizes.size() - 2);
  if (shape.size() == 1) sizes.pop_back();
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, sizes);
  header.append(63 - (10 + header.size()) % 64, ' ');  // the data starts at a multiple of 64
  header += '\n';
  std::string result(kMagic);
  result += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return result + header;
}

}  // namespace

NpyLayout read_npy_layout(const std::string& path, std::string_view start, size_t file_bytes) {
  const Parts parts = split(path, start);
  const HeaderReader header(path, parts.header);
  if (!header.after("fortran_order").starts_with("False")) header.reject("column-major (Fortran) order");
  NpyLayout layout;
  layout.shape = header.shape();
  layout.data_offset = static_cast<size_t>(parts.data.data() - start.data());
  for (const NumpyType& known : kTypes) {
    if (header.descr() == known.descr) layout.type = known.type;
  }
  if (layout.type == ElementType::kUndefined)
    header.reject(fmt::format("elements of type '{}'", header.descr()));
  const auto needed = count_bytes(layout.type, layout.shape);
  if (!needed || file_bytes - layout.data_offset != static_cast<size_t>(*needed))
    header.reject(fmt::format("{} bytes of data for {}{}", file_bytes - layout.data_offset,
                              element_type_name(layout.type), shape_text(layout.shape)));
  return layout;
}

namespace {

// Numbers of a regular file straight to where they are used. Nothing if it is another kind of file, or is
// wrong: reading all of it tells in which way.
std::optional<Value> read_numbers(const std::string& path) {
  constexpr size_t kStart = 4096;
  const std::optional<size_t> size = regular_file_size(path);
  if (!size) return std::nullopt;
  std::string start(std::min(kStart, *size), '\0');
  start.resize(read_part(path, 0, start));
  NpyLayout layout;
  try {
    layout = read_npy_layout(path, start, *size);
  } catch (const Error&) {
    return std::nullopt;
  }
  Value value = Value::CreateTensor(layout.type, layout.shape);
  const std::span data(static_cast<char*>(value.GetMutableData()), value.GetByteCount());
  if (read_part(path, layout.data_offset, data) != data.size()) return std::nullopt;
  return value;
}

}  // namespace

Value map_npy(const std::string& path, std::shared_ptr<FileMapping>& file) {
  constexpr size_t kWorthAMapping = 64 << 10, kAlignment = 64;
  file = FileMapping::of(path);
  if (file == nullptr || file->bytes().size() < kWorthAMapping) return read_npy(path);
  const std::span<char> bytes = file->bytes();
  NpyLayout layout;
  try {
    layout = read_npy_layout(path, {bytes.data(), bytes.size()}, bytes.size());
  } catch (const Error&) {
    return read_npy(path);
  }
  if (layout.data_offset % kAlignment != 0) return read_npy(path);
  const std::span<char> data = bytes.subspan(layout.data_offset);
  return Value::CreateTensor(layout.type, std::move(layout.shape), data.data(), data.size());
}

Value read_npy(const std::string& path) {
  if (std::optional<Value> numbers = read_numbers(path)) return std::move(*numbers);
  const std::string bytes = read_file(path);
  const Parts parts = split(path, bytes);
  const HeaderReader header(path, parts.header);
  if (!header.after("fortran_order").starts_with("False")) header.reject("column-major (Fortran) order");
  const std::string_view descr = header.descr();
  std::vector<int64_t> shape = header.shape();
  if (descr.size() > 2 && descr.size() < 10 && (descr.starts_with("<U") || descr.starts_with("|S")))
    return read_strings(header, descr[1], std::strtoull(descr.data() + 2, nullptr, 10), std::move(shape),
                        parts.data);
  for (const NumpyType& known : kTypes) {
    if (descr != known.descr) continue;
    const auto needed = count_bytes(known.type, shape);
    if (!needed || parts.data.size() != static_cast<size_t>(*needed))
      header.reject(fmt::format("{} bytes of data for {}{}", parts.data.size(), element_type_name(known.type),
                                shape_text(shape)));
    Value value = Value::CreateTensor(known.type, std::move(shape));
    if (*needed > 0) std::memcpy(value.GetMutableData(), parts.data.data(), parts.data.size());
    return value;
  }
  header.reject(fmt::format("elements of type '{}'", descr));
}

void write_npy(NewFiles& files, const std::string& path, const Value& value) {
  const Encoded encoded = encode(value);
  const std::string_view data =
      encoded.own_bytes ? std::string_view(static_cast<const char*>(value.GetData()), value.GetByteCount())
                        : std::string_view(encoded.bytes);
  files.add(path, {make_header(encoded.descr, value.GetShape()), data});
}

}  // namespace plimsoll::cli
