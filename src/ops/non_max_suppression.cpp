#include <algorithm>
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

bool overlaps(const Box& a, const Box& b, float threshold) {
  const float width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  const float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  if (!(width > 0) || !(height > 0)) return false;
  const float both = width * height, first = a.area(), second = b.area(), either = first + second - both;
  if (!(both > 0) || !(first > 0) || !(second > 0) || !(either > 0)) return false;
  return both / either > threshold;
}

// Calls take(batch, class, box) for every box that stays. `order` has room for the boxes of a class.
template <typename F>
void suppress(const Problem& p, int64_t* order, F&& take) {
  const auto key = [](float score) {
    return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  };
  for (int64_t n = 0; n < p.batches * p.classes; ++n) {
    int64_t candidates = 0, kept = 0;
    for (int64_t i = 0; i < p.count; ++i) {
      const float score = p.scores[n * p.count + i];
      if (score > p.least_score || p.least_score == -std::numeric_limits<float>::infinity())
        order[candidates++] = i;
    }
    std::sort(order, order + candidates, [&](int64_t i, int64_t j) {
      const float x = key(p.scores[n * p.count + i]), y = key(p.scores[n * p.count + j]);
      return x != y ? x > y : i < j;
    });
    const int64_t first = n / p.classes * p.count;
    for (int64_t i = 0; i < candidates && kept < p.most; ++i) {
      const Box box = box_at(p, first + order[i]);
      bool stays = true;
      for (int64_t j = 0; j < kept && stays; ++j)
        stays = !overlaps(box, box_at(p, first + order[j]), p.overlap);
      if (!stays) continue;
      order[kept++] = order[i];
      take(n / p.classes, n % p.classes, order[kept - 1]);
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
  const std::span<int64_t> order = c.arena().array<int64_t>(static_cast<size_t>(p.count));
  int64_t selected = 0;
  suppress(p, order.data(), [&](int64_t, int64_t, int64_t) { ++selected; });
  c.set_output(0, ElementType::kInt64, std::vector<Dim>{Dim(selected), Dim(3)});
}

const void* select(SelectContext& c) {
  if (c.ranked(kScores)) c.scratch(c.dims(kScores)[2] * Dim(8));
  return nullptr;
}

void run(const RunContext& c) {
  const Problem p = problem_of(*c.node, c.attrs<NmsAttrs>(),
                               [&](size_t i) { return c.has_input(i) ? &c.inputs[i] : nullptr; });
  auto* out = c.outputs[0].as<int64_t>();
  suppress(p, reinterpret_cast<int64_t*>(c.scratch), [&](int64_t batch, int64_t label, int64_t box) {
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
