#include "isolate/surroundings.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "isolate/job_cgroup.h"
#include "isolate/seat.h"

namespace plimsoll {
namespace {

bool may_make_children(const CgroupPlace& place) {
  return ::access(place.directory.c_str(), W_OK | X_OK) == 0 &&
         ::access((place.directory + "/cgroup.procs").c_str(), W_OK) == 0;
}

struct MountAttributes {
  uint64_t set, clear, propagation, user_namespace;
};

// A mount of our own of the place, writable and attached nowhere.
std::shared_ptr<const Descriptor> open_again(const CgroupPlace& place) {
  constexpr unsigned kClone = 1, kReadOnly = 1;  // OPEN_TREE_CLONE, MOUNT_ATTR_RDONLY
  constexpr unsigned kAway = 64;                 // from the numbers that jobs and guards are given
  Descriptor tree(
      static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, place.directory.c_str(), kClone | O_CLOEXEC)));
  const MountAttributes writable{0, kReadOnly, 0, 0};
  if (!tree || ::syscall(SYS_mount_setattr, tree.get(), "", AT_EMPTY_PATH, &writable, sizeof(writable)) != 0)
    return nullptr;
  return std::make_shared<const Descriptor>(::fcntl(tree.get(), F_DUPFD_CLOEXEC, kAway));
}

// Whether we are a job of one of us, which made its cgroups read-only; others had their reasons.
bool is_in_a_job(const std::vector<CgroupPlace>& places) {
  return std::any_of(places.begin(), places.end(), [](const CgroupPlace& place) {
    const CgroupPlace own = without_seat(place);
    return parse_job_cgroup_name(std::string_view(own.path).substr(own.path.rfind('/') + 1)).has_value();
  });
}

void open_if_read_only(CgroupPlace& place, Surroundings& found) {
  if (::access(place.directory.c_str(), W_OK) == 0 || errno != EROFS || ::geteuid() != 0) return;
  const auto opened = open_again(place);
  if (!opened || !*opened) return;
  place.directory = fmt::format("/proc/self/fd/{}", opened->get());
  found.opened.push_back(opened);
}

bool has_members(const CgroupPlace& place) {
  FileReader reader;
  return !reader.read((place.directory + "/cgroup.procs").c_str()).value_or("").empty();
}

// Some controllers, such as pids, can be switched on around processes: but then no other process may enter a
// child any more (the cgroup becomes a "threaded domain"). So nobody may be in it, whatever the controller.
int switch_on(const CgroupPlace& place, const std::string& controller) {
  const bool is_root = ::access((place.directory + "/cgroup.type").c_str(), F_OK) != 0;
  const bool needs_seat = !is_root && has_members(place);
  if (needs_seat) {
    if (const int error = take_seat(place)) return error;
  }
  const std::string file = place.directory + "/cgroup.subtree_control";
  const int error = write_file_at(AT_FDCWD, file.c_str(), "+" + controller);
  if (error != 0 && needs_seat) leave_seat(place);
  return error;
}

// Version 2 gives a cgroup's children only the controllers that its subtree_control names.
bool is_passed_on(const CgroupPlace& place, const std::string& controller,
                  std::vector<std::string>& obstacles) {
  FileReader reader;
  const std::string file = place.directory + "/cgroup.subtree_control";
  const auto names_it = [&] {
    std::string_view text = reader.read(file.c_str()).value_or("");
    text = next_line(text).value_or("");
    for (std::string_view word = next_word(text); !word.empty(); word = next_word(text)) {
      if (word == controller) return true;
    }
    return false;
  };
  if (names_it()) return true;
  const int error = switch_on(place, controller);
  if (error == 0 && names_it()) return true;
  obstacles.push_back(fmt::format(
      "the {} controller of {} cannot be passed on to children ({}){}", controller, place.directory,
      std::strerror(error),
      error == EBUSY ? ": version 2 refuses it while others are in that cgroup; start this process alone in "
                       "one, as with systemd-run --scope -p Delegate=yes"
                     : ""));
  return false;
}

std::optional<CgroupPlace> usable(const std::optional<CgroupPlace>& place, const char* controller,
                                  std::vector<std::string>& obstacles) {
  if (!place) {
    obstacles.push_back(fmt::format("no {} controller is mounted where it can be seen", controller));
    return std::nullopt;
  }
  if (!may_make_children(*place)) {
    obstacles.push_back(
        fmt::format("no permission to make cgroups in {}: {}", place->directory, std::strerror(errno)));
    return std::nullopt;
  }
  if (place->version == 2 && !is_passed_on(*place, controller, obstacles)) return std::nullopt;
  return place;
}

}  // namespace

Surroundings look_around(const CgroupRoots& roots) {
  std::vector<CgroupPlace> places = cgroup_places(0, roots);
  Surroundings found;
  const bool in_a_job = is_in_a_job(places);
  for (CgroupPlace& place : places) {
    CgroupPlace own = without_seat(place);
    const bool seated = own.directory != place.directory;
    place = std::move(own);
    if (in_a_job) open_if_read_only(place, found);
    if (seated) found.seated_beneath = place.directory;
  }
  found.own_memory = find_controller(places, "memory");
  found.memory = usable(found.own_memory, "memory", found.obstacles);
  found.pids = usable(find_controller(places, "pids"), "pids", found.obstacles);
  found.unified = find_unified(places);
  if (found.unified && !may_make_children(*found.unified)) found.unified.reset();
  if (!found.unified) {
    std::vector<std::string> ignored;
    found.cpuacct = usable(find_controller(places, "cpuacct"), "cpuacct", ignored);
  }
  return found;
}

std::shared_ptr<const Surroundings> surroundings() {
  struct Known {
    std::mutex mutex;
    std::string cgroups;  // /proc/self/cgroup as it was
    std::shared_ptr<const Surroundings> answer;
  };
  static Known known;
  FileReader reader;
  const auto cgroups_now = [&] { return reader.read("/proc/self/cgroup").value_or(""); };
  const std::lock_guard lock(known.mutex);
  // Looking around may take a seat, which is another place: then once more, from there.
  constexpr int kLooks = 2;
  for (int look = 0; look < kLooks && (!known.answer || known.cgroups != cgroups_now()); ++look) {
    known.cgroups = cgroups_now();
    known.answer = std::make_shared<const Surroundings>(look_around({}));
  }
  return known.answer;
}

int64_t machine_memory_bytes() noexcept {
  const int64_t pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : 0;
}

}  // namespace plimsoll
