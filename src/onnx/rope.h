// Bytes of a message in pieces: what we encode, and large tensors where they lie.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>

#include <protozero/pbf_writer.hpp>

namespace plimsoll::onnx {

// Grows at its end. Large data is not copied: it must live until the rope has been written out.
class Rope {
 public:
  Rope() = default;
  Rope(Rope&&) = default;
  Rope& operator=(Rope&&) = default;
  Rope(const Rope&) = delete;

  // Appends small fields; use it at once, before anything else is appended.
  protozero::pbf_writer fields() { return protozero::pbf_writer(tail()); }
  // A length-delimited field of bytes, or of a message.
  void bytes(uint32_t field, std::span<const std::byte> data);
  void message(uint32_t field, const Rope& inner);

  void append(std::span<const std::byte> data);
  void append(const Rope& other);
  void zeros(size_t count) { tail().append(count, '\0'); }
  uint64_t size() const { return size_outside_ + size_inside(); }
  // Calls f(std::string_view) for the pieces in order.
  template <typename F>
  void each(F&& f) const {
    for (const Piece& piece : pieces_) {
      if (!piece.own.empty()) f(std::string_view(piece.own));
      if (!piece.outside.empty()) f(piece.outside);
    }
  }

 private:
  struct Piece {
    std::string own;           // first these bytes
    std::string_view outside;  // then those
  };
  std::string& tail();
  void header(uint32_t field, uint64_t length);
  uint64_t size_inside() const;

  std::deque<Piece> pieces_;
  uint64_t size_outside_ = 0;
};

}  // namespace plimsoll::onnx
