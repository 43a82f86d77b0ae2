// Starts the program of holder_main.cpp and speaks with it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "support/places.h"

namespace plimsoll::observed {

class Holder {
 public:
  Holder() {
    if (testing::Test::IsSkipped())
      return;  // before it began: where programs cannot be started (under_qemu.cpp)
    std::array<int, 2> to = {-1, -1}, from = {-1, -1};
    if (::pipe2(to.data(), O_CLOEXEC) != 0 || ::pipe2(from.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    std::string program = test_program("plimsoll_holder");
    std::array<char*, 2> arguments = {program.data(), nullptr};
    if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    input_ = ::fdopen(to[1], "w");
    output_ = ::fdopen(from[0], "r");
    if (pid_ > 0) {
      EXPECT_EQ(tell("descriptors 0"), "ok");  // it has started
    }
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() {
    end();
    if (input_ != nullptr) std::fclose(input_);
    if (output_ != nullptr) std::fclose(output_);
  }

  int pid() const { return pid_; }

  // The answer, without its newline.
  std::string tell(const std::string& command) {
    std::fprintf(input_, "%s\n", command.c_str());
    std::fflush(input_);
    std::array<char, 256> line = {};
    if (std::fgets(line.data(), line.size(), output_) == nullptr) return "no answer";
    std::string answer = line.data();
    if (!answer.empty() && answer.back() == '\n') answer.pop_back();
    return answer;
  }
  void hold(const std::string& command) { ASSERT_EQ(tell(command), "ok") << command; }

  void send(int signal) { ::kill(pid_, signal); }
  // Ends it and waits for it.
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  std::FILE* input_ = nullptr;
  std::FILE* output_ = nullptr;
};

}  // namespace plimsoll::observed
