#include "observe/process_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "observe/fields.h"

namespace plimsoll {
namespace {

void add_mapping(const Vma& vma, MappingKind kind, bool proportional, ProcessView& view) {
  const MappingBytes bytes = divide(vma, proportional);
  const int64_t all = bytes.anonymous + bytes.file;
  switch (kind) {
    case MappingKind::kHeap:
      view.heap_bytes += all;
      break;
    case MappingKind::kMalloc:
      view.malloc_map_bytes += all;
      view.allocator_bytes += all;
      break;
    case MappingKind::kArena:
      view.allocator_bytes += all;
      break;
    case MappingKind::kMainStack:
    case MappingKind::kThreadStack:
      view.stack_bytes += all;
      break;
    case MappingKind::kAnonymous:
      view.anonymous_bytes += all;
      break;
    case MappingKind::kFile:
      view.private_file_bytes += bytes.anonymous;
      view.shared_file_bytes += bytes.file;
      break;
    case MappingKind::kSharedMemory:
      view.private_file_bytes += bytes.anonymous;
      view.shared_memory_bytes += bytes.file;
      break;
  }
  view.sum_bytes += all;
  view.huge_page_bytes += vma.huge_pages;
  view.fork_shared_bytes += bytes.joint;
  view.swap_bytes += proportional ? vma.swap_proportional : vma.swap;
}

constexpr int64_t ProcessView::*kAnonymousKinds[] = {&ProcessView::heap_bytes, &ProcessView::allocator_bytes,
                                                     &ProcessView::stack_bytes, &ProcessView::anonymous_bytes,
                                                     &ProcessView::private_file_bytes};
constexpr size_t kKinds = std::size(kAnonymousKinds);
// Stacks and written copies of files reach a size and stay there: nothing is known to go there by itself.
constexpr bool kGrowsByItself[kKinds] = {true, true, false, true, false};

// Gives `change` to the kinds of `view` that changed that way since `before`, or to all.
void spread(int64_t change, const ProcessView& before, ProcessView& view) {
  if (change == 0) return;
  std::array<double, kKinds> growth = {}, size = {};
  double all_growth = 0, all_sizes = 0;
  for (size_t i = 0; i < kKinds; ++i) {
    size[i] = static_cast<double>(view.*kAnonymousKinds[i]);
    const double grown = size[i] - static_cast<double>(before.*kAnonymousKinds[i]);
    growth[i] = std::max(change > 0 ? grown : -grown, 0.0);
    all_growth += growth[i];
    if (change > 0 && !kGrowsByItself[i]) size[i] = 0;
    all_sizes += size[i];
  }
  const bool has_trend = all_growth >= 0.1 * std::abs(static_cast<double>(change));
  const std::array<double, kKinds>& weights = has_trend ? growth : size;
  const double all = has_trend ? all_growth : all_sizes;
  if (all <= 0) {
    view.anonymous_bytes = std::max<int64_t>(view.anonymous_bytes + change, 0);
    return;
  }
  const int64_t allocator_before = view.allocator_bytes;
  for (size_t i = 0; i < kKinds; ++i) {
    int64_t& bytes = view.*kAnonymousKinds[i];
    bytes =
        std::max<int64_t>(bytes + static_cast<int64_t>(static_cast<double>(change) * weights[i] / all), 0);
  }
  view.malloc_map_bytes = scaled(view.malloc_map_bytes, view.allocator_bytes, allocator_before);
}

// What memory changed by, told by a counter of the kernel's that may lag behind: where a walk had found more
// than the counter said, a rise only makes up for it at first.
int64_t change_of(int64_t walked, int64_t then, int64_t now) {
  const int64_t change = now - then;
  const int64_t lag = std::max<int64_t>(walked - then, 0);
  return change > 0 ? std::max<int64_t>(change - lag, 0) : change;
}

int64_t anonymous_of(const ProcessView& view) {
  int64_t bytes = 0;
  for (const auto kind : kAnonymousKinds) bytes += view.*kind;
  return bytes;
}

// A kind that has a counter of its own; by Pss it changes as much in proportion.
int64_t follow(int64_t bytes, int64_t walked, int64_t then, int64_t now) {
  const int64_t change = change_of(walked, then, now);
  return std::max<int64_t>(walked > 0 ? scaled(bytes, walked + change, walked) : bytes + change, 0);
}

// Kernels that do not tell the kinds: all of it is anonymous, as far as anybody can know.
ProcessStatus with_kinds(ProcessStatus status) {
  if (status.rss_anonymous_bytes < 0) status.rss_anonymous_bytes = status.rss_bytes;
  status.rss_file_bytes = std::max<int64_t>(status.rss_file_bytes, 0);
  status.rss_shared_memory_bytes = std::max<int64_t>(status.rss_shared_memory_bytes, 0);
  return status;
}

ProcessView unscaled_view(const ProcessStatus& now) {
  ProcessView view;
  view.anonymous_bytes = now.rss_anonymous_bytes;
  view.shared_file_bytes = now.rss_file_bytes;
  view.shared_memory_bytes = now.rss_shared_memory_bytes;
  return view;
}

void sum_up(ProcessView& view) {
  view.sum_bytes = anonymous_of(view) + view.shared_file_bytes + view.shared_memory_bytes;
}

}  // namespace

int64_t scaled(int64_t bytes, int64_t now, int64_t then) noexcept {
  if (then <= 0) return bytes;
  return static_cast<int64_t>(static_cast<double>(bytes) * static_cast<double>(now) /
                              static_cast<double>(then));
}

bool is_small_rest(int64_t rest_bytes, int64_t whole_bytes) noexcept {
  constexpr int64_t kMiB = int64_t{1} << 20;
  return std::abs(rest_bytes) <= std::max(kMiB, whole_bytes / 50);
}

void add_mappings(const std::vector<Vma>& vmas, const NameTable& names, const MappingContext& context,
                  FullReading& reading, FileShares* files) {
  const std::vector<MappingKind> kinds = classify(vmas, names, context);
  for (size_t i = 0; i < vmas.size(); ++i) {
    const Vma& vma = vmas[i];
    add_mapping(vma, kinds[i], false, reading.by_rss);
    add_mapping(vma, kinds[i], true, reading.by_pss);
    reading.lazily_freed_bytes += vma.lazily_freed;
    const bool has_file = kinds[i] == MappingKind::kFile || kinds[i] == MappingKind::kSharedMemory;
    if (files == nullptr || !has_file || vma.rss == 0) continue;
    const std::string& name = names[vma.name];
    FileShare& share = (*files)[name.empty() ? "[shared anonymous]" : name];
    const MappingBytes bytes = divide(vma, true);
    share.rss_bytes += vma.rss;
    share.pss_bytes += bytes.anonymous + bytes.file;
    share.written_bytes += bytes.anonymous;
  }
  reading.by_rss.mappings = reading.by_pss.mappings = static_cast<int64_t>(vmas.size());
}

ProcessView scale_view(const FullReading* last, const FullReading* before_last, const ProcessStatus& status,
                       bool proportional) {
  const ProcessStatus now = with_kinds(status);
  ProcessView view;
  if (last == nullptr) {
    view = unscaled_view(now);
  } else {
    const auto view_of = [&](const FullReading& reading) {
      return proportional ? reading.by_pss : reading.by_rss;
    };
    view = view_of(*last);
    const ProcessStatus then = with_kinds(last->status);
    const ProcessView before = before_last == nullptr ? view : view_of(*before_last);
    const ProcessView& walked = last->by_rss;
    spread(change_of(anonymous_of(walked), then.rss_anonymous_bytes, now.rss_anonymous_bytes), before, view);
    view.shared_file_bytes =
        follow(view.shared_file_bytes, walked.shared_file_bytes, then.rss_file_bytes, now.rss_file_bytes);
    view.shared_memory_bytes = follow(view.shared_memory_bytes, walked.shared_memory_bytes,
                                      then.rss_shared_memory_bytes, now.rss_shared_memory_bytes);
  }
  view.swap_bytes = now.swap_bytes;
  sum_up(view);
  view.kernel_bytes = proportional ? view.sum_bytes : now.rss_bytes;
  return view;
}

ProcessStatus beyond(const ProcessStatus& status, const ProcessStatus& relative) {
  ProcessStatus more = with_kinds(status);
  const ProcessStatus same = with_kinds(relative);
  for (const auto bytes : {&ProcessStatus::rss_anonymous_bytes, &ProcessStatus::rss_file_bytes,
                           &ProcessStatus::rss_shared_memory_bytes, &ProcessStatus::swap_bytes})
    more.*bytes = std::max<int64_t>(more.*bytes - same.*bytes, 0);
  return more;
}

Share share_of(const Rollup& rollup, const ProcessStatus& status) {
  Share share;
  share.known = true;
  share.status = with_kinds(status);
  share.file_bytes = rollup.pss_file_bytes;
  share.shared_memory_bytes = rollup.pss_shared_memory_bytes;
  if (share.file_bytes >= 0 && share.shared_memory_bytes >= 0) return share;
  const int64_t all = share.status.rss_file_bytes + share.status.rss_shared_memory_bytes;
  const int64_t own = std::clamp<int64_t>(rollup.pss_bytes - share.status.rss_anonymous_bytes, 0, all);
  share.file_bytes = all > 0 ? scaled(share.status.rss_file_bytes, own, all) : 0;
  share.shared_memory_bytes = all > 0 ? own - share.file_bytes : 0;
  return share;
}

void apply_share(const Share& share, const ProcessStatus& status, ProcessView& view) {
  const ProcessStatus now = with_kinds(status);
  const ProcessStatus& then = share.status;
  view.shared_file_bytes =
      follow(share.file_bytes, then.rss_file_bytes, then.rss_file_bytes, now.rss_file_bytes);
  view.shared_memory_bytes = follow(share.shared_memory_bytes, then.rss_shared_memory_bytes,
                                    then.rss_shared_memory_bytes, now.rss_shared_memory_bytes);
  sum_up(view);
  view.kernel_bytes = view.sum_bytes;
}

void add_view(ProcessView& sum, const ProcessView& view) {
  std::vector<int64_t> values;
  for_each_process_field(view, [&](const char*, int64_t value) { values.push_back(value); });
  size_t next = 0;
  for_each_process_field(sum, [&](const char*, int64_t& value) { value += values[next++]; });
}

}  // namespace plimsoll
