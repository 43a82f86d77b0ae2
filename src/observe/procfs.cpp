#include "observe/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

namespace plimsoll {
namespace {

// Of the kernel's sched.h.
constexpr uint64_t kKernelThreadFlag = 0x00200000;  // PF_KTHREAD
constexpr uint64_t kExitingFlag = 0x00000004;       // PF_EXITING

uint64_t parse_unsigned(std::string_view word) {
  uint64_t number = 0;
  std::from_chars(word.data(), word.data() + word.size(), number);
  return number;
}

// Fields of stat are numbered as proc(5) does, from 1.
constexpr int kFirstFieldAfterName = 3;
constexpr int kLastField = 28;

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

DirectoryStream open_stream(int parent, const char* name) {
  const int descriptor = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  DIR* stream = ::fdopendir(descriptor);
  if (stream == nullptr) ::close(descriptor);
  return DirectoryStream(stream);
}

}  // namespace

bool ProcessStat::is_kernel_thread() const noexcept {
  return (flags & kKernelThreadFlag) != 0;
}

bool ProcessStat::leader_is_leaving() const noexcept {
  return leader_has_ended() || (flags & kExitingFlag) != 0;
}

// The stack's start is random, and the code's too for most programs.
std::optional<uint64_t> ProcessStat::program_identity() const noexcept {
  if (leader_has_ended() || start_code == 0) return std::nullopt;
  return (start_code ^ start_stack) * 0x100000001b3ULL + start_stack;
}

std::optional<ProcessStat> parse_stat(std::string_view text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  const auto pid = parse_number(text.substr(0, open));
  if (!pid) return std::nullopt;
  std::string_view rest = text.substr(close + 1);
  std::array<std::string_view, kLastField + 1> fields;
  for (int i = kFirstFieldAfterName; i <= kLastField; ++i) fields[static_cast<size_t>(i)] = next_word(rest);
  if (fields[22].empty()) return std::nullopt;
  ProcessStat stat;
  stat.pid = static_cast<int>(*pid);
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = fields[3].front();
  stat.parent = static_cast<int>(parse_number(fields[4]).value_or(0));
  stat.flags = parse_unsigned(fields[9]);
  stat.threads = parse_number(fields[20]).value_or(0);
  stat.start_ticks = parse_unsigned(fields[22]);
  stat.start_code = parse_unsigned(fields[26]);
  stat.start_stack = parse_unsigned(fields[28]);
  return stat;
}

std::string_view own_number(std::string_view status) {
  std::string_view number;
  while (auto line = next_line(status)) {
    if (!line->starts_with("NSpid:")) continue;
    line->remove_prefix(6);
    for (auto word = next_word(*line); !word.empty(); word = next_word(*line)) number = word;
  }
  return number;
}

ProcessStatus parse_status(std::string_view text) {
  const auto bytes = [&](std::string_view key, int64_t otherwise) {
    const auto kib = number_of(text, key);
    return kib ? *kib * 1024 : otherwise;
  };
  ProcessStatus status;
  status.thread_group = static_cast<int>(number_of(text, "Tgid").value_or(0));
  status.threads = number_of(text, "Threads").value_or(0);
  // Everything about memory stands between these; the text behind is longer than all of it.
  const size_t start = text.find("\nVmPeak:");
  if (start == std::string_view::npos) return status;
  text.remove_prefix(start + 1);
  status.rss_bytes = bytes("VmRSS", 0);
  status.rss_anonymous_bytes = bytes("RssAnon", -1);
  status.rss_file_bytes = bytes("RssFile", -1);
  status.rss_shared_memory_bytes = bytes("RssShmem", -1);
  status.swap_bytes = bytes("VmSwap", 0);
  status.page_table_bytes = bytes("VmPTE", 0) + bytes("VmPMD", 0);
  status.huge_tlb_bytes = bytes("HugetlbPages", 0);
  return status;
}

std::optional<Rollup> parse_rollup(std::string_view text) {
  const auto rss = number_of(text, "Rss");
  const auto pss = number_of(text, "Pss");
  if (!rss || !pss) return std::nullopt;
  const auto file = number_of(text, "Pss_File"), shared_memory = number_of(text, "Pss_Shmem");
  return Rollup{*rss * 1024, *pss * 1024, file ? *file * 1024 : -1,
                shared_memory ? *shared_memory * 1024 : -1};
}

bool are_numbers_ours(const std::string& proc_root) {
  std::array<char, 32> target;
  const ssize_t length = ::readlink((proc_root + "/self").c_str(), target.data(), target.size());
  return length > 0 &&
         std::string_view(target.data(), static_cast<size_t>(length)) == std::to_string(::getpid());
}

bool is_our_trouble(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR;
}

ProcessDirectory::ProcessDirectory(const std::string& proc_root, int pid) {
  const std::string path = proc_root + "/" + std::to_string(pid);
  descriptor_ = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) error_ = errno;
  leader_stat_ = "task/" + std::to_string(pid) + "/stat";
}

ProcessDirectory::ProcessDirectory(ProcessDirectory&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      error_(other.error_),
      leader_stat_(std::move(other.leader_stat_)) {}

ProcessDirectory& ProcessDirectory::operator=(ProcessDirectory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(error_, other.error_);
  std::swap(leader_stat_, other.leader_stat_);
  return *this;
}

ProcessDirectory::~ProcessDirectory() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<ProcessStat> ProcessDirectory::stat(FileReader& reader) const {
  if (descriptor_ < 0) return std::nullopt;
  auto text = reader.read_at(descriptor_, leader_stat_.c_str());
  if (!text) text = reader.read_at(descriptor_, "stat");
  return text ? parse_stat(*text) : std::nullopt;
}

std::optional<ProcessStatus> ProcessDirectory::status(FileReader& reader) const {
  if (descriptor_ < 0) return std::nullopt;
  const auto text = reader.read_at(descriptor_, "status");
  return text && !text->empty() ? std::optional(parse_status(*text)) : std::nullopt;
}

int64_t ProcessDirectory::count_descriptors(const std::string& prefix) const {
  if (descriptor_ < 0) return -1;
  const DirectoryStream stream = open_stream(descriptor_, (prefix + "fd").c_str());
  if (!stream) return -1;
  // Since 6.2 the directory's size is the number of descriptors.
  struct stat status = {};
  struct statfs system = {};
  const int descriptor = ::dirfd(stream.get());
  if (::fstat(descriptor, &status) == 0 && status.st_size > 0 && ::fstatfs(descriptor, &system) == 0 &&
      system.f_type == PROC_SUPER_MAGIC)
    return status.st_size;
  int64_t count = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    if (entry->d_name[0] != '.') ++count;
  }
  return count;
}

std::vector<int> ProcessDirectory::threads() const {
  std::vector<int> threads;
  const DirectoryStream stream = open_stream(descriptor_, "task");
  while (const dirent* entry = stream ? ::readdir(stream.get()) : nullptr) {
    if (const auto thread = parse_number(entry->d_name)) threads.push_back(static_cast<int>(*thread));
  }
  return threads;
}

int ProcessDirectory::living_thread(const ProcessStat& stat) const {
  if (!stat.leader_is_leaving()) return stat.pid;
  for (const int thread : threads())
    if (thread != stat.pid) return thread;
  return stat.pid;
}

std::string ProcessDirectory::living_prefix(const ProcessStat& stat) const {
  const int thread = living_thread(stat);
  return thread == stat.pid ? std::string() : "task/" + std::to_string(thread) + "/";
}

bool ProcessDirectory::is_leaving(FileReader& reader, int thread) const {
  const std::string path = "task/" + std::to_string(thread) + "/stat";
  const auto now = path == leader_stat_ ? stat(reader)
                                        : parse_stat(reader.read_at(descriptor_, path.c_str()).value_or(""));
  return now ? now->leader_is_leaving() : !is_our_trouble(reader.error());
}

}  // namespace plimsoll
