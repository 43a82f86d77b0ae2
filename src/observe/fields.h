// The names that the figures of a sample have in JSON: one list for writing and reading.
#pragma once

#include "plimsoll/observe.h"

namespace plimsoll {

// Calls visit(name, member) for every figure, in the order of the header. `View` may be const.
template <typename View, typename Visit>
void for_each_process_field(View& view, Visit visit) {
  visit("heap_bytes", view.heap_bytes);
  visit("allocator_bytes", view.allocator_bytes);
  visit("malloc_map_bytes", view.malloc_map_bytes);
  visit("stack_bytes", view.stack_bytes);
  visit("anonymous_bytes", view.anonymous_bytes);
  visit("huge_page_bytes", view.huge_page_bytes);
  visit("fork_shared_bytes", view.fork_shared_bytes);
  visit("private_file_bytes", view.private_file_bytes);
  visit("shared_file_bytes", view.shared_file_bytes);
  visit("shared_memory_bytes", view.shared_memory_bytes);
  visit("swap_bytes", view.swap_bytes);
  visit("sum_bytes", view.sum_bytes);
  visit("kernel_bytes", view.kernel_bytes);
  visit("rss_bytes", view.rss_bytes);
  visit("page_table_bytes", view.page_table_bytes);
  visit("processes", view.processes);
  visit("threads", view.threads);
  visit("descriptors", view.descriptors);
  visit("mappings", view.mappings);
  visit("proportional", view.proportional);
}

template <typename View, typename Visit>
void for_each_container_field(View& view, Visit visit) {
  visit("anonymous_bytes", view.anonymous_bytes);
  visit("page_cache_bytes", view.page_cache_bytes);
  visit("shared_memory_bytes", view.shared_memory_bytes);
  visit("slab_bytes", view.slab_bytes);
  visit("slab_reclaimable_bytes", view.slab_reclaimable_bytes);
  visit("page_table_bytes", view.page_table_bytes);
  visit("kernel_stack_bytes", view.kernel_stack_bytes);
  visit("socket_bytes", view.socket_bytes);
  visit("other_kernel_bytes", view.other_kernel_bytes);
  visit("swap_bytes", view.swap_bytes);
  visit("sum_bytes", view.sum_bytes);
  visit("kernel_bytes", view.kernel_bytes);
  visit("peak_bytes", view.peak_bytes);
  visit("limit_bytes", view.limit_bytes);
  visit("unused_names", view.unused_names);
}

template <typename Rivals, typename Visit>
void for_each_rival(Rivals& rivals, Visit visit) {
  visit("line", rivals.line);
  visit("line_whole", rivals.line_whole);
  visit("pieces", rivals.pieces);
  visit("margin", rivals.margin);
  visit("bytes", rivals.bytes);
  visit("share", rivals.share);
  visit("recent", rivals.recent);
  visit("order", rivals.order);
  visit("nurseries", rivals.nurseries);
  visit("stairs", rivals.stairs);
  visit("turns", rivals.turns);
}

}  // namespace plimsoll
