#include "isolate/sandbox_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/fail.h"

namespace plimsoll::sandbox {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

const char* const kSystem[] = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"};

// Not whole directories of which a part is secret: /etc/ssl/private belongs to root, and so may the job.
const char* const kConfiguration[] = {
    "ld.so.cache",     "ld.so.conf",
    "ld.so.conf.d",    "ld.so.preload",
    "alternatives",    "localtime",
    "timezone",        "locale.alias",
    "locale.conf",     "default/locale",
    "passwd",          "group",
    "nsswitch.conf",   "host.conf",
    "hosts",           "gai.conf",
    "services",        "protocols",
    "ssl/certs",       "ssl/openssl.cnf",
    "ca-certificates", "ca-certificates.conf",
    "pki/tls/certs",   "pki/ca-trust/extracted",
    "python3",         "python3.11",
    "mime.types",      "os-release",
    "debian_version",  "shells",
    "profile",         "profile.d",
    "bash.bashrc",     "inputrc",
    "terminfo",        "matplotlibrc",
};
// How many processors there are and what they can do: thread pools and torch ask.
const char* const kMachine[] = {"/sys/devices/system/cpu", "/sys/devices/system/node"};

struct Resolved {
  std::string path;
  std::vector<VisibleLink> links;
  bool directory = false;
};

// Follows `path` component by component, as the kernel does, and keeps the links it met.
std::optional<Resolved> follow(const std::string& path) {
  namespace fs = std::filesystem;
  Resolved result;
  std::error_code error;
  const fs::path absolute = fs::path(path).is_absolute() ? fs::path(path) : fs::current_path(error) / path;
  if (error) return std::nullopt;                                   // somebody removed it
  std::vector<std::string> left(absolute.begin(), absolute.end());  // the next one is at the back
  std::reverse(left.begin(), left.end());
  struct stat status = {};
  while (!left.empty()) {
    const std::string name = left.back();
    left.pop_back();
    if (name.empty() || name == "." || name == "/") continue;
    if (name == "..") {
      result.path.resize(result.path.empty() ? 0 : result.path.rfind('/'));
      continue;
    }
    const std::string next = result.path + "/" + name;
    if (lstat(next.c_str(), &status) != 0) return std::nullopt;
    if (!S_ISLNK(status.st_mode)) {
      result.path = next;
      continue;
    }
    char target[PATH_MAX];
    const ssize_t length = readlink(next.c_str(), target, sizeof(target));
    if (length <= 0 || length == sizeof(target) || result.links.size() == kMostLinks) return std::nullopt;
    result.links.push_back({next, std::string(target, static_cast<size_t>(length))});
    const fs::path link(result.links.back().target);
    if (link.is_absolute()) result.path.clear();
    const std::vector<std::string> more(link.begin(), link.end());
    left.insert(left.end(), more.rbegin(), more.rend());
  }
  if (result.path.empty()) result.path.push_back('/');
  if (stat(result.path.c_str(), &status) != 0) return std::nullopt;
  result.directory = S_ISDIR(status.st_mode);
  return result;
}

// The job has its own of these, or would see everybody's.
bool is_reserved(const std::string& path) {
  for (const char* exact : {"/", "/tmp", "/dev/shm"}) {
    if (path == exact) return true;
  }
  return lies_beneath(path, "/proc") || (lies_beneath(path, "/dev") && !lies_beneath(path, "/dev/shm"));
}

}  // namespace

bool lies_beneath(const std::string& path, const std::string& directory) {
  return path.compare(0, directory.size(), directory) == 0 &&
         (path.size() == directory.size() || directory == "/" || path[directory.size()] == '/');
}

std::string resolve(const std::string& path) {
  const std::optional<Resolved> resolved = follow(path);
  return resolved ? resolved->path : "";
}

View View::Default(bool network) {
  View view;
  for (const char* path : kSystem) view.AddIfPresent(path, Access::kRead);
  for (const char* name : kConfiguration) view.AddIfPresent(std::string("/etc/") + name, Access::kRead);
  if (network) view.AddIfPresent("/etc/resolv.conf", Access::kRead);
  for (const char* path : kMachine) view.AddIfPresent(path, Access::kRead);
  return view;
}

void View::AddGiven(const std::string& path, Access access) {
  const char* what = access == Access::kWrite ? "writable" : "readable";
  if (path.empty() || path.find('\0') != std::string::npos) {
    fail(ErrorCode::kInvalidArgument, "sandbox: a {} path is empty or contains a zero byte", what);
  }
  const std::optional<Resolved> resolved = follow(path);
  if (!resolved) {
    fail(ErrorCode::kInvalidArgument,
         "sandbox: {} path '{}' does not exist or cannot be reached; create it before the job starts", what,
         path);
  }
  if (is_reserved(resolved->path)) {
    fail(ErrorCode::kInvalidArgument,
         "sandbox: {} path '{}' cannot be given to a job, which has a root, /proc, /dev and /tmp of its own; "
         "name the directories that it needs",
         what, path);
  }
  AddIfPresent(path, access);
}

void View::AddIfPresent(const std::string& path, Access access) {
  std::optional<Resolved> resolved = follow(path);
  if (!resolved || resolved->path == "/") return;
  paths_.push_back({std::move(resolved->path), access, resolved->directory});
  links_.insert(links_.end(), resolved->links.begin(), resolved->links.end());
}

void View::Simplify() {
  std::sort(paths_.begin(), paths_.end(), [](const VisiblePath& a, const VisiblePath& b) {
    return a.path != b.path ? a.path < b.path : a.access > b.access;
  });
  std::vector<VisiblePath> kept;
  for (VisiblePath& path : paths_) {
    const bool covered = std::any_of(kept.begin(), kept.end(), [&](const VisiblePath& other) {
      return other.access >= path.access && lies_beneath(path.path, other.path);
    });
    if (!covered) kept.push_back(std::move(path));
  }
  paths_ = std::move(kept);

  std::vector<VisibleLink> links;
  for (VisibleLink& link : links_) {
    const bool known =
        Shows(link.path) || std::any_of(links.begin(), links.end(),
                                        [&](const VisibleLink& other) { return other.path == link.path; });
    if (!known) links.push_back(std::move(link));
  }
  links_ = std::move(links);
}

bool View::Shows(const std::string& resolved_path) const {
  return std::any_of(paths_.begin(), paths_.end(),
                     [&](const VisiblePath& path) { return lies_beneath(resolved_path, path.path); });
}

}  // namespace plimsoll::sandbox
