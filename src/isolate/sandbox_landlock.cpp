#include "isolate/sandbox_landlock.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <utility>

#include "isolate/sandbox_syscall.h"

namespace plimsoll::sandbox {
namespace {

// The kernel's numbers (linux/landlock.h); Debian's header knows only the older of them.
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDirectory = 1 << 3,
                   kMakeCharacterDevice = 1 << 6, kMakeBlockDevice = 1 << 11, kRefer = 1 << 13,
                   kTruncate = 1 << 14, kDeviceIoctl = 1 << 15;
constexpr uint64_t kFirstAbi = (1 << 13) - 1;
constexpr uint64_t kBindTcp = 1 << 0, kConnectTcp = 1 << 1;
constexpr uint64_t kScopeAbstractUnixSocket = 1 << 0, kScopeSignal = 1 << 1;
constexpr uint64_t kOnFiles = kExecute | kWriteFile | kReadFile | kTruncate | kDeviceIoctl;

struct RulesetAttributes {
  uint64_t handled_access_fs, handled_access_net, scoped;
};
struct [[gnu::packed]] PathAttributes {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr int kCreateVersion = 1, kRulePathBeneath = 1;

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;

size_t attributes_size(uint64_t network, uint64_t scoped) {
  return scoped != 0 ? 24 : network != 0 ? 16 : 8;
}

uint64_t rights_of(Access access) {
  switch (access) {
    case Access::kList:
      return kReadDirectory;
    case Access::kRead:
      return kExecute | kReadFile | kReadDirectory;
    case Access::kDevice:
      return kReadFile | kWriteFile | kTruncate;
    case Access::kWrite:
      break;
  }
  return ~(kMakeCharacterDevice | kMakeBlockDevice | kDeviceIoctl);
}

}  // namespace

int landlock_abi() noexcept {
  const long abi = raw_syscall(kCreateRuleset, nullptr, 0, kCreateVersion);
  return abi < 0 ? 0 : static_cast<int>(abi);
}

Landlock::Landlock(int abi, bool network) {
  handled_rights_ = kFirstAbi;
  if (abi >= 2) handled_rights_ |= kRefer;
  if (abi >= 3) handled_rights_ |= kTruncate;
  if (abi >= 4 && !network) handled_network_ = kBindTcp | kConnectTcp;
  if (abi >= 5) handled_rights_ |= kDeviceIoctl;
  if (abi >= 6) scoped_ = kScopeAbstractUnixSocket | kScopeSignal;
}

void Landlock::Permit(std::string path, Access access) {
  const uint64_t rights = rights_of(access) & handled_rights_;
  rules_.push_back({std::move(path), false, rights, rights & kOnFiles});
}

void Landlock::PermitOwnProcess() {
  Permit("/proc/self", Access::kRead);
  rules_.back().follow_links = true;
}

int Landlock::Add(int ruleset, const Rule& rule) noexcept {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = rule.follow_links ? 0 : RESOLVE_NO_SYMLINKS;
  const long file = raw_syscall(SYS_openat2, AT_FDCWD, rule.path.c_str(), &how, sizeof(how));
  if (file < 0) return static_cast<int>(file);
  PathAttributes attributes{rule.rights, static_cast<int32_t>(file)};
  long result = raw_syscall(kAddRule, ruleset, kRulePathBeneath, &attributes, 0);
  if (result == -EINVAL && rule.file_rights != rule.rights) {  // not a directory
    attributes.allowed_access = rule.file_rights;
    result = raw_syscall(kAddRule, ruleset, kRulePathBeneath, &attributes, 0);
  }
  raw_syscall(SYS_close, file);
  return static_cast<int>(result);
}

int Landlock::Build(const char** path) const noexcept {
  const RulesetAttributes attributes{handled_rights_, handled_network_, scoped_};
  const long ruleset =
      raw_syscall(kCreateRuleset, &attributes, attributes_size(handled_network_, scoped_), 0);
  if (ruleset < 0) return static_cast<int>(ruleset);
  for (const Rule& rule : rules_) {
    *path = rule.path.c_str();
    if (const int result = Add(static_cast<int>(ruleset), rule); result < 0) return result;
  }
  return static_cast<int>(ruleset);
}

int Landlock::Restrict(int ruleset) noexcept {
  const long result = raw_syscall(kRestrictSelf, ruleset, 0);
  raw_syscall(SYS_close, ruleset);
  return static_cast<int>(result);
}

}  // namespace plimsoll::sandbox
