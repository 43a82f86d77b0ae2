#include "onnx/mutate.h"

#include <protozero/buffer_string.hpp>
#include <protozero/varint.hpp>

#include <algorithm>
#include <limits>

namespace plimsoll {
namespace {

constexpr int kDepth = 24;

// Takes `text` apart into `out`; false if it is no message.
bool parse(std::string_view text, std::vector<MutableField>& out, int depth) {
  const char* at = text.data();
  const char* end = at + text.size();
  try {
    while (at != end) {
      MutableField field;
      field.key = protozero::decode_varint(&at, end);
      const auto left = [&] { return static_cast<size_t>(end - at); };
      if (field.key < 8 || field.key > 8 * 100) return false;
      size_t size = 0;
      switch (field.key & 7) {
        case 0:
          field.number = protozero::decode_varint(&at, end);
          break;
        case 1:
          size = 8;
          break;
        case 2:
          size = protozero::decode_varint(&at, end);
          break;
        case 5:
          size = 4;
          break;
        default:
          return false;
      }
      if (size > left()) return false;
      field.bytes.assign(at, size);
      at += size;
      if ((field.key & 7) == 2 && depth > 0 && size > 0 && size < (1 << 20)) {
        field.is_message = parse(field.bytes, field.fields, depth - 1);
        if (!field.is_message) field.fields.clear();
      }
      out.push_back(std::move(field));
    }
  } catch (const protozero::exception&) {
    return false;
  }
  return true;
}

std::string serialize(const std::vector<MutableField>& fields) {
  std::string out;
  for (const MutableField& f : fields) {
    protozero::add_varint_to_buffer(&out, f.key);
    if ((f.key & 7) == 0) {
      protozero::add_varint_to_buffer(&out, f.number);
      continue;
    }
    const std::string bytes = f.is_message ? serialize(f.fields) : f.bytes;
    if ((f.key & 7) == 2)
      protozero::add_varint_to_buffer(&out, bytes.size() + static_cast<uint64_t>(f.length_error));
    out += bytes;
  }
  return out;
}

class Changes {
 public:
  Changes(std::vector<MutableField>& root, uint64_t seed, uint64_t index)
      : root_(root), random_(seed * 0x9e3779b97f4a7c15ull + index) {}

  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

  // A list of fields somewhere in the tree, deeper ones as likely as shallow ones.
  std::vector<MutableField>& list() {
    std::vector<MutableField>* at = &root_;
    while (true) {
      std::vector<std::vector<MutableField>*> inner;
      for (MutableField& f : *at) {
        if (f.is_message && !f.fields.empty()) inner.push_back(&f.fields);
      }
      if (inner.empty() || below(4) == 0) return *at;
      at = inner[below(inner.size())];
    }
  }

  uint64_t interesting_number() {
    constexpr uint64_t kNumbers[] = {0,
                                     1,
                                     2,
                                     3,
                                     7,
                                     8,
                                     16,
                                     17,
                                     24,
                                     25,
                                     64,
                                     127,
                                     128,
                                     255,
                                     1000,
                                     65536,
                                     1 << 20,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     1ull << 32,
                                     1ull << 40,
                                     1ull << 62,
                                     (1ull << 63) - 1,
                                     1ull << 63,
                                     static_cast<uint64_t>(-2),
                                     static_cast<uint64_t>(-1)};
    return below(5) == 0 ? random_() : kNumbers[below(std::size(kNumbers))];
  }

  void change_bytes(std::string& bytes) {
    if (bytes.empty()) {
      bytes.assign(below(9), static_cast<char>(below(256)));
      return;
    }
    const size_t at = below(bytes.size());
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.erase(at, 1 + below(16));
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(16)));
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes.clear();
    }
  }

  void change() {
    std::vector<MutableField>& fields = list();
    if (fields.empty()) return;
    const size_t at = below(fields.size());
    MutableField& field = fields[at];
    switch (below(8)) {
      case 0:
        fields.erase(fields.begin() + static_cast<ptrdiff_t>(at));
        break;
      case 1: {
        const MutableField copy = field;
        fields.insert(fields.begin() + static_cast<ptrdiff_t>(below(fields.size())), copy);
        break;
      }
      case 2:
        std::swap(field, fields[below(fields.size())]);
        break;
      case 3: {  // a field of another list
        const std::vector<MutableField>& other = list();
        if (!other.empty()) {
          const MutableField copy = other[below(other.size())];
          fields[at] = copy;
        }
        break;
      }
      case 4:
        field.length_error = static_cast<int64_t>(below(2) == 0 ? below(5) - 2 : interesting_number());
        break;
      case 5:
        field.key = below(2) == 0 ? field.key ^ (1 + below(7)) : 8 * (1 + below(26)) + (field.key & 7);
        break;
      default:
        change_value(field);
    }
  }

  void change_value(MutableField& field) {
    if ((field.key & 7) == 0) {
      field.number = below(2) == 0 ? interesting_number() : field.number + below(5) - 2;
    } else if (field.is_message && !field.fields.empty()) {
      change_value(field.fields[below(field.fields.size())]);
    } else if (below(3) == 0 && !names_.empty()) {
      field.bytes = names_[below(names_.size())];  // another name of the model: cycles, clashes
    } else {
      change_bytes(field.bytes);
    }
  }

  void collect_names(const std::vector<MutableField>& fields) {
    for (const MutableField& f : fields) {
      if (f.is_message) {
        collect_names(f.fields);
      } else if ((f.key & 7) == 2 && f.bytes.size() < 40) {
        names_.push_back(f.bytes);
      }
    }
  }

 private:
  std::vector<MutableField>& root_;
  std::mt19937_64 random_;
  std::vector<std::string> names_;
};

}  // namespace

Mutator::Mutator(std::string_view model) {
  parse(model, fields_, kDepth);
}

std::string Mutator::mutant(uint64_t seed, uint64_t index) const {
  std::vector<MutableField> fields = fields_;
  Changes changes(fields, seed, index);
  changes.collect_names(fields);
  for (size_t n = 1 + changes.below(4); n > 0; --n) changes.change();
  std::string bytes = serialize(fields);
  if (changes.below(8) == 0) changes.change_bytes(bytes);
  return bytes;
}

}  // namespace plimsoll
