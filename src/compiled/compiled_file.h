// A compiled model: mapped, checked, and used where it lies.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "base/mapped_file.h"
#include "compiled/format.h"
#include "compiled/reservation.h"
#include "prepare/compiled_parts.h"

namespace plimsoll {

// Opening verifies everything but the weights: the header, the graph, the placements and the checksums of the
// weights' blocks. The weights are verified by verify_weights(), which a session calls before its first run.
// A file that somebody changes while it is mapped is beyond that.
//
// Its checksums are against accidents. A file is as much to be trusted as the program that opens it.
class CompiledFile : public CompiledParts {
 public:
  // Whether the file begins as compiled ones do; false too if it cannot be read.
  static bool is_one(const std::string& path);
  static bool is_one(std::span<const std::byte> bytes);

  // Throws kIo, or kInvalidModel if it is cut short, altered, or of another format.
  explicit CompiledFile(const std::string& path, MappedFile::Access access = MappedFile::Access::kMap);

  // Why its weights are of no use to this build with these instructions: empty if they are.
  std::string mismatch(const std::string& instruction_set) const;
  // The path of the model that it was made from. Throws kInvalidModel if that is gone or has changed.
  std::string original() const;

  void verify_weights(int threads) const override;

 private:
  std::span<const std::byte> part(const compiled::Range& range) const;
  void check_header() const;
  void check_ranges() const;
  void read_placements();
  [[noreturn]] void refuse(const std::string& found) const;

  MappedFile file_;
  compiled::Header header_;
  std::unique_ptr<Reservation> reservation_;
  mutable std::mutex mutex_;
  mutable std::atomic<bool> verified_{false};
};

}  // namespace plimsoll
