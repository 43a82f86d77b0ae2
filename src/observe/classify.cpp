#include "observe/classify.h"

#include <algorithm>
#include <charconv>

#include "observe/file_reader.h"

namespace plimsoll {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kArenaBytes = uint64_t{64} << 20;            // glibc's HEAP_MAX_SIZE on 64-bit machines
constexpr uint64_t kLeastMallocMapBytes = uint64_t{128} << 10;  // glibc's M_MMAP_THRESHOLD at its start
constexpr uint64_t kLeastStackBytes = uint64_t{16} << 10;       // PTHREAD_STACK_MIN
constexpr uint64_t kMostGuardBytes = uint64_t{1} << 20;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Allocators that take their memory by mmap in round sizes; with one of them in the process, large anonymous
// maps are its arenas.
bool is_mapping_allocator(std::string_view name) {
  const std::string_view file = name.substr(name.rfind('/') + 1);
  return file.starts_with("libpython") || file.starts_with("python3") || file.starts_with("python2") ||
         file.starts_with("libjemalloc") || file.starts_with("libtcmalloc") ||
         file.starts_with("libmimalloc") || file == "node" || file.starts_with("libnode") ||
         file.starts_with("libv8") || file.starts_with("chrom") || file.starts_with("libjvm") ||
         file.starts_with("ruby") || file.starts_with("libruby");
}

// Walks one process's mappings with their neighbours in view.
class Classifier {
 public:
  Classifier(const std::vector<Vma>& vmas, const NameTable& names, const MappingContext& context)
      : vmas_(vmas), names_(names), context_(context) {
    for (const Vma& vma : vmas)
      has_mapping_allocator_ |= vma.inode != 0 && vma.executable && is_mapping_allocator(names[vma.name]);
  }

  MappingKind kind(size_t i) {
    const Vma& vma = vmas_[i];
    const std::string& name = names_[vma.name];
    if (is_shared_memory(vma, name)) return MappingKind::kSharedMemory;
    if (name.starts_with("[anon")) return named(name);
    if (name == "[heap]") return MappingKind::kHeap;
    if (name.starts_with("[stack")) return MappingKind::kMainStack;
    if (vma.inode != 0 || !name.empty()) return MappingKind::kFile;
    if (is_arena(i)) return MappingKind::kArena;
    if (is_stack(i)) return MappingKind::kThreadStack;
    if (!is_malloc_map(i)) return MappingKind::kAnonymous;
    return has_mapping_allocator_ ? MappingKind::kArena : MappingKind::kMalloc;
  }

 private:
  bool is_shared_memory(const Vma& vma, std::string_view name) const {
    if (vma.shared && vma.inode == 0 && name.empty()) return true;
    return name.starts_with("/memfd:") || name.starts_with("/SYSV") || name.starts_with("/dev/shm/") ||
           name.starts_with("/dev/zero (deleted)") || name.starts_with("[anon_shmem") ||
           (vma.inode != 0 && context_.tmpfs_devices.contains(vma.device));
  }

  // Names that programs give their maps (PR_SET_VMA_ANON_NAME), glibc's and Android's among them.
  static MappingKind named(std::string_view name) {
    if (contains(name, "glibc: malloc arena")) return MappingKind::kArena;
    if (contains(name, "malloc")) return MappingKind::kMalloc;
    if (contains(name, "pthread stack") || contains(name, "stack_and_tls")) return MappingKind::kThreadStack;
    return MappingKind::kAnonymous;
  }

  bool is_plain_anonymous(const Vma& vma) const { return vma.inode == 0 && vma.name == 0 && !vma.shared; }
  bool is_reserve(const Vma& vma) const {
    return is_plain_anonymous(vma) && !vma.readable && !vma.writable && !vma.executable;
  }
  bool is_writable(const Vma& vma) const { return is_plain_anonymous(vma) && vma.readable && vma.writable; }
  const Vma* before(size_t i) const {
    return i > 0 && vmas_[i - 1].end == vmas_[i].start ? &vmas_[i - 1] : nullptr;
  }
  const Vma* after(size_t i) const {
    return i + 1 < vmas_.size() && vmas_[i + 1].start == vmas_[i].end ? &vmas_[i + 1] : nullptr;
  }

  // A heap of an arena begins at a multiple of 64 MiB and reserves up to the next; what it uses is writable.
  // Its neighbours may have been merged with it: below into the writable part, above into the reserve.
  bool is_arena(size_t i) const {
    const Vma& vma = vmas_[i];
    if (!is_writable(vma)) {
      if (!is_reserve(vma) || before(i) == nullptr) return false;
      return is_arena_front(*before(i), &vma);
    }
    return is_arena_front(vma, after(i));
  }
  bool is_arena_front(const Vma& used, const Vma* reserve) const {
    if (!is_writable(used)) return false;
    const uint64_t slot = (used.end - 1) / kArenaBytes * kArenaBytes;
    const bool has_tail = reserve != nullptr && is_reserve(*reserve) && reserve->end >= slot + kArenaBytes;
    const bool is_full = used.end == slot + kArenaBytes && used.no_reserve;
    return used.start <= slot && (has_tail || is_full);
  }

  bool is_stack(size_t i) const {
    const Vma& vma = vmas_[i];
    if (!is_writable(vma) || vma.size() < kLeastStackBytes) return false;
    if (context_.stacks_are_marked && !vma.no_huge_page) return vma.grows_down;  // some other guarded map
    const Vma* guard = before(i);
    if (guard == nullptr || !is_reserve(*guard)) return vma.grows_down;
    // Behind an arena the guard is one with the arena's reserve, before Linux 6.7.
    return guard->size() <= kMostGuardBytes || (i >= 2 && is_arena_front(vmas_[i - 2], guard));
  }

  // A chunk that malloc maps has a header: it asks for a page more than round sizes have.
  bool is_malloc_map(size_t i) const {
    const Vma& vma = vmas_[i];
    if (!is_writable(vma) || vma.size() < kLeastMallocMapBytes) return false;
    if (has_mapping_allocator_) return true;
    const Vma* front = before(i);
    const bool is_bss = front != nullptr && front->inode != 0 && front->writable;
    return !is_bss && !vma.no_reserve && vma.size() % (16 * kPageBytes) != 0;
  }

  const std::vector<Vma>& vmas_;
  const NameTable& names_;
  const MappingContext& context_;
  bool has_mapping_allocator_ = false;
};

}  // namespace

std::vector<MappingKind> classify(const std::vector<Vma>& vmas, const NameTable& names,
                                  const MappingContext& context) {
  std::vector<MappingKind> kinds(vmas.size());
  Classifier classifier(vmas, names, context);
  for (size_t i = 0; i < vmas.size(); ++i) kinds[i] = classifier.kind(i);
  return kinds;
}

// "25 1 0:22 / /dev/shm rw,nosuid - tmpfs tmpfs rw"
std::unordered_set<uint64_t> find_tmpfs_devices(std::string_view mountinfo) {
  std::unordered_set<uint64_t> devices;
  while (auto line = next_line(mountinfo)) {
    const size_t dash = line->find(" - ");
    if (dash == std::string_view::npos || !line->substr(dash + 3).starts_with("tmpfs ")) continue;
    next_word(*line);
    next_word(*line);
    const std::string_view device = next_word(*line);
    const size_t colon = device.find(':');
    if (colon == std::string_view::npos) continue;
    const auto major = parse_number(device.substr(0, colon));
    const auto minor = parse_number(device.substr(colon + 1));
    if (major && minor) devices.insert(static_cast<uint64_t>(*major) << 32 | static_cast<uint64_t>(*minor));
  }
  return devices;
}

bool marks_stacks(std::string_view release) {
  int major = 0, minor = 0;
  const char* end = release.data() + release.size();
  const auto first = std::from_chars(release.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return false;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return false;
  return major > 6 || (major == 6 && minor >= 7);
}

MappingBytes divide(const Vma& vma, bool proportional) noexcept {
  const int64_t shared = vma.shared_clean + vma.shared_dirty;
  const int64_t alone = vma.private_clean + vma.private_dirty;
  // Written copies are dirty: take them from there first.
  const int64_t anonymous_alone =
      std::min(vma.anonymous, std::min(alone, std::max(vma.private_dirty, vma.anonymous - shared)));
  const int64_t anonymous_joint = std::min(vma.anonymous - anonymous_alone, shared);
  MappingBytes bytes;
  if (!proportional) {
    bytes.anonymous = std::min(vma.anonymous, vma.rss);
    bytes.file = vma.rss - bytes.anonymous;
    bytes.joint = anonymous_joint;
    return bytes;
  }
  // The kernel cuts Pss down to whole KiB for each mapping: half of one is missing on average.
  const int64_t pss = vma.pss < vma.rss && shared > 0 ? vma.pss + 512 : vma.pss;
  const int64_t joint_pss = std::max<int64_t>(pss - alone, 0);
  if (shared > 0)
    bytes.joint = static_cast<int64_t>(static_cast<double>(joint_pss) * static_cast<double>(anonymous_joint) /
                                       static_cast<double>(shared));
  bytes.anonymous = std::min(anonymous_alone + bytes.joint, pss);
  bytes.file = pss - bytes.anonymous;
  return bytes;
}

}  // namespace plimsoll
