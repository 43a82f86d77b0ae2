// plimsoll_record OUTPUT CGROUP HERTZ -- COMMAND...: starts a command that prints `iteration N` lines (and
// perhaps `truth BYTES` as its last) in a memory cgroup of its own (CGROUP: a directory made for it, or "-"
// for none) and writes a recording of it. Every sample is a full one: scenarios are short, real watches are
// long.
#include <fcntl.h>
#include <plimsoll/observe.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;

struct Child {
  pid_t pid = 0;
  int out = -1;
};

// Through a shell that enters the cgroup before it becomes the command.
Child start(const std::string& cgroup, char** command) {
  std::vector<std::string> words = {"/bin/sh", "-c",
                                    "[ \"$0\" = - ] || echo $$ >\"$0\"/cgroup.procs; exec \"$@\"", cgroup};
  for (; *command != nullptr; ++command) words.emplace_back(*command);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  Child child;
  const int error = posix_spawn(&child.pid, "/bin/sh", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (error != 0) throw std::runtime_error("cannot start the command");
  child.out = ends[0];
  return child;
}

class Lines {
 public:
  // Reads what is there until `until`; false at the end of the output.
  bool Follow(int descriptor, Clock::time_point until) {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
      pollfd waiting{descriptor, POLLIN, 0};
      if (poll(&waiting, 1, static_cast<int>(std::max<int64_t>(left, 0))) <=
          0) {  // also when it is late: look once
        if (left <= 0) return true;
        continue;
      }
      char buffer[4096];
      const ssize_t count = read(descriptor, buffer, sizeof(buffer));
      if (count <= 0) return false;
      for (ssize_t i = 0; i < count; ++i) {
        if (buffer[i] != '\n') {
          line_ += buffer[i];
          continue;
        }
        if (line_.starts_with("iteration ")) iteration = std::strtoll(line_.c_str() + 10, nullptr, 10);
        if (line_.starts_with("truth ")) truth = line_.substr(6);
        line_.clear();
      }
    }
  }
  int64_t iteration = -1;
  std::string truth;

 private:
  std::string line_;
};

void record(const std::string& output, const std::string& cgroup, double hertz, char** command) {
  const Child child = start(cgroup, command);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the shell is gone by then, mostly
  plimsoll::ObserverOptions options;
  options.cost_limit = 1;
  plimsoll::Observer observer(child.pid, options);
  Lines lines;
  std::vector<plimsoll::Sample> samples;
  const auto interval = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(1 / hertz));
  auto next = Clock::now();
  do {
    samples.push_back(observer.Read(lines.iteration));
    next = std::max(next + interval, Clock::now());
  } while (lines.Follow(child.out, next) && lines.truth.empty());
  // From there on it tidies up: on a slow machine that would be a part of the recording.
  while (lines.Follow(child.out, Clock::now() + std::chrono::seconds(1))) {
  }
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the command failed");
  plimsoll::RecordingHeader header;
  for (; *command != nullptr; ++command) header.command.emplace_back(*command);
  header.pid = child.pid;
  header.interval_seconds = 1 / hertz;
  header.facts["truth_bytes_per_iteration"] = lines.truth;
  header.facts["own_cgroup"] = cgroup == "-" ? "no" : "yes";
  std::ofstream file(output);
  file << ToJson(header) << "\n";
  for (const plimsoll::Sample& sample : samples) file << ToJson(sample) << "\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6 || std::strcmp(argv[4], "--") != 0) {
    std::fprintf(stderr, "usage: plimsoll_record OUTPUT CGROUP HERTZ -- COMMAND...\n");
    return 2;
  }
  try {
    record(argv[1], argv[2], std::strtod(argv[3], nullptr), argv + 5);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plimsoll_record %s: %s\n", argv[1], error.what());
    return 1;
  }
  return 0;
}
