// A compiled model: mapped, checked, and used where it lies.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/mapped_file.h"
#include "compiled/format.h"
#include "compiled/reservation.h"
#include "prepare/compiled_parts.h"

namespace plimsoll {

// Opening verifies everything but the weights: the header, the graph, the placements, the images and the
// checksums of the weights' blocks. The weights are verified by verify_weights(), which a session calls
// before its first run. A file that somebody changes while it is mapped is beyond that.
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

  ~CompiledFile() override;

  void verify_weights(int threads) const override;
  void begin_verifying(int threads) const override;

 private:
  class Reader;
  std::span<const std::byte> part(const compiled::Range& range) const;
  void check_header() const;
  void check_ranges() const;
  void read_placements();
  void read_images();
  [[noreturn]] void refuse(const std::string& found) const;

  MappedFile file_;
  compiled::Header header_;
  std::unique_ptr<Reservation> reservation_;
  // Blocks of the payload, each verified by whoever takes it.
  struct Verification {
    std::atomic<int64_t> next{0}, altered{-1};
    std::atomic<int> at_work{0};  // helpers that have not found the end
    std::vector<std::thread> helpers;
    pid_t process = 0;  // that has them: none of its forks does
  };
  std::span<const std::byte> payload() const;
  bool is_intact(int64_t block) const;
  void verify_blocks(Verification& verification) const noexcept;

  mutable std::mutex mutex_;
  mutable std::unique_ptr<Verification> ahead_;  // what begin_verifying() began
  mutable std::atomic<bool> verified_{false};
};

}  // namespace plimsoll
