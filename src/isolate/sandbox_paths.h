// What of the file system a sandboxed job sees.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll::sandbox {

// Ordered: the later includes the earlier, except for kDevice.
enum class Access : uint8_t {
  kList,    // names of directories
  kDevice,  // read and write, no ioctl
  kRead,    // read and execute
  kWrite,   // and create, change, rename, remove
};

struct VisiblePath {
  std::string path;  // absolute, without symbolic links
  Access access = Access::kRead;
  bool directory = false;
};

// A link on the way to a visible path, such as /bin -> usr/bin.
struct VisibleLink {
  std::string path;
  std::string target;
};

class View {
 public:
  // The system's libraries, programs and what they need of /etc and /sys; what does not exist is left out.
  static View Default(bool network);

  // `path` as the caller wrote it. Throws kInvalidArgument for what may not be given away or does not exist.
  void AddGiven(const std::string& path, Access access);
  // As above, but a path that does not exist is left out.
  void AddIfPresent(const std::string& path, Access access);
  // Sorts, and leaves out what lies beneath something that gives as much.
  void Simplify();

  bool Shows(const std::string& resolved_path) const;
  const std::vector<VisiblePath>& paths() const { return paths_; }
  const std::vector<VisibleLink>& links() const { return links_; }

 private:
  std::vector<VisiblePath> paths_;
  std::vector<VisibleLink> links_;
};

bool lies_beneath(const std::string& path, const std::string& directory);
// Absolute and without symbolic links; empty if it does not exist.
std::string resolve(const std::string& path);

}  // namespace plimsoll::sandbox
