// Models with faults: protobuf aware changes, deterministic in (seed, index).
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

// A protobuf field, taken apart as far as its bytes look like messages.
struct MutableField {
  uint64_t key = 0;  // field number and wire type
  uint64_t number = 0;
  std::string bytes;
  std::vector<MutableField> fields;
  bool is_message = false;
  int64_t length_error = 0;  // added to the length that is written
};

class Mutator {
 public:
  explicit Mutator(std::string_view model);
  // The model with one to four changes.
  std::string mutant(uint64_t seed, uint64_t index) const;

 private:
  std::vector<MutableField> fields_;
};

}  // namespace plimsoll
