// The cheapest way to part a sink from a source: Dinic's algorithm on whole numbers. Plain data; equal
// problems give equal answers.
#pragma once

#include <cstdint>
#include <limits>
#include <memory_resource>
#include <vector>

namespace plimsoll::plan {

class MinCut {
 public:
  static constexpr int64_t kNever = int64_t{1} << 60;  // the capacity of an arc that may not be cut

  explicit MinCut(std::pmr::memory_resource* memory)
      : arcs_(memory), first_(memory), level_(memory), next_(memory), queue_(memory), path_(memory) {}

  // Forgets everything. Vertex 0 is the source, 1 the sink.
  void reset(uint32_t vertices);
  void add_arc(uint32_t from, uint32_t to, int64_t capacity);
  // The weight of a minimum cut; kNever or more if there is none.
  int64_t solve();
  // After solve: on the source's side of the cut that is nearest to the source.
  bool is_with_source(uint32_t vertex) const { return level_[vertex] >= 0; }

 private:
  struct Arc {
    uint32_t to, next;
    int64_t left;
  };
  static constexpr uint32_t kEnd = ~0u;
  bool find_levels();
  int64_t push_along_path();

  std::pmr::vector<Arc> arcs_;  // an arc and its reverse are neighbours
  std::pmr::vector<uint32_t> first_;
  std::pmr::vector<int32_t> level_;
  std::pmr::vector<uint32_t> next_, queue_, path_;
};

}  // namespace plimsoll::plan
