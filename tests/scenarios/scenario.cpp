#include "scenario.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace plimsoll::scenarios {

namespace {

constexpr size_t kPage = 4096;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void say(const std::string& line) {
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(1);  // nobody listens any more
}

}  // namespace

Run::Run(uint64_t seed, double seconds) : random_(seed * 7919 + 17), begin_s_(now_s()), seconds_(seconds) {
  pause_s_ = Uniform(0.0015, 0.003);
  noise_bytes_ = LogUniform(2e3, 6e4);
}

Run::~Run() {
  SayTruth();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

bool Run::Next() {
  say("iteration " + std::to_string(++iteration_) + "\n");
  std::this_thread::sleep_for(std::chrono::duration<double>(pause_s_ * factor_ * Uniform(0.6, 1.4)));
  const bool goes_on = Progress() < 1;
  if (!goes_on) SayTruth();
  return goes_on;
}

void Run::SayTruth() {
  if (truth_said_) return;
  truth_said_ = true;
  const double per_iteration =
      iteration_ > 0 ? static_cast<double>(kept_bytes_) / static_cast<double>(iteration_) : 0;
  say("truth " + std::to_string(per_iteration) + "\n");
}

void Run::Request() {
  Blocks blocks;
  const int count = static_cast<int>(Uniform(1, 8));
  for (int i = 0; i < count; ++i) blocks.emplace_back(Size(64, noise_bytes_));
}

void Run::Wait(double factor) {
  factor_ = factor;
}

double Run::Progress() const {
  return (now_s() - begin_s_) / seconds_;
}

double Run::Uniform(double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random_);
}

double Run::LogUniform(double low, double high) {
  return std::exp(Uniform(std::log(low), std::log(high)));
}

std::string Run::Folder(const std::string& root) {
  std::string pattern = root + "/plimsoll-scenario-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder in " + root);
  folder_ = pattern;
  return folder_;
}

Block::Block(size_t bytes) : data_(new char[bytes]) {
  std::memset(data_.get(), 1, bytes);
}

Mapping map_pages(size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::runtime_error("mmap failed");
  touch(static_cast<char*>(data), bytes);
  return {static_cast<char*>(data), bytes};
}

void unmap(const Mapping& mapping) {
  munmap(mapping.data, mapping.bytes);
}

void touch(char* data, size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPage) static_cast<volatile char*>(data)[at] = 1;
}

int checked(int64_t result, const char* what) {
  if (result < 0) throw std::runtime_error(what);
  return static_cast<int>(result);
}

}  // namespace plimsoll::scenarios
