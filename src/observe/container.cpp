#include "observe/container.h"

#include <algorithm>
#include <charconv>

namespace plimsoll {
namespace {

int64_t stat_of(std::string_view stat, std::string_view key) {
  return number_of(stat, key).value_or(0);
}

// "some avg10=0.12 avg60=..."
double parse_pressure(std::string_view text) {
  constexpr std::string_view kKey = "some avg10=";
  const size_t start = text.find(kKey);
  double percent = 0;
  if (start != std::string_view::npos)
    std::from_chars(text.data() + start + kKey.size(), text.data() + text.size(), percent);
  return percent;
}

}  // namespace

void ContainerReader::follow(int thread) {
  const auto text = reader_.read((roots_.proc + "/" + std::to_string(thread) + "/cgroup").c_str());
  if (!text || *text == membership_) return;
  membership_ = *text;
  cgroup_ = MemoryCgroup::of_process(thread, roots_);
  share_ = others_ = {};
  // The unified tree knows the pressure even where the memory controller is on version 1.
  const auto unified = find_unified(cgroup_places(thread, roots_));
  pressure_file_.reset();
  if (unified) pressure_file_ = unified->directory + "/memory.pressure";
}

std::optional<ContainerView> ContainerReader::read(int thread, const ProcessView& watched, bool estimate) {
  follow(thread);
  if (!cgroup_) return std::nullopt;
  ContainerView view;
  view.version = cgroup_->version();
  view.path = cgroup_->place().path;
  if (view.version == 1) {
    if (estimate) {
      stack_bytes_ = kernel_stack_bytes_per_thread(roots_.proc, reader_);
      share_ = others_ = estimate_kernel_share(cgroup_->place(), roots_.proc, reader_);
      others_.page_table_bytes = std::max<int64_t>(others_.page_table_bytes - watched.page_table_bytes, 0);
      others_.threads = std::max<int64_t>(others_.threads - watched.threads, 0);
    }
    read_version_1(watched, view);
    view.unused_names = read_unused_names();
  } else {
    read_version_2(view);
  }
  const auto usage = cgroup_->usage_bytes();
  if (!usage) return std::nullopt;
  view.kernel_bytes = *usage;
  // The root of version 1 leaves kernel memory out of its usage. Only a root has this file.
  if (view.version == 1 && !cgroup_->file("cgroup.sane_behavior").empty())
    view.kernel_bytes += view.slab_bytes + view.page_table_bytes + view.kernel_stack_bytes;
  view.sum_bytes = view.anonymous_bytes + view.page_cache_bytes + view.shared_memory_bytes + view.slab_bytes +
                   view.page_table_bytes + view.kernel_stack_bytes + view.other_kernel_bytes;
  if (view.version == 2) view.sum_bytes += view.socket_bytes;  // version 1 does not charge it as memory
  view.swap_bytes = cgroup_->swap_bytes().value_or(0);
  view.peak_bytes = cgroup_->peak_bytes().value_or(0);
  view.limit_bytes = cgroup_->limit_bytes().value_or(0);
  view.pressure_some_avg10 = read_pressure();
  return view;
}

// Kernel memory is one figure here; page tables and stacks are estimated and the rest is called slab, which
// most of it is.
void ContainerReader::read_version_1(const ProcessView& watched, ContainerView& view) const {
  const std::string_view stat = cgroup_->stat();
  const bool hierarchical = number_of(stat, "total_cache").has_value();
  const auto value = [&](const std::string& key) {
    return stat_of(stat, hierarchical ? "total_" + key : key);
  };
  view.anonymous_bytes = value("rss");
  view.shared_memory_bytes = value("shmem");
  view.page_cache_bytes = std::max<int64_t>(value("cache") - view.shared_memory_bytes, 0);
  const int64_t kernel = parse_number(cgroup_->file("memory.kmem.usage_in_bytes")).value_or(0);
  const int64_t stacks = (others_.threads + watched.threads) * stack_bytes_;
  view.page_table_bytes = std::min(others_.page_table_bytes + watched.page_table_bytes, kernel);
  view.kernel_stack_bytes = std::min(stacks, kernel - view.page_table_bytes);
  view.slab_bytes = kernel - view.page_table_bytes - view.kernel_stack_bytes;
  view.socket_bytes = parse_number(cgroup_->file("memory.kmem.tcp.usage_in_bytes")).value_or(0);
}

void ContainerReader::read_version_2(ContainerView& view) const {
  const std::string_view stat = cgroup_->stat();
  view.shared_memory_bytes = stat_of(stat, "shmem");
  // `anon` is what is mapped. Parts of huge pages and swap cache that nobody maps any more are still charged:
  // they are on the lists of anonymous pages, as shared memory is.
  const int64_t listed =
      stat_of(stat, "active_anon") + stat_of(stat, "inactive_anon") - view.shared_memory_bytes;
  view.anonymous_bytes = std::max(stat_of(stat, "anon"), listed) + stat_of(stat, "hugetlb");
  view.page_cache_bytes = std::max<int64_t>(stat_of(stat, "file") - view.shared_memory_bytes, 0);
  view.slab_reclaimable_bytes = stat_of(stat, "slab_reclaimable");
  view.slab_bytes =
      std::max(stat_of(stat, "slab"), view.slab_reclaimable_bytes + stat_of(stat, "slab_unreclaimable"));
  view.page_table_bytes = stat_of(stat, "pagetables") + stat_of(stat, "sec_pagetables");
  view.kernel_stack_bytes = stat_of(stat, "kernel_stack");
  view.socket_bytes = stat_of(stat, "sock");
  const int64_t named = stat_of(stat, "percpu") + stat_of(stat, "vmalloc") + stat_of(stat, "zswap");
  const int64_t told = view.slab_bytes + view.page_table_bytes + view.kernel_stack_bytes;
  // Since 5.18 the kernel gives its whole share; before, the named ones are all that is known.
  const auto kernel = number_of(stat, "kernel");
  view.other_kernel_bytes = kernel ? std::max<int64_t>(*kernel - told, 0) : named;
}

// "names in all, unused, ..."
int64_t ContainerReader::read_unused_names() {
  std::string_view text = reader_.read((roots_.proc + "/sys/fs/dentry-state").c_str()).value_or("");
  next_word(text);
  return parse_number(next_word(text)).value_or(0);
}

double ContainerReader::read_pressure() {
  if (!pressure_file_) return 0;
  const auto text = reader_.read(pressure_file_->c_str());
  if (!text) pressure_file_.reset();  // a kernel without it: do not ask again
  return parse_pressure(text.value_or(""));
}

std::vector<int> ContainerReader::pids() const {
  std::vector<int> pids;
  if (!cgroup_) return pids;
  std::string_view text = cgroup_->file("cgroup.procs");
  while (const auto line = next_line(text)) {
    if (const auto pid = parse_number(*line)) pids.push_back(static_cast<int>(*pid));
  }
  return pids;
}

ContainerReturns ContainerReader::returns() const {
  ContainerReturns returns;
  if (!cgroup_) return returns;
  const std::string_view stat = cgroup_->stat();
  const std::string prefix = number_of(stat, "total_cache") ? "total_" : "";
  returns.file_lists_bytes = stat_of(stat, prefix + "active_file") + stat_of(stat, prefix + "inactive_file");
  return returns;
}

}  // namespace plimsoll
