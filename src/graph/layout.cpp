#include "graph/layout.h"

#include <algorithm>

namespace plimsoll {

std::vector<int64_t> LayoutContext::order(size_t rank) {
  std::vector<int64_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) axes[i] = static_cast<int64_t>(i);
  if (rank >= 3) std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

int64_t LayoutContext::place(int64_t axis, size_t rank) {
  if (axis == 0 || rank < 3) return axis;
  return axis == 1 ? static_cast<int64_t>(rank) - 1 : axis - 1;
}

bool LayoutContext::has_one_element(size_t i) const {
  const std::span<const Dim> sizes = dims(i);
  return ranked(i) && std::all_of(sizes.begin(), sizes.end(), [](Dim d) { return d == Dim(1); });
}

bool LayoutContext::has_length(size_t i, size_t length) const {
  return has_input(i) && ranked(i) && rank(i) == 1 && dims(i)[0] == Dim(static_cast<int64_t>(length));
}

bool LayoutContext::is_empty(size_t i) const {
  return !has_input(i) || (is_weight(i) && node_.inputs[i]->constant->elements() == 0);
}

void LayoutContext::answer(LayoutChoice choice, std::initializer_list<size_t> inputs) {
  layout.choice = choice;
  for (size_t i : inputs) {
    if (has_input(i)) layout.inputs[i] = true;
  }
  layout.outputs[0] = true;
}

}  // namespace plimsoll
