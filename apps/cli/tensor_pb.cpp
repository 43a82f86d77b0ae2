#include "tensor_pb.h"

#include <fmt/format.h>
#include <plimsoll/error.h>

#include <cstring>
#include <protozero/pbf_reader.hpp>

#include "elements.h"
#include "files.h"

namespace plimsoll::cli {
namespace {

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

  NamedValue parse(const std::string& contents) {
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
        // SequenceProto and OptionalProto have their elements here.
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

}  // namespace

NamedValue read_tensor_pb(const std::string& path) {
  const std::string bytes = read_file(path);
  try {
    return Parser(path).parse(bytes);
  } catch (const protozero::exception& error) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected a TensorProto: {}", path, error.what()));
  }
}

}  // namespace plimsoll::cli
