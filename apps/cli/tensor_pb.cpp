#include "tensor_pb.h"

#include <fmt/format.h>
#include <plimsoll/error.h>

#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "elements.h"
#include "files.h"

namespace plimsoll::cli {
namespace {

using protozero::data_view;
using protozero::pbf_wire_type;

// Field numbers of TensorProto.
enum : uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDataLocation = 14,
};

class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  NamedValue parse(data_view contents) {
    protozero::pbf_reader message(contents);
    while (message.next()) read_field(message);
    return {name_, make_value()};
  }

 private:
  [[noreturn]] void reject(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path_, what));
  }

  // protozero takes the type of what it reads on trust.
  void require(const protozero::pbf_reader& message, pbf_wire_type type) const {
    if (message.wire_type() != type)
      reject(fmt::format("field {} has another type than a TensorProto's", message.tag()));
  }
  std::string bytes(protozero::pbf_reader& message) const {
    require(message, pbf_wire_type::length_delimited);
    return message.get_string();
  }
  int64_t integer(protozero::pbf_reader& message) const {
    require(message, pbf_wire_type::varint);
    return message.get_int64();
  }

  // Numbers of a typed field, packed or one by one.
  template <typename Integer>
  void integers(protozero::pbf_reader& message, Integer&& add) {
    if (message.wire_type() == pbf_wire_type::varint) return add(message.get_int64());
    require(message, pbf_wire_type::length_delimited);
    for (int64_t value : message.get_packed_int64()) add(value);
  }
  void fixed(protozero::pbf_reader& message, size_t width) {
    if (message.wire_type() == pbf_wire_type::length_delimited) {
      const protozero::data_view view = message.get_view();
      if (view.size() % width != 0) reject("a packed field ends in the middle of a number");
      typed_.append(view.data(), view.size());
    } else if (width == 4) {
      require(message, pbf_wire_type::fixed32);
      append(message.get_fixed32());
    } else {
      require(message, pbf_wire_type::fixed64);
      append(message.get_fixed64());
    }
  }
  template <typename T>
  void append(T value) {
    typed_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  void read_field(protozero::pbf_reader& message) {
    switch (message.tag()) {
      case kDims:
        return integers(message, [this](int64_t size) { shape_.push_back(size); });
      case kDataType:
        type_ = integer(message);
        return;
      case kSegment:
        throw Error(ErrorCode::kNotImplemented, fmt::format("{}: expected a tensor in one piece", path_));
      case kFloatData:
        return fixed(message, 4);
      case kDoubleData:
        return fixed(message, 8);
      case kInt32Data:
      case kInt64Data:
      case kUint64Data:
        return integers(message, [this](int64_t value) { numbers_.push_back(value); });
      case kStringData:
        strings_.push_back(bytes(message));
        return;
      case kName:
        name_ = bytes(message);
        return;
      case kRawData:
        require(message, pbf_wire_type::length_delimited);
        raw_ = message.get_view();
        return;
      case kDataLocation:
        if (integer(message) == 1)
          throw Error(ErrorCode::kNotImplemented, fmt::format("{}: external data is not read here", path_));
        return;
      default:
        message.skip();
    }
  }

  Value make_value() {
    const auto type = static_cast<ElementType>(type_);
    if (type_ < 1 || type_ > static_cast<int64_t>(ElementType::kInt2))
      reject(fmt::format("expected a TensorProto with an element type of ONNX, found type number {}", type_));
    const auto elements = count_elements(shape_);
    if (!elements)
      reject(fmt::format("shape {} has too many elements or a negative size", shape_text(shape_)));
    if (type == ElementType::kString) {
      if (strings_.size() != static_cast<size_t>(*elements))
        reject(fmt::format("shape {} needs {} strings, found {}", shape_text(shape_), *elements,
                           strings_.size()));
      return Value::CreateStrings(strings_, shape_);
    }
    const std::string packed = pack_numbers(type);
    const std::string_view data = raw_.size() > 0     ? std::string_view(raw_.data(), raw_.size())
                                  : !numbers_.empty() ? std::string_view(packed)
                                                      : std::string_view(typed_);
    const auto needed = static_cast<size_t>(count_bytes(type, shape_).value());
    if (data.size() != needed)
      reject(fmt::format("{}{} needs {} bytes, found {}", element_type_name(type), shape_text(shape_), needed,
                         data.size()));
    Value value = Value::CreateTensor(type, shape_);
    if (needed > 0) std::memcpy(value.GetMutableData(), data.data(), needed);
    return value;
  }

  std::string pack_numbers(ElementType type) const {
    const size_t width = static_cast<size_t>(std::max(8, std::min(64, element_bits(type)))) / 8;
    std::string packed;
    packed.reserve(numbers_.size() * width);
    for (int64_t number : numbers_) {
      if (type == ElementType::kBool) number = number != 0;
      packed.append(reinterpret_cast<const char*>(&number), width);  // little-endian
    }
    return packed;
  }

  const std::string& path_;
  std::string name_;
  int64_t type_ = 0;
  std::vector<int64_t> shape_;
  std::string typed_;
  std::vector<int64_t> numbers_;
  std::vector<std::string> strings_;
  protozero::data_view raw_;
};

// Field numbers of SequenceProto, OptionalProto and MapProto.
enum : uint32_t {
  kListName = 1,
  kElementType = 2,
  kTensors = 3,
  kSparseTensors = 4,
  kSequences = 5,
  kMaps = 6,
  kKeyType = 2,
  kKeys = 3,
  kStringKeys = 4,
  kValues = 5,
};

// Messages that hold others. SequenceProto and OptionalProto number their fields alike.
class ListParser {
 public:
  ListParser(const std::string& path, ElementType type) : path_(path), type_(type) {}

  NamedValue sequence(data_view contents) const {
    const Contents found = read(contents);
    const bool is_empty = found.values.empty();
    return {found.name, Value::CreateSequence(found.values, is_empty ? type_ : ElementType::kUndefined)};
  }
  NamedValue optional(data_view contents) const {
    const Contents found = read(contents);
    if (found.values.size() > 1) reject("an OptionalProto has more than one value");
    return {found.name, found.values.empty() ? Value::CreateNone(type_) : found.values[0]};
  }

 private:
  struct Contents {
    std::string name;
    std::vector<Value> values;
  };

  [[noreturn]] void reject(const std::string& what) const {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", path_, what));
  }
  data_view bytes(protozero::pbf_reader& message) const {
    if (message.wire_type() != pbf_wire_type::length_delimited)
      reject(fmt::format("field {} has another type than a SequenceProto's", message.tag()));
    return message.get_view();
  }

  Contents read(data_view contents) const {
    Contents found;
    protozero::pbf_reader message(contents);
    while (message.next()) {
      switch (message.tag()) {
        case kListName:
          found.name = std::string(bytes(message));
          break;
        case kTensors:
          found.values.push_back(Parser(path_).parse(bytes(message)).value);
          break;
        case kSequences:
          found.values.push_back(sequence(bytes(message)).value);
          break;
        case kMaps:
          found.values.push_back(map(bytes(message)));
          break;
        case kSparseTensors:
          throw Error(ErrorCode::kNotImplemented, fmt::format("{}: sparse tensors are not read here", path_));
        default:
          message.skip();
      }
    }
    return found;
  }

  Value map(data_view contents) const {
    std::vector<int64_t> keys;
    std::vector<std::string> texts;
    std::vector<Value> values;
    protozero::pbf_reader message(contents);
    while (message.next()) {
      if (message.tag() == kKeys && message.wire_type() == pbf_wire_type::varint) {
        keys.push_back(message.get_int64());
      } else if (message.tag() == kKeys && message.wire_type() == pbf_wire_type::length_delimited) {
        for (int64_t key : message.get_packed_int64()) keys.push_back(key);
      } else if (message.tag() == kStringKeys) {
        texts.push_back(std::string(bytes(message)));
      } else if (message.tag() == kValues) {
        values = read(bytes(message)).values;
      } else {
        message.skip();
      }
    }
    if (values.size() != 1) reject("expected a MapProto with one tensor of values");
    if (!texts.empty())
      return Value::CreateMap(Value::CreateStrings(texts, {static_cast<int64_t>(texts.size())}), values[0]);
    Value tensor = Value::CreateTensor(ElementType::kInt64, {static_cast<int64_t>(keys.size())});
    if (!keys.empty()) std::memcpy(tensor.GetMutableData(), keys.data(), keys.size() * sizeof(int64_t));
    return Value::CreateMap(tensor, values[0]);
  }

  const std::string& path_;
  ElementType type_;
};

}  // namespace

NamedValue read_value_pb(const std::string& path, ValueKind kind, ElementType type) {
  const std::string bytes = read_file(path);
  try {
    if (kind == ValueKind::kSequence) return ListParser(path, type).sequence(bytes);
    if (kind == ValueKind::kOptional) return ListParser(path, type).optional(bytes);
    return Parser(path).parse(bytes);
  } catch (const protozero::exception& error) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: expected a {}: {}", path,
                                                         kind == ValueKind::kSequence   ? "SequenceProto"
                                                         : kind == ValueKind::kOptional ? "OptionalProto"
                                                                                        : "TensorProto",
                                                         error.what()));
  }
}

}  // namespace plimsoll::cli
