#include "onnx/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/checked.h"
#include "base/mapped_file.h"
#include "onnx/fields.h"

namespace plimsoll::onnx {
namespace {

struct TypedField {
  uint32_t field;
  const char* name;
};

constexpr TypedField kTypedFields[] = {
    {tensor_field::kFloatData, "float_data"},   {tensor_field::kInt32Data, "int32_data"},
    {tensor_field::kStringData, "string_data"}, {tensor_field::kInt64Data, "int64_data"},
    {tensor_field::kDoubleData, "double_data"}, {tensor_field::kUint64Data, "uint64_data"}};

const char* typed_field_name(uint32_t field) {
  for (const TypedField& typed : kTypedFields) {
    if (typed.field == field) return typed.name;
  }
  return "raw_data";
}

// The typed field that carries elements of a type, as onnx.proto assigns them.
uint32_t typed_field_of(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
    case ElementType::kComplex64:
      return tensor_field::kFloatData;
    case ElementType::kDouble:
    case ElementType::kComplex128:
      return tensor_field::kDoubleData;
    case ElementType::kInt64:
      return tensor_field::kInt64Data;
    case ElementType::kUint32:
    case ElementType::kUint64:
      return tensor_field::kUint64Data;
    case ElementType::kString:
      return tensor_field::kStringData;
    default:
      return tensor_field::kInt32Data;
  }
}

// How many numbers of its typed field make up the tensor: complex elements take two, four-bit ones half.
int64_t typed_values(ElementType type, int64_t elements) {
  if (type == ElementType::kComplex64 || type == ElementType::kComplex128) return checked_mul(elements, 2);
  return element_bits(type) < 8 ? element_bytes(type, elements) : elements;
}

int64_t parse_number(std::string_view subject, const char* key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail(ErrorCode::kInvalidModel, "{}: expected a number of bytes as external '{}', found '{}'", subject,
         key, text);
  return value;
}

std::string subject_of(std::string_view name) {
  return fmt::format("tensor '{}'", name);
}

}  // namespace

// What a TensorProto says, before its data is decoded.
struct TensorReader::Parts {
  std::string_view name;
  int64_t type_code = 0;
  std::vector<int64_t> dims;
  std::optional<std::string_view> raw;
  uint32_t typed_field = 0;  // the one that has values
  int64_t values = 0;        // how many
  int chunks = 0;            // in how many pieces
  bool external = false;
  std::string_view location, offset, length;
  bool has_length = false;

  void add_values(uint32_t field, int64_t count) {
    if (count == 0) return;
    if (typed_field != 0 && typed_field != field)
      fail(ErrorCode::kInvalidModel, "{}: expected one kind of data, found {} and {}", subject_of(name),
           typed_field_name(typed_field), typed_field_name(field));
    typed_field = field;
    values += count;
    ++chunks;
  }
  void add_external(Message entry);
};

void TensorReader::Parts::add_external(Message entry) {
  std::string_view key, value;
  while (entry.next()) {
    switch (entry.field()) {
      case entry_field::kKey:
        key = entry.bytes("key");
        break;
      case entry_field::kValue:
        value = entry.bytes("value");
        break;
      default:
        entry.skip();
    }
  }
  if (key == "location") location = value;
  if (key == "offset") offset = value;
  if (key == "length") length = value, has_length = true;
}

int64_t count_elements(std::string_view subject, ElementType type, std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank)
    fail(ErrorCode::kInvalidModel, "{}: expected at most {} dimensions, found {}", subject, kMaxRank,
         dims.size());
  int64_t product = 1;
  bool empty = false;
  for (int64_t dim : dims) {
    if (dim < 0)
      fail(ErrorCode::kInvalidModel, "{}: expected sizes of at least 0, found {}", subject, to_string(dims));
    empty = empty || dim == 0;
    if (dim != 0 && __builtin_mul_overflow(product, dim, &product))
      fail(ErrorCode::kInvalidModel, "{}: expected a number of elements in 64 bits, found shape {}", subject,
           to_string(dims));
  }
  if (product > INT64_MAX / 128)
    fail(ErrorCode::kInvalidModel, "{}: expected a number of bytes in 64 bits, found shape {} of {}", subject,
         to_string(dims), element_type_name(type));
  return empty ? 0 : product;
}

ElementType checked_element_type(std::string_view subject, int64_t code) {
  if (code < 1 || code > 1000 || !is_known_type(static_cast<int>(code)))
    fail(ErrorCode::kInvalidModel, "{}: expected an element type of ONNX, found type number {}", subject,
         code);
  return static_cast<ElementType>(code);
}

TensorReader::Parts TensorReader::scan(Message m) {
  Parts parts;
  const auto count = [](int64_t& n) { return [&n](auto) { ++n; }; };
  while (m.next()) {
    int64_t n = 0;
    switch (const uint32_t field = m.field()) {
      case tensor_field::kDims:
        m.each_integer("dims", [&](int64_t dim) { parts.dims.push_back(dim); });
        break;
      case tensor_field::kDataType:
        parts.type_code = m.integer("data_type");
        break;
      case tensor_field::kName:
        parts.name = m.bytes("name");
        break;
      case tensor_field::kRawData:
        parts.raw = m.bytes("raw_data");
        break;
      case tensor_field::kExternalData:
        parts.add_external(m.message("external_data", "StringStringEntryProto"));
        break;
      case tensor_field::kDataLocation:
        parts.external = m.integer("data_location") == 1;
        break;
      case tensor_field::kSegment:
        fail(ErrorCode::kNotImplemented, "tensor '{}': expected it in one piece, found a segment",
             parts.name);
      case tensor_field::kFloatData:
        parts.add_values(field, static_cast<int64_t>(m.fixed("float_data", 4).size() / 4));
        break;
      case tensor_field::kDoubleData:
        parts.add_values(field, static_cast<int64_t>(m.fixed("double_data", 8).size() / 8));
        break;
      case tensor_field::kStringData:
        m.bytes("string_data");
        parts.add_values(field, 1);
        break;
      case tensor_field::kInt32Data:
      case tensor_field::kInt64Data:
      case tensor_field::kUint64Data:
        m.each_integer(typed_field_name(field), count(n));
        parts.add_values(field, n);
        break;
      default:
        m.skip();
    }
  }
  return parts;
}

TensorReader::Named TensorReader::read(Message m, bool initializer) {
  const Parts parts = scan(m);
  const std::string subject = subject_of(parts.name);
  TensorData data;
  data.type = checked_element_type(subject, parts.type_code);
  const int64_t elements = count_elements(subject, data.type, parts.dims);
  if (const TensorData* instead = initializer ? given(parts, data.type) : nullptr) {
    data.bytes = instead->bytes;
    data.dims = arena_.copy(parts.dims);
    return {parts.name, data};
  }
  const int64_t needed = element_bytes(data.type, elements);
  const bool mapped = source_ != nullptr && source_->is_mapped();
  const bool in_model = mapped && !source_->model().empty();  // otherwise the model is in the caller's memory
  const bool has_raw = parts.raw && (!parts.raw->empty() || parts.values == 0);
  if (has_raw && parts.values > 0) {  // raw_data counts, as ONNX Runtime has it
    const std::string problem = fmt::format("{}: expected one kind of data, found raw_data and {}", subject,
                                            typed_field_name(parts.typed_field));
    if (root_ == nullptr || parts.external || data.type == ElementType::kString)
      fail(ErrorCode::kInvalidModel, "{}", problem);
    root_->warn(problem);
  }
  if (parts.external) {
    data.bytes = external_bytes(parts, needed);
    data.in_file = mapped && options_.external_files.count(parts.location) == 0;
  } else if (has_raw && data.type != ElementType::kString) {
    if (static_cast<int64_t>(parts.raw->size()) != needed)
      fail(ErrorCode::kInvalidModel, "{}: expected {} bytes for {}{}, found {} bytes of raw_data", subject,
           needed, element_type_name(data.type), to_string(parts.dims), parts.raw->size());
    data.bytes = as_bytes(*parts.raw);
    data.in_file = in_model;
  } else {
    data.bytes = decode(m, parts, elements);
    data.in_file = in_model && m.contains(data.bytes);
  }
  if (data.type == ElementType::kBool) {
    const std::span<const std::byte> legal = legal_bools(data.bytes);
    if (legal.data() != data.bytes.data()) data.bytes = legal, data.in_file = false;
  }
  if (data.in_file) {
    const MappedFile* file = source_->file_of(data.bytes);
    if (file != nullptr && file->is_open()) data.file = file;
  }
  data.dims = arena_.copy(parts.dims);
  return {parts.name, data};
}

// What the caller has for an initializer: null if nothing.
const TensorData* TensorReader::given(const Parts& parts, ElementType type) const {
  const auto find = [&](const LoadOptions::Tensors& tensors) -> const TensorData* {
    const auto found = tensors.find(parts.name);
    return found == tensors.end() ? nullptr : &found->second;
  };
  const TensorData* instead = find(options_.initializers);
  if (instead == nullptr && parts.external) instead = find(options_.external_initializers);
  if (instead == nullptr) return nullptr;
  if (instead->type != type ||
      !std::equal(instead->dims.begin(), instead->dims.end(), parts.dims.begin(), parts.dims.end()))
    fail(ErrorCode::kInvalidArgument, "initializer '{}': expected {}{} as the model has it, found {}{}",
         parts.name, element_type_name(type), to_string(parts.dims), element_type_name(instead->type),
         to_string(instead->dims));
  return instead;
}

// Bytes above 1 are no bool in C++: such a tensor is copied.
std::span<const std::byte> TensorReader::legal_bools(std::span<const std::byte> bytes) {
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b <= std::byte{1}; })) return bytes;
  const std::span<std::byte> legal = arena_.copy(bytes);
  for (std::byte& b : legal) b = std::min(b, std::byte{1});
  return legal;
}

std::span<const std::byte> TensorReader::external_file(const std::string& subject,
                                                       std::string_view location) {
  if (const auto in_memory = options_.external_files.find(location);
      in_memory != options_.external_files.end())
    return in_memory->second;
  if (source_ == nullptr || !options_.external_data)
    fail(ErrorCode::kInvalidModel, "{}: expected its data in the model itself, found external data in '{}'",
         subject, location);
  try {
    return source_->external(location);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidModel && error.code() != ErrorCode::kIo) throw;
    fail(error.code(), "{}: {}", subject, error.what());
  }
}

std::span<const std::byte> TensorReader::external_bytes(const Parts& parts, int64_t needed) {
  const std::string subject = subject_of(parts.name);
  if (parts.type_code == static_cast<int>(ElementType::kString))
    fail(ErrorCode::kInvalidModel, "{}: expected strings in string_data, found external data", subject);
  if ((parts.raw && !parts.raw->empty()) || parts.values > 0)
    fail(ErrorCode::kInvalidModel, "{}: expected one kind of data, found external data and {}", subject,
         typed_field_name(parts.typed_field));
  const int64_t offset = parts.offset.empty() ? 0 : parse_number(subject, "offset", parts.offset);
  const int64_t length = parts.has_length ? parse_number(subject, "length", parts.length) : needed;
  if (length != needed)
    fail(ErrorCode::kInvalidModel, "{}: expected {} bytes for {}{}, found an external length of {}", subject,
         needed, element_type_name(static_cast<ElementType>(parts.type_code)), to_string(parts.dims), length);
  const std::span<const std::byte> file = external_file(subject, parts.location);
  const auto size = static_cast<int64_t>(file.size());
  if (offset > size || length > size - offset)
    fail(ErrorCode::kInvalidModel,
         "{}: expected {} bytes from byte {} of external data '{}', found a file of {} bytes", subject,
         length, offset, parts.location, size);
  return file.subspan(static_cast<size_t>(offset), static_cast<size_t>(length));
}

namespace {

// Writes numbers one after the other as elements of `width` bytes, cutting what is too wide.
struct Cursor {
  std::byte* at;
  size_t width;
  void put(int64_t value) {
    std::memcpy(at, &value, width);  // little-endian
    at += width;
  }
};

}  // namespace

std::span<const std::byte> TensorReader::decode(Message m, const Parts& parts, int64_t elements) {
  const auto type = static_cast<ElementType>(parts.type_code);
  const uint32_t field = typed_field_of(type);
  const int64_t expected = typed_values(type, elements);
  const char* name = typed_field_name(field);
  if (parts.typed_field != 0 && parts.typed_field != field)
    fail(ErrorCode::kInvalidModel, "{}: expected elements of {} in {}, found {}", subject_of(parts.name),
         element_type_name(type), name, typed_field_name(parts.typed_field));
  if (parts.values != expected)
    fail(ErrorCode::kInvalidModel, "{}: expected {} values for {}{}, found {} in {}", subject_of(parts.name),
         expected, element_type_name(type), to_string(parts.dims), parts.values, name);
  if (expected == 0) return {};
  const auto needed = static_cast<size_t>(element_bytes(type, elements));
  const bool is_fixed = field == tensor_field::kFloatData || field == tensor_field::kDoubleData;
  std::span<std::byte> out;
  if (!is_fixed || parts.chunks > 1) out = {static_cast<std::byte*>(arena_.allocate(needed, 16)), needed};
  Cursor cursor{out.data(), std::max<size_t>(static_cast<size_t>(element_bits(type)) / 8, 1)};
  while (m.next()) {
    if (m.field() != field) {
      m.skip();
    } else if (is_fixed) {
      const std::string_view chunk = m.fixed(name, field == tensor_field::kFloatData ? 4 : 8);
      if (chunk.empty()) continue;
      if (out.empty()) return as_bytes(chunk);  // as good as raw_data
      std::memcpy(cursor.at, chunk.data(), chunk.size());
      cursor.at += chunk.size();
    } else if (type == ElementType::kString) {
      const std::string_view text = m.bytes(name);
      const StringRef handle{text.data(), text.size()};
      std::memcpy(cursor.at, &handle, sizeof handle);
      cursor.at += sizeof handle;
    } else {
      m.each_integer(name,
                     [&](int64_t value) { cursor.put(type == ElementType::kBool ? value != 0 : value); });
    }
  }
  return out;
}

TensorReader::NamedSparse TensorReader::read_sparse(Message m) {
  NamedSparse result;
  std::vector<int64_t> dims;
  bool has_values = false, has_indices = false;
  while (m.next()) {
    switch (m.field()) {
      case sparse_field::kValues: {
        const Named values = read(m.message("values", "TensorProto"));
        result.name = values.name;
        result.data.values = values.data;
        has_values = true;
        break;
      }
      case sparse_field::kIndices:
        result.data.indices = read(m.message("indices", "TensorProto")).data;
        has_indices = true;
        break;
      case sparse_field::kDims:
        m.each_integer("dims", [&](int64_t dim) { dims.push_back(dim); });
        break;
      default:
        m.skip();
    }
  }
  const std::string subject = fmt::format("sparse tensor '{}'", result.name);
  if (!has_values || !has_indices)
    fail(ErrorCode::kInvalidModel, "{}: expected values and indices, found no {}", subject,
         has_values ? "indices" : "values");
  const ElementType type = result.data.values.type;
  const int64_t needed = element_bytes(type, count_elements(subject, type, dims));
  if (needed > dense_bytes_left_)
    fail(ErrorCode::kInvalidModel, "{}: expected at most {} dense bytes, found shape {} of {} bytes", subject,
         dense_bytes_left_, to_string(dims), needed);
  dense_bytes_left_ -= needed;
  result.data.dims = arena_.copy(dims);
  return result;
}

namespace {

// ONNX has int64 only; ONNX Runtime reads the narrower ones too.
bool is_index_type(ElementType type) {
  return type == ElementType::kInt8 || type == ElementType::kInt16 || type == ElementType::kInt32 ||
         type == ElementType::kInt64;
}

template <typename T>
int64_t unaligned(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

int64_t index_at(const std::byte* from, size_t width) {
  switch (width) {
    case 1:
      return unaligned<int8_t>(from);
    case 2:
      return unaligned<int16_t>(from);
    case 4:
      return unaligned<int32_t>(from);
    default:
      return unaligned<int64_t>(from);
  }
}

}  // namespace

TensorData TensorReader::densify(std::string_view name, const SparseData& sparse) {
  const std::string subject = fmt::format("sparse tensor '{}'", name);
  const ElementType type = sparse.values.type;
  const int bits = element_bits(type);
  const int64_t elements = count_elements(subject, type, sparse.dims);
  const int64_t needed = element_bytes(type, elements);
  const auto count = sparse.values.view().elements();
  const std::span<const int64_t> index_dims = sparse.indices.dims;
  const bool linear = index_dims.size() == 1;
  const bool matches = sparse.values.dims.size() == 1 && is_index_type(sparse.indices.type) &&
                       (linear || index_dims.size() == 2) && index_dims[0] == count &&
                       (linear || index_dims[1] == static_cast<int64_t>(sparse.dims.size()));
  if (!matches || bits < 8)
    fail(ErrorCode::kInvalidModel,
         "{}: expected values [n] and integer indices [n] or [n, rank], found {}{} and {}{}", subject,
         element_type_name(type), to_string(sparse.values.dims), element_type_name(sparse.indices.type),
         to_string(index_dims));
  const auto width = static_cast<size_t>(bits) / 8;
  const std::span<std::byte> dense = arena_.array<std::byte>(static_cast<size_t>(needed));
  const std::byte* index = sparse.indices.bytes.data();
  const auto index_width = static_cast<size_t>(element_bits(sparse.indices.type)) / 8;
  const size_t columns = linear ? 1 : sparse.dims.size();
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (size_t k = 0; k < columns; ++k, index += index_width) {
      const int64_t size = linear ? elements : sparse.dims[k];
      const int64_t coordinate = index_at(index, index_width);
      if (coordinate < 0 || coordinate >= size)
        fail(ErrorCode::kInvalidModel, "{}: expected indices below {}, found {}", subject, size, coordinate);
      at = at * size + coordinate;
    }
    if (elements == 0) fail(ErrorCode::kInvalidModel, "{}: expected no values, found {}", subject, count);
    std::memcpy(dense.data() + static_cast<size_t>(at) * width,
                sparse.values.bytes.data() + static_cast<size_t>(i) * width, width);
  }
  return {type, sparse.dims, dense, false};
}

}  // namespace plimsoll::onnx
