// Where a buffer can go among those already placed.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/space.h"

namespace plimsoll::plan {

enum class Fit { kFirst, kBest };  // the lowest gap that is large enough, or the smallest one

// Buffers placed one after the other. Where few live together, each buffer's conflicts are listed once and
// the placed ones among them sorted at every question; where many do, the lists would be longer than a scan
// over all that is placed, which is then kept in order of offset.
class Gaps {
 public:
  explicit Gaps(const std::pmr::vector<Item>& items);

  void clear();
  // The lowest or best offset for the item, ignoring its pin; above everything if no gap is large enough.
  int64_t find(int item, Fit fit);
  void place(int item, int64_t offset);

  int conflicts(int item) const { return conflicts_[item]; }  // how many live together with it
  bool is_dense() const { return dense_; }
  const Offsets& offsets() const { return offsets_; }
  int64_t work() const { return work_; }  // placed buffers looked at so far, and some for each question

 private:
  struct Taken {
    int64_t begin, end;
    int first, last;
  };

  void list_conflicts();
  int64_t first_or_best(const Item& item, Fit fit);

  const std::pmr::vector<Item>& items_;
  std::pmr::vector<int> conflicts_;
  bool dense_ = false;
  std::pmr::vector<int> list_,
      list_begin_;                 // if not dense: the conflicts of item i are list_[list_begin_[i]...]
  Offsets offsets_;                // kNotPlaced before place()
  std::pmr::vector<Taken> taken_;  // by begin; all that is placed if dense, else the current conflicts
  int64_t work_ = 0;
};

}  // namespace plimsoll::plan
