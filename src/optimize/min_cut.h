// The cheapest way to divide the vertices of a directed graph in two, by maximum flow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

class MinCut {
 public:
  static constexpr int64_t kUncuttable = int64_t{1} << 60;

  // Vertices 0 and 1 are the source and the sink.
  MinCut() { add_vertex(), add_vertex(); }
  static constexpr int kSource = 0, kSink = 1;
  int add_vertex();
  // Costs `capacity` if `from` ends up with the source and `to` with the sink.
  void add_arc(int from, int to, int64_t capacity);
  // For every vertex whether it is with the source. Where several cuts are cheapest, the one with the
  // most vertices there.
  std::vector<bool> source_side();

 private:
  struct Arc {
    int to;
    int64_t left;
  };
  bool find_levels();
  int64_t push(int64_t limit);

  std::vector<std::vector<int>> leaving_;  // indices into arcs_; arc i ^ 1 is arc i reversed
  std::vector<Arc> arcs_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace plimsoll
