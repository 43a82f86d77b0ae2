#include "onnx/rope.h"

namespace plimsoll::onnx {
namespace {
constexpr size_t kCopyBelow = 16 << 10;
}

std::string& Rope::tail() {
  if (pieces_.empty() || !pieces_.back().outside.empty()) pieces_.emplace_back();
  return pieces_.back().own;
}

void Rope::header(uint32_t field, uint64_t length) {
  protozero::add_varint_to_buffer(&tail(), field << 3 | 2);
  protozero::add_varint_to_buffer(&tail(), length);
}

uint64_t Rope::size_inside() const {
  uint64_t sum = 0;
  for (const Piece& piece : pieces_) sum += piece.own.size();
  return sum;
}

void Rope::append(std::span<const std::byte> data) {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  if (text.size() < kCopyBelow) {
    tail().append(text);
    return;
  }
  tail();
  pieces_.back().outside = text;
  size_outside_ += text.size();
}

void Rope::bytes(uint32_t field, std::span<const std::byte> data) {
  header(field, data.size());
  append(data);
}

void Rope::message(uint32_t field, const Rope& inner) {
  header(field, inner.size());
  append(inner);
}

void Rope::append(const Rope& other) {
  for (const Piece& piece : other.pieces_) {
    tail().append(piece.own);
    if (piece.outside.empty()) continue;
    tail();
    pieces_.back().outside = piece.outside;
    size_outside_ += piece.outside.size();
  }
}

}  // namespace plimsoll::onnx
