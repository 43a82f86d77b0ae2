#include "isolate/seat.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "isolate/job_cgroup.h"

namespace plimsoll {
namespace {

constexpr std::string_view kSeat = "/plimsoll-seat";

std::string seat_of(const CgroupPlace& place) {
  return fmt::format("{}{}", place.directory, kSeat);
}

bool is_ours(int pid) noexcept {
  constexpr int kGenerations = 100;
  const int self = ::getpid();
  for (int generation = 0; generation < kGenerations && pid > 1; ++generation) {
    if (pid == self) return true;
    pid = process_parent(pid).value_or(0);
  }
  return pid == self;
}

// Those who are born meanwhile follow in another round.
int move_members(const std::string& from, const std::string& to) {
  constexpr int kRounds = 20;
  FileReader reader;
  const std::string list = fmt::format("{}/cgroup.procs", to);
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<int> members =
        parse_members(reader.read(fmt::format("{}/cgroup.procs", from).c_str()).value_or(""));
    if (members.empty()) return 0;
    if (!std::all_of(members.begin(), members.end(), is_ours)) return EBUSY;
    for (const int pid : members) {
      const int error = write_file_at(AT_FDCWD, list.c_str(), std::to_string(pid));
      if (error != 0 && error != ESRCH) return error;
    }
  }
  return EBUSY;
}

}  // namespace

CgroupPlace without_seat(CgroupPlace place) {
  if (!place.directory.ends_with(kSeat) || place.directory.size() - kSeat.size() < place.mount_point.size())
    return place;
  place.directory.resize(place.directory.size() - kSeat.size());
  if (place.path.ends_with(kSeat)) place.path.resize(std::max<size_t>(1, place.path.size() - kSeat.size()));
  return place;
}

int take_seat(const CgroupPlace& place) noexcept try {
  const std::string seat = seat_of(place);
  if (::mkdir(seat.c_str(), 0755) != 0 && errno != EEXIST) return errno;
  const int error = move_members(place.directory, seat);
  if (error != 0) leave_seat(place);
  return error;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

void leave_seat(const CgroupPlace& place) noexcept try {
  const std::string seat = seat_of(place);
  move_members(seat, place.directory);
  ::rmdir(seat.c_str());
} catch (const std::bad_alloc&) {  // then we stay in it
}

}  // namespace plimsoll
