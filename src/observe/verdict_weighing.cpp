#include "observe/verdict_weighing.h"

#include <algorithm>

#include "observe/verdict_parts.h"
#include "observe/verdict_rivals.h"

namespace plimsoll {

namespace {

constexpr double kSureEnough = 0.8;     // below it a rise is not called a leak
constexpr double kNobodyCanTell = 0.7;  // of what a collector has not looked at, at most
constexpr double kRoomOfOld = 2.0 / 3;
constexpr double kStrays = 0.002;          // of a heap, that each young collection may promote too early
constexpr double kPooledPages = 16 << 20;  // V8 keeps 64 of 256 KiB that it freed: in no figure of its heap
constexpr double kWarmUpOfJvm = 6 << 20;   // beside its heap, where classes are loaded and compiled
constexpr double kOwnedByGarbage = 12 << 20;  // beside it too, by objects that nobody has looked at
constexpr double kNotLookedAt = 0.85;         // given: what garbage may own is no leak yet
constexpr double kOfRate = 0.5;      // of what is beyond heaps, between collections: then it is no such pages
constexpr double kEnoughPieces = 8;  // of a rise: fewer may be stairs
constexpr double kSeenCollected = 0.25;  // of a nursery, that fell: a collection
constexpr double kWarmUp = 0.1;          // of x: what falls there was never needed again

}  // namespace

Weighing::Weighing(const Series& series) : series_(series) {
  // What a collector left is asked first: the rest is weighed by it.
  for (size_t i = 0; i < kPartCount; ++i) {
    const size_t part = (i + kLivePart) % kPartCount;
    const auto which = static_cast<Part>(part);
    const bool turns = is_private(which) || which == kPrivatePart || which == kMappedPart;
    trends_[part] = find_trend(series.parts[part], material_rise(which, series), turns ? series.turnover : 0);
    if (which == kLivePart) WeighCollections();
    if (which == kBesidePart)
      WeighBeside(series.parts[kBesidePart], trends_[kBesidePart]), grows_together_ = GrowsTogether();
    else
      WeighRivals(which);
  }
}

// A rise that something else explains nearly as well is not called growth.
void Weighing::WeighRivals(Part part) {
  Trend& one = trends_[part];
  if (one.course != Course::kGrowing) return;
  // By its rate: a start-up in the first stretch is no part of it.
  const double rise = one.slope * (series_.parts[part].back().x - one.since);
  const double before = last_level(series_.parts[is_count(part) ? part : kPrivatePart]) - rise;
  one.rivals.share = rise / std::max(1.0, before);
  one.rivals.bytes = is_count(part) ? 0 : rise;
  const bool is_own = is_private(part) || part == kPrivatePart;
  const bool was_collected = TellsExactly() ? LargestTells() : TellsLive();
  const Runtime runtime = is_own && !was_collected ? RuntimeOf() : Runtime{};
  if (runtime.name != nullptr && one.cycle == 0)
    one.rivals.nurseries = Nurseries(part, one, std::min(rise, one.rise), runtime);
  one.confidence = leak_confidence(one.rivals);
  const bool may_be_garbage = is_own && TellsLive() && !growing(kLivePart);
  const bool is_guess = part == kLivePart && !WasLookedAt(one, rise);
  if (is_guess || (may_be_garbage && !growing(kBesidePart) && !grows_together_))
    one.confidence = std::min(one.confidence, kNobodyCanTell);
  const bool is_evidence = part == kCachePart || part == kReclaimablePart || part == kNamesPart;
  if (is_evidence || one.confidence >= kSureEnough) return;
  one.course = Course::kUnclear;
  const double span = series_.span, pieces = std::max(1.0, one.rivals.pieces);
  const double for_pieces = span * (kEnoughPieces / pieces - 1);
  const double for_size = (series_.parts[part].back().x - one.since) * (1 / size_of(one.rivals) - 1);
  one.needed_x = std::clamp(std::max(for_pieces, for_size), 0.5 * span, 4 * span);
  if (one.rivals.nurseries > 0 && one.rivals.nurseries < 1 && one.slope > 0)
    one.needed_x = std::max(one.needed_x, one.rise * (1 / one.rivals.nurseries - 1) / one.slope);
}

// What was promoted counts as live until the old generation is collected, which is given room for two
// thirds of what it held (MinHeapFreeRatio): only what rose by more, or fell in between, was looked at; all
// of it where only full collections are counted. More room, that -Xms gives, fills with what each young
// collection found no place for among the survivors.
bool Weighing::WasLookedAt(const Trend& live, double rise) const {
  const double held = last_level(series_.parts[kLivePart]) - rise, times = Collections(live.since);
  const Points& beside = series_.parts[kBesidePart];
  const double heap = last_level(series_.parts[kPrivatePart]) - (beside.empty() ? 0 : last_level(beside));
  const bool are_strays = rise < kStrays * heap * times;
  const bool was_old_collected =
      TellsExactly() || live.cycle > 0 || (rise > kRoomOfOld * held && !are_strays);
  return times >= kFewestCollections && was_old_collected;
}

// A runtime whose heap is known leaves the rest of the process to be judged as any other.
void Weighing::WeighBeside(const Points& points, Trend& one) const {
  if (one.course != Course::kGrowing) return;
  one.rivals.bytes = one.slope * (points.back().x - one.since);
  one.rivals.share =
      one.rivals.bytes / std::max(1.0, last_level(series_.parts[kPrivatePart]) - one.rivals.bytes);
  const double room = RoomBeside(one);
  if (TellsExactly() && room > 0) one.rivals.nurseries = one.rivals.bytes / room;
  one.confidence = leak_confidence(one.rivals);
  if (one.rivals.bytes < room) one.confidence = std::min(one.confidence, kNobodyCanTell);
  // Where what was touched is seen late, memory beside it rises and falls without any collection.
  const bool are_marks = one.rivals.turns > 0 || one.rivals.stairs > 0;
  if (!TellsExactly() && are_marks) one.confidence = std::min(one.confidence, kNobodyCanTell);
  if (!WereLookedAt(one)) one.confidence = std::min(one.confidence, kNotLookedAt);
  if (one.confidence < kSureEnough) one.course = Course::kUnclear;
}

// What is beside the heap may be told as part of it later, buffers that are filled bit by bit for one: then
// neither is a line, and both together are.
bool Weighing::GrowsTogether() const {
  const Points &live = series_.parts[kLivePart], &beside = series_.parts[kBesidePart];
  if (!TellsExactly() || growing(kLivePart) || growing(kBesidePart) || live.empty()) return false;
  Points both;
  auto next = live.begin();
  for (const Point& point : beside) {
    while (next != live.end() && next->x < point.x) ++next;
    if (next == live.end()) break;
    both.push_back({point.x, point.y + next->y});
  }
  Trend together = find_trend(both, material_rise(kBesidePart, series_));
  WeighBeside(both, together);
  return together.course == Course::kGrowing;
}

// Garbage owns native memory too, direct buffers for one, until it is collected.
bool Weighing::WereLookedAt(const Trend& beside) const {
  return TellsExactly() || Collections(beside.since) >= kFewestCollections;
}

// What is not told, or was freed and is kept, is beside the heaps too.
double Weighing::RoomBeside(const Trend& beside) const {
  if (!TellsExactly()) return WereLookedAt(beside) ? kWarmUpOfJvm : kOwnedByGarbage;
  if (!LargestTells()) return RuntimeOf().nursery_bytes;
  return RateBetweenCollections(beside.since) > kOfRate * beside.slope ? 0 : kPooledPages;
}

// What lives is known when it was just collected, and not in between.
void Weighing::WeighCollections() {
  const Points& live = series_.parts[kLivePart];
  Points left;
  double before = 0;
  auto now = live.begin();
  for (const Point& collections : series_.collections) {
    while (now != live.end() && now->x < collections.x) ++now;
    if (now == live.end() || collections.y <= before) continue;
    before = collections.y;
    left.push_back(*now);
  }
  if (!left.empty()) weigh_marks(live, left, material_rise(kLivePart, series_), trends_[kLivePart]);
}

// Pages are freed by collections: how fast what is beyond heaps rises while there is none, nor was just
// now.
double Weighing::RateBetweenCollections(double since) const {
  const Points &beyond = series_.beyond_heaps, &collections = series_.collections;
  const size_t skipped = collections.size() - beyond.size();
  double rise = 0, x = 0;
  for (size_t i = 2; i < beyond.size(); ++i) {
    const bool is_between = collections[skipped + i].y <= collections[skipped + i - 2].y;
    if (!is_between || beyond[i].x < since) continue;
    rise += beyond[i].y - beyond[i - 1].y;
    x += beyond[i].x - beyond[i - 1].x;
  }
  return x > 0 ? rise / x : 0;
}

double Weighing::Collections(double since) const {
  if (!TellsLive()) return 0;
  const auto then = std::find_if(series_.collections.begin(), series_.collections.end(),
                                 [since](const Point& point) { return point.x >= since; });
  return then == series_.collections.end() ? 0 : series_.collections.back().y - then->y;
}

// The rise in nurseries, which the runtime fills before it collects: what it was seen to collect before, if
// that is less than usual.
double Weighing::Nurseries(Part part, const Trend& grown, double rise, const Runtime& runtime) const {
  const Points& points = series_.parts[part];
  const double begin = points.front().x + kWarmUp * (points.back().x - points.front().x);
  double high = 0, fall = 0;
  for (const Point& point : points) {
    if (point.x < begin) continue;
    if (point.x > grown.since) break;
    high = std::max(high, point.y);
    fall = std::max(fall, high - point.y);
  }
  const bool collected = fall > kSeenCollected * runtime.nursery_bytes;
  return rise / (collected ? std::min(fall, runtime.nursery_bytes) : runtime.nursery_bytes);
}

// The process that holds most, or most of those that tell; nothing if there is none.
const Series::Member* Weighing::Largest(bool that_tells) const {
  const Series::Member* largest = nullptr;
  for (const Series::Member& member : series_.members) {
    if (that_tells && !member.tells) continue;
    if (largest == nullptr || member.bytes.back().y > largest->bytes.back().y) largest = &member;
  }
  return largest;
}

// And has no other heap.
bool Weighing::LargestTells() const {
  const Series::Member* largest = Largest();
  return largest != nullptr && largest->tells && !largest->untold;
}

Runtime Weighing::RuntimeOf() const {
  const Series::Member* largest = Largest();
  return largest == nullptr ? Runtime{} : find_runtime(largest->command);
}

const char* Weighing::NameOfTeller() const {
  const Series::Member* teller = Largest(true);
  const char* name = teller == nullptr ? nullptr : find_runtime(teller->command).name;
  return name == nullptr ? "its runtime" : name;
}

}  // namespace plimsoll
