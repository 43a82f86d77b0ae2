#include "onnx/message.h"

#include "plimsoll/model.h"

namespace plimsoll::onnx {
namespace {

const char* wire_name(protozero::pbf_wire_type type) {
  switch (type) {
    case protozero::pbf_wire_type::varint:
      return "a variable-length integer";
    case protozero::pbf_wire_type::fixed64:
      return "a 64-bit number";
    case protozero::pbf_wire_type::length_delimited:
      return "bytes with a length";
    case protozero::pbf_wire_type::fixed32:
      return "a 32-bit number";
    default:
      return "an unknown encoding";
  }
}

}  // namespace

void Message::reject_text(std::string text) {
  throw MalformedModel(printable(std::move(text)));
}

bool Message::next() {
  try {
    return reader_.next();
  } catch (const protozero::exception& e) {
    reject_text(fmt::format("{}: expected a protobuf field, found {}", kind_, e.what()));
  }
}

void Message::skip() {
  const uint32_t number = field();
  try {
    if (is_packed()) {
      bytes(fmt::format("field {}", number).c_str());
    } else {
      reader_.skip();
    }
  } catch (const protozero::exception& e) {
    reject_text(fmt::format("{}: expected a value of field {}, found {}", kind_, number, e.what()));
  }
}

void Message::expect(const char* name, protozero::pbf_wire_type type) const {
  if (reader_.wire_type() != type)
    reject(name, "expected {}, found {}", wire_name(type), wire_name(reader_.wire_type()));
}

int64_t Message::integer(const char* name) {
  expect(name, protozero::pbf_wire_type::varint);
  try {
    return reader_.get_int64();
  } catch (const protozero::exception& e) {
    reject(name, "expected an integer, found {}", e.what());
  }
}

float Message::real(const char* name) {
  expect(name, protozero::pbf_wire_type::fixed32);
  try {
    return reader_.get_float();
  } catch (const protozero::exception& e) {
    reject(name, "expected a number, found {}", e.what());
  }
}

std::string_view Message::bytes(const char* name) {
  expect(name, protozero::pbf_wire_type::length_delimited);
  try {
    // protozero keeps only 32 bits of a length.
    const char* at = reader_.data().data();
    const char* end = at + reader_.length();
    const uint64_t length = protozero::decode_varint(&at, end);
    const auto left = static_cast<uint64_t>(end - at);
    if (length > left) reject(name, "expected a length of at most {} bytes, found {}", left, length);
    const protozero::data_view view = reader_.get_view();
    return {view.data(), view.size()};
  } catch (const protozero::exception& e) {
    reject(name, "expected a length, found {}", e.what());
  }
}

std::string_view Message::fixed(const char* name, size_t width) {
  if (is_packed()) {
    const std::string_view packed = bytes(name);
    if (packed.size() % width != 0)
      reject(name, "expected numbers of {} bytes, found {} bytes in all", width, packed.size());
    return packed;
  }
  expect(name, width == 4 ? protozero::pbf_wire_type::fixed32 : protozero::pbf_wire_type::fixed64);
  const char* at = reader_.data().data();
  if (reader_.length() < width) reject(name, "expected {} bytes, found {}", width, reader_.length());
  reader_.skip();
  return {at, width};
}

int64_t Message::packed_integer(const char* name, std::string_view packed, size_t& at) const {
  const char* begin = packed.data() + at;
  try {
    const uint64_t value = protozero::decode_varint(&begin, packed.data() + packed.size());
    at = static_cast<size_t>(begin - packed.data());
    return static_cast<int64_t>(value);
  } catch (const protozero::exception& e) {
    reject(name, "expected a packed integer, found {}", e.what());
  }
}

}  // namespace plimsoll::onnx
