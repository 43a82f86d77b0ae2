#include "isolate/sandbox_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/places.h"

namespace plimsoll::test {
namespace {

namespace fs = std::filesystem;

uint16_t listen_on_any_port(int file, bool stream) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(file, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) return 0;
  if (stream) listen(file, 64);
  getsockname(file, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

void bind_name(int file, const std::string& name, bool stream) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  bind(file, reinterpret_cast<sockaddr*>(&address),
       static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size()));
  if (stream) listen(file, 64);
}

// The memory controller's own cgroup.procs, on version 1 or 2; empty if there is none.
std::string cgroup_members() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::string path = line.substr(line.rfind(':') + 1);
    for (const std::string root : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
      const std::string members = root + (path == "/" ? "" : path) + "/cgroup.procs";
      if (access(members.c_str(), F_OK) == 0) return members;
    }
  }
  return "/sys/fs/cgroup/cgroup.procs";
}

}  // namespace

World::World() {
  names_["pid"] = std::to_string(getpid());
  names_["address"] = std::to_string(reinterpret_cast<unsigned long>(&secret_byte_));
  names_["cgroup"] = cgroup_members();
  for (const char* directory : {"outside", "readable", "writable"}) {
    names_[directory] = scratch_.path(directory);
    fs::create_directory(scratch_.path(directory));
  }
  names_["secret"] = scratch_.path("outside/secret");
  names_["program"] = scratch_.path("outside/program");
  names_["setuid"] = scratch_.path("readable/setuid");
  names_["text"] = scratch_.path("readable/text");
  Restore();
  descriptors_.push_back(
      open(names_["secret"].c_str(), O_RDONLY));  // not close-on-exec: the harness sees to it
  names_["descriptor"] = std::to_string(descriptors_.back());
  OpenListeners();
  OpenMemory();
  OpenTerminal();
}

void World::Restore() {
  for (const auto& entry : fs::directory_iterator(scratch_.path("outside"))) {
    if (entry.path().extension() != ".socket") fs::remove_all(entry.path());
  }
  fs::remove(names_["text"]);
  std::ofstream(names_["secret"]) << "secret";
  std::ofstream(names_["text"]) << "text";
  std::ofstream(names_["program"]) << "#!/bin/sh\nexit 0\n";
  chmod(names_["program"].c_str(), 0755);
  // As root: a program that makes its caller somebody else.
  if (geteuid() == 0 && access(names_["setuid"].c_str(), F_OK) != 0) {
    fs::copy_file(test_program("sandbox_escape"), names_["setuid"]);
    if (chown(names_["setuid"].c_str(), 65534, 65534) == 0) chmod(names_["setuid"].c_str(), 04755);
  }
}

void World::OpenListeners() {
  const auto open_socket = [&](int family, int type) {
    descriptors_.push_back(socket(family, type | SOCK_CLOEXEC, 0));
    return descriptors_.back();
  };
  names_["tcp"] = std::to_string(listen_on_any_port(open_socket(AF_INET, SOCK_STREAM), true));
  names_["udp"] = std::to_string(listen_on_any_port(open_socket(AF_INET, SOCK_DGRAM), false));
  names_["abstract"] = "@plimsoll-test-" + names_["pid"];
  names_["abstract_datagram"] = names_["abstract"] + "-datagram";
  names_["socket"] = scratch_.path("outside/stream.socket");
  names_["datagram"] = scratch_.path("outside/datagram.socket");
  bind_name(open_socket(AF_UNIX, SOCK_STREAM), names_["abstract"], true);
  bind_name(open_socket(AF_UNIX, SOCK_DGRAM), names_["abstract_datagram"], false);
  bind_name(open_socket(AF_UNIX, SOCK_STREAM), names_["socket"], true);
  bind_name(open_socket(AF_UNIX, SOCK_DGRAM), names_["datagram"], false);
}

void World::OpenMemory() {
  const key_t key = 0x504c0000 | (getpid() & 0xffff);
  shared_memory_ = shmget(key, 4096, IPC_CREAT | 0600);
  names_["shared_memory_key"] = std::to_string(key);
  names_["shared_memory_id"] = std::to_string(shared_memory_);
  names_["shared_memory"] = "/plimsoll-test-" + names_["pid"];
  descriptors_.push_back(shm_open(names_["shared_memory"].c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  names_["queue"] = "/plimsoll-test-" + names_["pid"];
  descriptors_.push_back(mq_open(names_["queue"].c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600, nullptr));
}

void World::OpenTerminal() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return;
  descriptors_.push_back(master);
  if (grantpt(master) != 0 || unlockpt(master) != 0) return;
  char name[64] = "";
  if (ptsname_r(master, name, sizeof(name)) != 0) return;
  terminal_ = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
  descriptors_.push_back(terminal_);
}

World::~World() {
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) close(descriptor);
  }
  if (shared_memory_ >= 0) shmctl(shared_memory_, IPC_RMID, nullptr);
  shm_unlink(names_["shared_memory"].c_str());
  mq_unlink(names_["queue"].c_str());
}

std::string World::Expand(std::string argument) const {
  for (const auto& [name, value] : names_) {
    const std::string placeholder = "{" + name + "}";
    for (size_t at = argument.find(placeholder); at != std::string::npos; at = argument.find(placeholder)) {
      argument.replace(at, placeholder.size(), value);
    }
  }
  return argument;
}

}  // namespace plimsoll::test
