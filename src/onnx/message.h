// One protobuf message under the cursor, with the checks that protozero leaves to its caller.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <protozero/pbf_reader.hpp>

#include "base/fail.h"

namespace plimsoll::onnx {

// Reads the fields of a message in the order of the file, without copying. Every wrong wire type,
// lying length and unfinished number is a kInvalidModel that names message and field.
class Message {
 public:
  Message(const char* kind, std::string_view bytes)
      : kind_(kind), all_(bytes), reader_(bytes.data(), bytes.size()) {}

  // Goes to the next field; false at the end. Each field must be read or skipped before the next.
  bool next();
  uint32_t field() const { return reader_.tag(); }
  void skip();

  int64_t integer(const char* name);
  float real(const char* name);
  std::string_view bytes(const char* name);
  Message message(const char* name, const char* kind) { return {kind, bytes(name)}; }

  // Whether the current field is a run of numbers packed together.
  bool is_packed() const { return reader_.wire_type() == protozero::pbf_wire_type::length_delimited; }
  // Calls f for every number of a repeated field, packed or not.
  template <typename F>
  void each_integer(const char* name, F&& f) {
    if (!is_packed()) return f(integer(name));
    const std::string_view packed = bytes(name);
    for (size_t at = 0; at < packed.size();) f(packed_integer(name, packed, at));
  }
  template <typename T, typename F>
  void each_fixed(const char* name, F&& f) {
    const std::string_view values = fixed(name, sizeof(T));
    for (size_t at = 0; at < values.size(); at += sizeof(T)) {
      T value;
      std::memcpy(&value, values.data() + at, sizeof(T));
      f(value);
    }
  }
  // The bytes of numbers of `width` bytes each, packed or a single one.
  std::string_view fixed(const char* name, size_t width);

  // Whether `bytes` are inside this message, rather than decoded into an arena.
  bool contains(std::span<const std::byte> bytes) const {
    const auto begin = reinterpret_cast<uintptr_t>(all_.data());
    const auto at = reinterpret_cast<uintptr_t>(bytes.data());
    return at >= begin && at < begin + all_.size();
  }
  template <typename... Args>
  [[noreturn]] void reject(const char* name, fmt::format_string<Args...> format, Args&&... args) const {
    reject_text(fmt::format("{}.{}: {}", kind_, name, fmt::format(format, std::forward<Args>(args)...)));
  }

 private:
  [[noreturn]] static void reject_text(std::string text);  // the bytes are malformed
  int64_t packed_integer(const char* name, std::string_view packed, size_t& at) const;
  void expect(const char* name, protozero::pbf_wire_type type) const;

  const char* kind_;
  std::string_view all_;
  protozero::pbf_reader reader_;
};

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace plimsoll::onnx
