// Labelled programs: each family behaves in one known way, varied by its seed. What the right verdict is
// stands in families.csv.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace plimsoll::scenarios {

// One run of a family. Next() ends an iteration: it prints its line, waits, and says whether another one
// follows. With the last it prints the truth, what was kept per iteration where the family counted it: what
// follows is tidying up and no part of the recording.
class Run {
 public:
  Run(uint64_t seed, double seconds);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool Next();
  void Request();            // what every request does: a few blocks, written and freed
  void Wait(double factor);  // the pause of the iterations from now on, relative to the usual one
  double Progress() const;   // 0 to 1, of the time it runs
  int64_t iteration() const { return iteration_; }

  double Uniform(double low, double high);
  double LogUniform(double low, double high);
  size_t Size(double low, double high) { return static_cast<size_t>(LogUniform(low, high)); }
  bool Chance(double probability) { return Uniform(0, 1) < probability; }
  void Kept(size_t bytes) { kept_bytes_ += bytes; }
  // A folder of its own beneath `root`, removed with all that is in it at the end.
  std::string Folder(const std::string& root);

 private:
  void SayTruth();

  std::mt19937_64 random_;
  double begin_s_, seconds_, pause_s_, factor_ = 1, noise_bytes_;
  int64_t iteration_ = 0;
  size_t kept_bytes_ = 0;
  bool truth_said_ = false;
  std::string folder_;
};

// Memory that is written, so that it is resident.
class Block {
 public:
  explicit Block(size_t bytes);

 private:
  std::unique_ptr<char[]> data_;
};
using Blocks = std::vector<Block>;

struct Mapping {  // private and anonymous, written; never unmapped by itself
  char* data = nullptr;
  size_t bytes = 0;
};
Mapping map_pages(size_t bytes);
void unmap(const Mapping& mapping);
void touch(char* data, size_t bytes);
// What a system call returned; throws if it failed.
int checked(int64_t result, const char* what);

struct Family {
  const char* name;
  void (*run)(Run&);
};
const std::vector<Family>& heap_leaks();
const std::vector<Family>& kernel_leaks();
const std::vector<Family>& steady_heaps();
const std::vector<Family>& steady_kernels();
const std::vector<Family>& fresh_families();
const std::vector<Family>& blind_leaks();
const std::vector<Family>& blind_steady();
const std::vector<Family>& second_leaks();
const std::vector<Family>& second_steady();

}  // namespace plimsoll::scenarios
