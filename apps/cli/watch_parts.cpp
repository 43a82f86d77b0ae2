#include "watch_parts.h"

namespace plimsoll::cli {
namespace {

constexpr Part<ProcessView> kProcess[] = {
    {"heap", "heap", 'h', 67, "#4e79a7", &ProcessView::heap_bytes},
    {"allocator", "allocator arenas", 'a', 73, "#76b7b2", &ProcessView::allocator_bytes},
    {"anonymous", "anonymous maps", 'n', 208, "#f28e2b", &ProcessView::anonymous_bytes},
    {"stack", "stacks", 's', 221, "#edc948", &ProcessView::stack_bytes},
    {"private_file", "private file", 'p', 133, "#b07aa1", &ProcessView::private_file_bytes},
    {"shared_file", "shared file", 'f', 137, "#9c755f", &ProcessView::shared_file_bytes},
    {"shared_memory", "shared memory", 'm', 167, "#e15759", &ProcessView::shared_memory_bytes},
};

constexpr Part<ContainerView> kContainer[] = {
    {"anonymous", "anonymous", 'n', 208, "#f28e2b", &ContainerView::anonymous_bytes},
    {"page_cache", "page cache", 'c', 71, "#59a14f", &ContainerView::page_cache_bytes},
    {"shared_memory", "shared memory", 'm', 167, "#e15759", &ContainerView::shared_memory_bytes},
    {"slab", "slab", 'l', 110, "#7aa6d8", &ContainerView::slab_bytes},
    {"page_table", "page tables", 't', 217, "#ff9da7", &ContainerView::page_table_bytes},
    {"kernel_stack", "kernel stacks", 'k', 182, "#d4a6c8", &ContainerView::kernel_stack_bytes},
    {"socket", "sockets", 'o', 143, "#b6b35c", &ContainerView::socket_bytes},
    {"other_kernel", "other kernel", 'x', 245, "#8c8c8c", &ContainerView::other_kernel_bytes},
};

}  // namespace

std::span<const Part<ProcessView>> process_parts() {
  return kProcess;
}

std::span<const Part<ContainerView>> container_parts() {
  return kContainer;
}

}  // namespace plimsoll::cli
