// plimsoll_mutate [--read] [--from INDEX] N SEED FILES...: models with faults made from FILES, numbers INDEX
// (or 0) to N. What is accepted must survive being written and read again, and is then run, unless --read.
// Last line: N mutated, E errors, S accepted. Status 1 if anything but an Error was thrown.
//
// plimsoll_mutate [--read] --only INDEX SEED FILES... leaves that one mutant in mutant.onnx and tries it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>

#include "base/mapped_file.h"
#include "onnx/mutate.h"
#include "onnx/try_read.h"
#include "onnx/try_run.h"
#include "plimsoll/error.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace plimsoll {
namespace {

uint64_t current_seed, current_index;  // for the message of a crash

void tell_mutant() {
  std::fprintf(stderr, "crashed on: plimsoll_mutate --only %llu %llu FILES...\n",
               static_cast<unsigned long long>(current_index), static_cast<unsigned long long>(current_seed));
}

// Without a sanitizer: says which mutant it was, then dies as it would have.
void on_signal(int number) {
  tell_mutant();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// False if the model is refused, or its run. Throws std::exception, not Error, for what must not happen.
bool accepts(const std::string& bytes, bool read_only) {
  if (!try_read(bytes)) return false;
  if (read_only) return true;
  try {
    try_run(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct Job {
  uint64_t begin = 0, end = 0, seed = 0;
  bool only = false, read_only = false;
};

int run(const Job& job, char** files, size_t count) {
  std::vector<Mutator> mutators;
  for (size_t i = 0; i < count; ++i) {
    const MappedFile file(files[i]);
    mutators.emplace_back(
        std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()));
  }
  uint64_t errors = 0, accepted = 0, failed = 0;
  current_seed = job.seed;
  for (uint64_t i = job.begin; i < job.end; ++i) {
    current_index = i;
    const std::string bytes = mutators[i % count].mutant(job.seed, i);
    if (job.only) {
      if (std::FILE* out = std::fopen("mutant.onnx", "wb")) {
        std::fwrite(bytes.data(), 1, bytes.size(), out);
        std::fclose(out);
      }
    }
    try {
      ++(accepts(bytes, job.read_only) ? accepted : errors);
    } catch (const std::exception& e) {
      ++failed;
      std::fprintf(stderr, "%s: %s\n", files[i % count], e.what());
      tell_mutant();
    }
  }
  std::printf("%llu mutated, %llu errors, %llu accepted\n",
              static_cast<unsigned long long>(job.end - job.begin), static_cast<unsigned long long>(errors),
              static_cast<unsigned long long>(accepted));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  using namespace plimsoll;
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(tell_mutant);
  } else {
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(number, on_signal);
  }
  Job job;
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    job.only = job.only || std::strcmp(argv[at], "--only") == 0;
    if (std::strcmp(argv[at], "--from") == 0 && at + 1 < argc)
      job.begin = std::strtoull(argv[++at], nullptr, 10);
    job.read_only = job.read_only || std::strcmp(argv[at], "--read") == 0;
  }
  if (argc < at + 3) {
    std::fprintf(stderr,
                 "usage: plimsoll_mutate [--read] [--from INDEX] N SEED FILES...\n       plimsoll_mutate "
                 "[--read] --only "
                 "INDEX SEED FILES...\n");
    return 2;
  }
  try {
    const uint64_t n = std::strtoull(argv[at], nullptr, 10);
    job.seed = std::strtoull(argv[at + 1], nullptr, 10);
    if (job.only) job.begin = n;
    job.end = job.only ? n + 1 : n;
    return run(job, argv + at + 2, static_cast<size_t>(argc - at - 2));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
