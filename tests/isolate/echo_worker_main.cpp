// A pool's worker for tests: does what requests say, the bad things too.
//   echo TEXT | pid | sleep MS | spin | exit N | signal N | log PATH TEXT | touch BYTES | keep BYTES
//   garbage (a broken frame) | announce BYTES | twice | close (descriptor 3) | mute (closes it, lives on)
// Options, before it is ready: --refuse TEXT, --exit N, --say TEXT (on stderr), --never 1, --sleep MS
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kPool = 3;
std::vector<std::string> kept;

bool read_all(void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(kPool, static_cast<char*>(data) + done, size - done);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

void write_all(const void* data, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t sent = write(kPool, static_cast<const char*>(data) + done, size - done);
    if (sent <= 0) _exit(9);
    done += static_cast<size_t>(sent);
  }
}

void announce(uint64_t size) {
  write_all(&size, sizeof size);
}

void answer(const std::string& text) {
  announce(text.size());
  write_all(text.data(), text.size());
}

std::string touch(size_t size) {
  std::vector<char> bytes(size);
  for (size_t i = 0; i < size; i += 4096) bytes[i] = 1;
  return std::to_string(bytes.size());
}

void log_line(const std::string& path_and_text) {
  const size_t space = path_and_text.find(' ');
  const int log = open(path_and_text.substr(0, space).c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  const std::string line = path_and_text.substr(space + 1) + "\n";
  if (write(log, line.data(), line.size()) < 0) _exit(8);
  close(log);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

std::string obey(const std::string& request) {
  std::istringstream words(request);
  std::string verb, argument;
  words >> verb;
  std::getline(words >> std::ws, argument);
  const auto number = [&] { return std::atoll(argument.c_str()); };
  if (verb == "echo") return argument;
  if (verb == "pid") return std::to_string(getpid());
  if (verb == "sleep") std::this_thread::sleep_for(std::chrono::milliseconds(number()));
  if (verb == "spin") {
    for (volatile bool more = true; more;) continue;
  }
  if (verb == "exit") _exit(static_cast<int>(number()));
  if (verb == "signal") raise(static_cast<int>(number()));
  if (verb == "touch") return touch(static_cast<size_t>(number()));
  if (verb == "keep") kept.emplace_back(static_cast<size_t>(number()), 'x');
  if (verb == "long") return std::string(static_cast<size_t>(number()), 'y');
  if (verb == "garbage") write_all("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  if (verb == "announce") announce(static_cast<uint64_t>(number()));
  if (verb == "twice") answer("first");
  if (verb == "close" || verb == "mute") close(kPool);
  if (verb == "mute") pause();
  if (verb == "log") log_line(argument);
  return "done";
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = arguments[i], value = arguments[i + 1];
    if (option == "--say") std::cerr << value << std::endl;
    if (option == "--refuse") answer(value);
    if (option == "--exit") _exit(std::atoi(value.c_str()));
    if (option == "--never") pause();
    if (option == "--sleep") std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(value.c_str())));
  }
  answer("ready");
  for (uint64_t size = 0; read_all(&size, sizeof size);) {
    std::string request(size, '\0');
    if (!read_all(request.data(), size)) return 1;
    answer(obey(request));
  }
  return 0;
}
