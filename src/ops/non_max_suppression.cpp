#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/gradient.h"
#include "ops/movement.h"

namespace plimsoll {
namespace {

struct NmsAttrs {
  bool centered = false;
};

constexpr size_t kBoxes = 0, kScores = 1, kMost = 2, kOverlap = 3, kLeastScore = 4;

const void* attrs(AttrContext& c) {
  auto* a = c.make<NmsAttrs>();
  const int64_t format = c.integer("center_point_box", 0);
  if (format != 0 && format != 1) c.reject("attribute 'center_point_box': expected 0 or 1, found {}", format);
  a->centered = format == 1;
  return a;
}

// Data at any address.
struct Floats {
  const std::byte* data;
  float operator[](int64_t i) const {
    float value;
    std::memcpy(&value, data + i * 4, 4);
    return value;
  }
};

struct Problem {
  Floats boxes{}, scores{};
  int64_t batches = 0, classes = 0, count = 0;
  int64_t most = 0;  // per class
  float overlap = 0, least_score = -std::numeric_limits<float>::infinity();
  bool centered = false;
};

struct Box {
  float x0, x1, y0, y1;
  float area() const { return (x1 - x0) * (y1 - y0); }
};

Box box_at(const Problem& p, int64_t i) {
  const float a = p.boxes[4 * i], b = p.boxes[4 * i + 1], c = p.boxes[4 * i + 2], d = p.boxes[4 * i + 3];
  if (p.centered) return {a - c / 2, a + c / 2, b - d / 2, b + d / 2};
  return {std::min(b, d), std::max(b, d), std::min(a, c), std::max(a, c)};
}

// The boxes of a class that stay, each side by itself, so that a loop over them is one of vectors.
class Kept {
 public:
  static constexpr int64_t kFloats = 5;  // of each box
  Kept(float* room, int64_t most)
      : x0_(room), x1_(x0_ + most), y0_(x1_ + most), y1_(y0_ + most), area_(y1_ + most) {}

  void add(const Box& b) {
    x0_[count_] = b.x0, x1_[count_] = b.x1, y0_[count_] = b.y0, y1_[count_] = b.y1;
    area_[count_++] = b.area();
  }
  int64_t count() const { return count_; }

  bool overlaps(const Box& box, float threshold) const {
    const float first = box.area();
    if (!(first > 0)) return false;
    constexpr int64_t kBlock = 32;
    for (int64_t start = 0; start < count_; start += kBlock) {
      const int64_t end = std::min(start + kBlock, count_);
      int any = 0;
      for (int64_t i = start; i < end; ++i) {
        const float width = std::min(box.x1, x1_[i]) - std::max(box.x0, x0_[i]);
        const float height = std::min(box.y1, y1_[i]) - std::max(box.y0, y0_[i]);
        const float both = width * height, either = first + area_[i] - both;
        any |= (width > 0) & (height > 0) & (both > 0) & (area_[i] > 0) & (either > 0) &
               (both / either > threshold);
      }
      if (any != 0) return true;
    }
    return false;
  }

 private:
  float *x0_, *x1_, *y0_, *y1_, *area_;
  int64_t count_ = 0;
};

// What suppress needs of memory, for the boxes of a class.
struct Room {
  uint64_t* order;
  float* kept;
  static constexpr int64_t kBytesPerBox = int64_t{sizeof(uint64_t)} + Kept::kFloats * int64_t{sizeof(float)};
};

// Numbers whose order is that of falling scores; equal ones keep theirs.
uint64_t rank_of_score(float score, int64_t box) {
  if (std::isnan(score)) score = -std::numeric_limits<float>::infinity();
  const uint32_t bits = std::bit_cast<uint32_t>(score == 0 ? 0.0f : score);
  const uint32_t rising = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{~rising} << 32 | static_cast<uint64_t>(box);
}

// Calls take(batch, class, box) for every box that stays.
template <typename F>
void suppress(const Problem& p, const Room& room, F&& take) {
  const bool all = p.least_score == -std::numeric_limits<float>::infinity();
  for (int64_t n = 0; n < p.batches * p.classes; ++n) {
    int64_t candidates = 0;
    for (int64_t i = 0; i < p.count; ++i) {
      const float score = p.scores[n * p.count + i];
      if (all || score > p.least_score) room.order[candidates++] = rank_of_score(score, i);
    }
    std::sort(room.order, room.order + candidates);
    const int64_t first = n / p.classes * p.count;
    Kept kept(room.kept, p.count);
    for (int64_t i = 0; i < candidates && kept.count() < p.most; ++i) {
      const auto index = static_cast<int64_t>(room.order[i] & UINT32_MAX);
      const Box box = box_at(p, first + index);
      if (kept.overlaps(box, p.overlap)) continue;
      kept.add(box);
      take(n / p.classes, n % p.classes, index);
    }
  }
}

// `view(i)` is input i, or null if it is absent.
template <typename View>
Problem problem_of(const Node& node, const NmsAttrs& a, View&& view) {
  Problem p;
  const TensorView &boxes = *view(kBoxes), &scores = *view(kScores);
  p.boxes = {boxes.data}, p.scores = {scores.data};
  p.batches = scores.dims[0], p.classes = scores.dims[1], p.count = scores.dims[2];
  p.centered = a.centered;
  if (p.count > int64_t{UINT32_MAX})
    fail(ErrorCode::kNotImplemented, "{}: {} boxes; at most {} are implemented", node.label(), p.count,
         UINT32_MAX);
  if (const TensorView* most = view(kMost)) p.most = std::max<int64_t>(index_at(*most, 0), 0);
  if (const TensorView* overlap = view(kOverlap)) p.overlap = Floats{overlap->data}[0];
  if (const TensorView* least = view(kLeastScore)) p.least_score = Floats{least->data}[0];
  if (!(p.overlap >= 0 && p.overlap <= 1))
    fail(ErrorCode::kInvalidArgument, "{}: iou_threshold: expected 0 to 1, found {}", node.label(),
         p.overlap);
  return p;
}

void infer(InferContext& c) {
  c.expect_type(kBoxes, types(ElementType::kFloat));
  c.expect_type(kScores, types(ElementType::kFloat));
  c.expect_rank(kBoxes, 3, 3);
  c.expect_rank(kScores, 3, 3);
  if (c.has_input(kMost)) c.expect_type(kMost, types(ElementType::kInt64));
  bool known = true;
  for (size_t i = 0; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    known = known && c.constant(i) != nullptr;
    if (i < kMost) continue;
    if (i > kMost) c.expect_type(i, types(ElementType::kFloat));
    const auto length = known_length(c, i);
    if (length && *length != 1) c.reject("input {}: expected one number, found {}", i, *length);
  }
  if (c.ranked(kBoxes)) unify(c, c.dims(kBoxes)[2], Dim(4));
  if (c.ranked(kBoxes) && c.ranked(kScores)) {
    unify(c, c.dims(kBoxes)[0], c.dims(kScores)[0]);
    unify(c, c.dims(kBoxes)[1], c.dims(kScores)[2]);
  }
  if (!known) return c.set_output(0, ElementType::kInt64, std::vector<Dim>{c.unknown("selected"), Dim(3)});
  const Problem p = problem_of(c.node(), c.attrs<NmsAttrs>(), [&](size_t i) { return c.constant(i); });
  const auto count = static_cast<size_t>(p.count);
  const Room room{c.arena().array<uint64_t>(count).data(),
                  c.arena().array<float>(Kept::kFloats * count).data()};
  int64_t selected = 0;
  suppress(p, room, [&](int64_t, int64_t, int64_t) { ++selected; });
  c.set_output(0, ElementType::kInt64, std::vector<Dim>{Dim(selected), Dim(3)});
}

const void* select(SelectContext& c) {
  if (c.ranked(kScores)) c.scratch(c.dims(kScores)[2] * Dim(Room::kBytesPerBox));
  return nullptr;
}

void run(const RunContext& c) {
  const Problem p = problem_of(*c.node, c.attrs<NmsAttrs>(),
                               [&](size_t i) { return c.has_input(i) ? &c.inputs[i] : nullptr; });
  auto* out = c.outputs[0].as<int64_t>();
  const Room room{c.scratch_as<uint64_t>(0), c.scratch_as<float>(p.count * int64_t{sizeof(uint64_t)})};
  suppress(p, room, [&](int64_t batch, int64_t label, int64_t box) {
    *out++ = batch;
    *out++ = label;
    *out++ = box;
  });
}

}  // namespace

extern const OpDef op_non_max_suppression = {
    .name = "NonMaxSuppression",
    .inputs = {2, 5},
    .attrs = attrs,
    .infer = infer,
    .select = select,
    .run = run,
    .gradient = no_gradient,
};

}  // namespace plimsoll
