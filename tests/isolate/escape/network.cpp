#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "attempts.h"

namespace escape {
namespace {

sockaddr_in local(const std::string& port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port.c_str())));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// "@name" is an abstract address.
socklen_t name_address(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
}

bool finish(int file, bool result) {
  const int error = errno;
  opened(file);
  errno = error;
  return result;
}

bool connect_tcp(const Arguments& a) {  // PORT
  const int file = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = local(a[0]);
  return finish(file, connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
}
bool listen_tcp(const Arguments&) {
  const int file = socket(AF_INET6, SOCK_STREAM, 0);
  return finish(file, file >= 0 && listen(file, 1) == 0);
}
bool send_udp(const Arguments& a) {  // PORT
  const int file = socket(AF_INET, SOCK_DGRAM, 0);
  const sockaddr_in address = local(a[0]);
  return finish(file,
                sendto(file, "x", 1, 0, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 1);
}
bool raw_socket(const Arguments&) {
  return opened(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}
bool packet_socket(const Arguments&) {
  return opened(socket(AF_PACKET, SOCK_RAW, 0));
}
bool netlink_socket(const Arguments&) {
  return opened(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
}
bool other_family(const Arguments&) {  // VSOCK, ALG, BLUETOOTH, CAN, ...
  for (int family = 2; family < 46; ++family) {
    if (opened(socket(family, SOCK_STREAM, 0)) || opened(socket(family, SOCK_DGRAM, 0)) ||
        opened(socket(family, SOCK_SEQPACKET, 0)) || opened(socket(family, SOCK_RAW, 0))) {
      return true;
    }
  }
  return false;
}
bool connect_name(const Arguments& a) {  // NAME: a stream socket of somebody else's
  const int file = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address;
  const socklen_t length = name_address(a[0], address);
  return finish(file, connect(file, reinterpret_cast<sockaddr*>(&address), length) == 0);
}
bool send_from_pair(const Arguments& a) {  // NAME: a datagram socket of somebody else's
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0) return false;
  sockaddr_un address;
  const socklen_t length = name_address(a[0], address);
  return connect(pair[0], reinterpret_cast<sockaddr*>(&address), length) == 0 &&
         send(pair[0], "x", 1, 0) == 1;
}
bool attach_shared_memory(const Arguments& a) {  // KEY
  const int id = shmget(static_cast<key_t>(std::strtol(a[0].c_str(), nullptr, 10)), 0, 0);
  return id >= 0 && shmat(id, nullptr, SHM_RDONLY) != reinterpret_cast<void*>(-1);
}
bool attach_shared_memory_by_id(const Arguments& a) {  // ID
  return shmat(std::atoi(a[0].c_str()), nullptr, SHM_RDONLY) != reinterpret_cast<void*>(-1);
}
bool open_shared_memory(const Arguments& a) {
  return opened(shm_open(a[0].c_str(), O_RDWR, 0600));
}  // NAME
bool open_message_queue(const Arguments& a) {  // NAME
  const mqd_t queue = mq_open(a[0].c_str(), O_RDWR);
  if (queue == static_cast<mqd_t>(-1)) return false;
  mq_close(queue);
  return true;
}

}  // namespace

std::vector<Attempt> network_attempts() {
  return {
      {"connect_tcp", connect_tcp},
      {"listen_tcp", listen_tcp},
      {"send_udp", send_udp},
      {"raw_socket", raw_socket},
      {"packet_socket", packet_socket},
      {"netlink_socket", netlink_socket},
      {"other_family", other_family},
      {"connect_name", connect_name},
      {"send_from_pair", send_from_pair},
      {"attach_shared_memory", attach_shared_memory},
      {"attach_shared_memory_by_id", attach_shared_memory_by_id},
      {"open_shared_memory", open_shared_memory},
      {"open_message_queue", open_message_queue},
  };
}

}  // namespace escape
