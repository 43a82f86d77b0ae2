// For tests of Pool: options for the worker of echo_worker_main.cpp.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "plimsoll/error.h"
#include "plimsoll/isolate.h"

namespace plimsoll::pool_test {

using std::chrono::milliseconds;
using Kind = Outcome::Kind;

inline std::string echo_worker() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "isolate_echo_worker").string();
}

inline PoolOptions echo_options(int workers = 2, std::vector<std::string> arguments = {}) {
  PoolOptions options;
  options.workers = workers;
  options.worker.argv = {echo_worker()};
  options.worker.argv.insert(options.worker.argv.end(), arguments.begin(), arguments.end());
  options.worker.standard_error = Output::kCapture;
  return options;
}

inline Outcome ask(Pool& pool, const std::string& request, JobOptions options = {}) {
  return pool.Submit(request, options).get();
}

// Elsewhere the kernel refuses memory at the limit: what a worker makes of it is its own affair.
inline bool has_cgroup(const Receipt& receipt) {
  return receipt.mechanism.rfind("cgroup", 0) == 0;
}

inline size_t open_descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// The first job of a process starts its guard, whose pipe stays: what is counted after it must come back.
inline size_t descriptors_after_first_job() {
  Command first;
  first.argv = {"/bin/true"};
  Exec(first);
  return open_descriptors();
}

// Zombies count as alive.
inline bool alive(int pid) {
  return std::filesystem::exists("/proc/" + std::to_string(pid));
}

template <typename Function>
ErrorCode code_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{0};
}

template <typename Condition>
bool eventually(Condition&& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    usleep(2000);
  }
  return true;
}

}  // namespace plimsoll::pool_test
