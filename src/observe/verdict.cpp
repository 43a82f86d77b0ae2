// The verdict: trends of all parts, weighed against each other. docs/verdicts.md has the method and how often
// it is right.

#include <algorithm>
#include <cmath>

#include "observe/verdict_evidence.h"
#include "observe/verdict_parts.h"
#include "observe/verdict_rivals.h"
#include "observe/verdict_runtimes.h"

namespace plimsoll {

namespace {

constexpr double kKiB = 1024;
constexpr double kSureEnough = 0.8;     // below it a rise is not called a leak
constexpr double kNobodyCanTell = 0.7;  // of what a collector has not looked at, at most
constexpr double kFewestCollections = 3;
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
constexpr size_t kJumps = 4;
constexpr double kJumpShare = 0.7;  // of a rise that came in so few jumps: allocated at once, not bit by bit

constexpr Part kLeakParts[] = {kHeapPart,   kMapsPart,   kStacksPart, kWrittenPart,
                               kMappedPart, kSharedPart, kSlabPart,   kLivePart};

// The share of a part's rise that came in a few jumps from one sample to the next.
double jump_share(const Points& points) {
  std::vector<double> steps;
  for (size_t i = 1; i < points.size(); ++i) steps.push_back(points[i].y - points[i - 1].y);
  std::sort(steps.rbegin(), steps.rend());
  double jumps = 0;
  for (size_t i = 0; i < std::min(kJumps, steps.size()); ++i) jumps += std::max(0.0, steps[i]);
  const double rise = last_level(points) - points.front().y;
  return rise > 0 ? jumps / rise : 0;
}

class Judging {
 public:
  Judging(const Series& series, const JudgeOptions& options) : series_(series), options_(options) {
    // What a collector left is asked first: the rest is weighed by it.
    for (size_t i = 0; i < kPartCount; ++i) {
      const size_t part = (i + kLivePart) % kPartCount;
      const auto which = static_cast<Part>(part);
      const bool turns = is_private(which) || which == kPrivatePart || which == kMappedPart;
      trends_[part] =
          find_trend(series.parts[part], material_rise(which, series), turns ? series.turnover : 0);
      if (which == kLivePart) WeighCollections();
      if (which == kBesidePart)
        WeighBeside();
      else
        WeighRivals(which);
    }
  }

  Verdict Decide() {
    if (series_.seconds < options_.minimum_seconds || series_.samples < kFewestPoints) return TooShort();
    if (CopiesAfterFork()) return verdict_;
    if (Leaks()) return verdict_;
    if (FillsCache()) return verdict_;
    Settled();
    return verdict_;
  }

 private:
  // A rise that something else explains nearly as well is not called growth.
  void WeighRivals(Part part) {
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
    if (is_guess || (may_be_garbage && !growing(kBesidePart)))
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
  bool WasLookedAt(const Trend& live, double rise) const {
    const double held = last_level(series_.parts[kLivePart]) - rise, times = Collections(live.since);
    const Points& beside = series_.parts[kBesidePart];
    const double heap = last_level(series_.parts[kPrivatePart]) - (beside.empty() ? 0 : last_level(beside));
    const bool are_strays = rise < kStrays * heap * times;
    const bool was_old_collected =
        TellsExactly() || live.cycle > 0 || (rise > kRoomOfOld * held && !are_strays);
    return times >= kFewestCollections && was_old_collected;
  }

  // A runtime whose heap is known leaves the rest of the process to be judged as any other.
  void WeighBeside() {
    Trend& one = trends_[kBesidePart];
    if (one.course != Course::kGrowing) return;
    one.rivals.bytes = one.slope * (series_.parts[kBesidePart].back().x - one.since);
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

  // Garbage owns native memory too, direct buffers for one, until it is collected.
  bool WereLookedAt(const Trend& beside) const {
    return TellsExactly() || Collections(beside.since) >= kFewestCollections;
  }

  // What is not told, or was freed and is kept, is beside the heaps too.
  double RoomBeside(const Trend& beside) const {
    if (!TellsExactly()) return WereLookedAt(beside) ? kWarmUpOfJvm : kOwnedByGarbage;
    if (!LargestTells()) return RuntimeOf().nursery_bytes;
    return RateBetweenCollections(beside.since) > kOfRate * beside.slope ? 0 : kPooledPages;
  }

  // What lives is known when it was just collected, and not in between.
  void WeighCollections() {
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
  double RateBetweenCollections(double since) const {
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

  bool TellsLive() const { return !series_.collections.empty(); }
  // Not an upper bound of what lives.
  bool TellsExactly() const { return series_.is_exact; }
  double Collections(double since) const {
    if (!TellsLive()) return 0;
    const auto then = std::find_if(series_.collections.begin(), series_.collections.end(),
                                   [since](const Point& point) { return point.x >= since; });
    return then == series_.collections.end() ? 0 : series_.collections.back().y - then->y;
  }

  // The rise in nurseries, which the runtime fills before it collects: what it was seen to collect before, if
  // that is less than usual.
  double Nurseries(Part part, const Trend& grown, double rise, const Runtime& runtime) const {
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
  const Series::Member* Largest(bool that_tells = false) const {
    const Series::Member* largest = nullptr;
    for (const Series::Member& member : series_.members) {
      if (that_tells && !member.tells) continue;
      if (largest == nullptr || member.bytes.back().y > largest->bytes.back().y) largest = &member;
    }
    return largest;
  }

  // And has no other heap.
  bool LargestTells() const {
    const Series::Member* largest = Largest();
    return largest != nullptr && largest->tells && !largest->untold;
  }

  Runtime RuntimeOf() const {
    const Series::Member* largest = Largest();
    return largest == nullptr ? Runtime{} : find_runtime(largest->command);
  }

  const char* NameOfTeller() const {
    const Series::Member* teller = Largest(true);
    const char* name = teller == nullptr ? nullptr : find_runtime(teller->command).name;
    return name == nullptr ? "its runtime" : name;
  }

  // In a tree, the process that grows most.
  void NameGrower() {
    if (series_.members.size() < 2) return;
    const Series::Member* most = nullptr;
    double steepest = 0;
    for (const Series::Member& member : series_.members) {
      const double slope = median_slope(member.bytes);
      const double weight = slope * (member.bytes.back().x - member.bytes.front().x);
      if (weight > steepest) steepest = weight, most = &member;
    }
    if (most == nullptr) return;
    const double seconds_per_x = series_.span > 0 ? series_.seconds / series_.span : 1;
    verdict_.grower = GrowingProcess{most->pid, most->command, median_slope(most->bytes) / seconds_per_x,
                                     static_cast<int64_t>(most->bytes.front().y),
                                     static_cast<int64_t>(most->bytes.back().y)};
    verdict_.evidence.push_back(say_grower(*verdict_.grower, series_));
  }

  void Draw(Part part) {
    verdict_.part = part_name(part);
    for (const CurvePoint& point : fit_curve(series_.parts[part], trend(part))) {
      verdict_.curve.push_back(
          {seconds_at(series_, point.x), point.y, point.y - point.margin, point.y + point.margin});
    }
  }

  const Trend& trend(Part part) const { return trends_[part]; }
  bool growing(Part part) const { return trends_[part].course == Course::kGrowing; }

  Verdict TooShort() {
    verdict_.kind = VerdictKind::kUndecided;
    const double step = series_.samples > 1 ? series_.seconds / static_cast<double>(series_.samples - 1) : 1;
    const double for_samples =
        series_.samples < kFewestPoints ? static_cast<double>(kFewestPoints - series_.samples) * step : 0;
    verdict_.seconds_needed = std::max({options_.minimum_seconds - series_.seconds, for_samples, 0.1});
    verdict_.evidence.push_back(say_too_short(series_, kFewestPoints, options_.minimum_seconds));
    return verdict_;
  }

  void Set(VerdictKind kind, Cause cause, const Trend& of) {
    verdict_.kind = kind;
    verdict_.cause = cause;
    const double seconds_per_x = series_.span > 0 ? series_.seconds / series_.span : 1;
    verdict_.bytes_per_second = of.slope / seconds_per_x;
    if (series_.by_iteration) verdict_.bytes_per_iteration = of.slope;
    verdict_.low = of.low;
    verdict_.high = of.high;
  }

  // A part that rises only because another falls moved from there.
  bool Moved(Part part) const {
    if (!is_private(part)) return false;
    double fallen = 0;
    for (const Part other : {kHeapPart, kMapsPart, kStacksPart, kWrittenPart}) {
      if (other != part) fallen -= std::min(0.0, trend(other).slope);
    }
    return fallen > 0.5 * trend(part).slope;
  }

  // The kernel keeps books of the files it caches: nodes, extents, inodes, names. They go when the cache
  // goes. Where it does not tell what can be reclaimed, kernel memory that grows more slowly than the cache
  // is taken for that.
  bool KeepsBooksOfCache() const {
    const double share = series_.knows_reclaimable ? 0.1 : 1;
    return trend(kSlabPart).slope < share * trend(kCachePart).slope;
  }

  // Every file that is made and deleted, or only looked for, leaves its name in the kernel's memory until
  // that is short. Version 1 does not tell it from what cannot be reclaimed, but counts such names, if for
  // the whole machine.
  enum class Names { kNo, kExplainIt, kCannotTell };
  Names NamesAreForgotten() const {
    constexpr double kMostOfIt = 0.6, kNotMuchMore = 1.6;
    const double slope = trend(kSlabPart).slope, names = NamesSlope();
    if (!growing(kSlabPart) || names < kMostOfIt * slope) return Names::kNo;
    return names < kNotMuchMore * slope ? Names::kExplainIt : Names::kCannotTell;
  }

  // Over the time in which kernel memory grew. The whole machine's names come and go: they have no trend of
  // their own.
  double NamesSlope() const {
    Points meanwhile;
    for (const Point& point : series_.parts[kNamesPart]) {
      if (point.x >= trend(kSlabPart).since) meanwhile.push_back(point);
    }
    return median_slope(meanwhile);
  }

  bool KernelMemoryLeaks() const {
    return growing(kSlabPart) && !KeepsBooksOfCache() && NamesAreForgotten() == Names::kNo;
  }

  // After a fork pages are shared until one side writes: a rise that takes no more than the shared ones lose.
  bool CopiesAfterFork() {
    const Points& shared = series_.parts[kForkSharedPart];
    const Points& held = series_.parts[kPrivatePart];
    const auto most = std::max_element(shared.begin(), shared.end(),
                                       [](const Point& a, const Point& b) { return a.y < b.y; });
    if (most == shared.end() || most->y < 2 * material_rise(kPrivatePart, series_)) return false;
    const double lost = most->y - last_level(shared);
    const double rise = last_level(held) - held[static_cast<size_t>(most - shared.begin())].y;
    const bool explains = rise > material_rise(kPrivatePart, series_) && lost > 0.7 * rise;
    if (!explains || GrowsByItself(most->x)) return false;
    const Course course = trend(kPrivatePart).course;
    const bool over = course == Course::kStopped || course == Course::kFlat;
    Set(over ? VerdictKind::kPlateau : VerdictKind::kWarmingUp, Cause::kCopyOnWrite, trend(kPrivatePart));
    verdict_.confidence = 0.9;
    verdict_.evidence.push_back(say_copies(series_, lost, rise, last_level(shared)));
    return true;
  }

  // Copying a page changes what a process shares, not how much it holds: whose own pages became more grew.
  bool GrowsByItself(double since) const {
    for (const Series::Member& member : series_.members) {
      const auto then = std::find_if(member.bytes.begin(), member.bytes.end(),
                                     [since](const Point& point) { return point.x >= since; });
      if (then == member.bytes.end()) continue;
      if (last_level(member.bytes) - then->y > material_rise(kPrivatePart, series_)) return true;
    }
    return false;
  }

  bool Leaks() {
    Part worst = kPartCount;
    int in_private = 0;
    for (const Part part : kLeakParts) {
      if (!growing(part) || Moved(part) || (part == kSlabPart && !KernelMemoryLeaks())) continue;
      in_private += is_private(part) && !trend(part).slight;
      if (worst == kPartCount || trend(part).slope > trend(worst).slope) worst = part;
    }
    if (worst != kPartCount && is_private(worst) && LivesOn()) worst = kLivePart;
    const bool beside = GrowsBeside() && (worst == kPartCount || is_private(worst));
    const bool only_together = worst == kPartCount && (growing(kPrivatePart) || beside);
    if (only_together) worst = LargestPrivate();
    const bool descriptors = growing(kDescriptorsPart), threads = growing(kThreadsPart);
    if (worst == kPartCount && !descriptors && !threads) return false;
    Part blamed = worst;
    if (growing(kProcessesPart)) {
      blamed = kProcessesPart;
    } else if (threads && (worst == kPartCount || is_private(worst) || worst == kSlabPart)) {
      blamed = kThreadsPart;
    } else if (descriptors && HeldByDescriptors(worst)) {
      blamed = kDescriptorsPart;
    }
    const bool several = only_together || (worst != kPartCount && is_private(worst) && in_private > 1 &&
                                           growing(kPrivatePart));
    const Part measured = beside                ? kBesidePart
                          : several             ? kPrivatePart
                          : worst == kPartCount ? kSlabPart
                                                : worst;
    Set(VerdictKind::kLeak, cause_of(blamed), trend(measured));
    const Trend& shown = trend(worst == kPartCount ? blamed : measured);
    verdict_.confidence = shown.confidence;
    verdict_.rivals = shown.rivals;
    for (const Part part : {worst, blamed, measured}) {
      const bool is_heap = beside && part == worst;
      if (part == kPartCount || is_heap || trend(part).confidence <= verdict_.confidence) continue;
      verdict_.confidence = trend(part).confidence;
      verdict_.rivals = trend(part).rivals;
    }
    if (worst != kPartCount) verdict_.evidence.push_back(say_growth(measured, shown, series_));
    for (const Part count : {kDescriptorsPart, kThreadsPart, kMappingsPart, kProcessesPart}) {
      if (growing(count)) verdict_.evidence.push_back(say_count(count, trend(count), series_));
    }
    verdict_.evidence.push_back(say_rivals(*verdict_.rivals, RuntimeOf()));
    if (worst == kPartCount || worst == kLivePart || is_private(worst)) NameGrower();
    Draw(worst == kPartCount ? blamed : measured);
    if (worst == kLivePart)
      verdict_.evidence.push_back(say_reachable());
    else if (beside)
      verdict_.evidence.push_back(say_beside(NameOfTeller(), trend(kLivePart), Collections(0), series_));
    else
      say_what_it_means(verdict_.cause, series_, verdict_.evidence);
    return true;
  }

  // What a heap keeps is the part to name, not the process's memory that it is in, unless more than that
  // grows.
  bool LivesOn() const {
    const bool more_beside = growing(kBesidePart) && trend(kBesidePart).slope > trend(kLivePart).slope;
    return TellsExactly() && growing(kLivePart) && !more_beside;
  }

  // A heap of which only bounds are known takes new pages for garbage too: then what is beside it is
  // measured.
  bool GrowsBeside() const {
    const bool more_lives = growing(kLivePart) && trend(kLivePart).slope >= trend(kBesidePart).slope;
    return !TellsExactly() && growing(kBesidePart) && !more_lives;
  }

  // A descriptor costs the kernel, and the language that wraps it, a few kilobytes; what holds much more than
  // that is to blame itself.
  bool HeldByDescriptors(Part worst) const {
    if (worst == kPartCount || worst == kSlabPart) return true;
    const double each = trend(worst).slope / std::max(1e-12, trend(kDescriptorsPart).slope);
    return worst == kHeapPart && each < 32 * kKiB;
  }

  Part LargestPrivate() const {
    Part largest = kHeapPart;
    for (const Part part : {kMapsPart, kStacksPart, kWrittenPart}) {
      if (trend(part).slope > trend(largest).slope) largest = part;
    }
    return largest;
  }

  bool FillsCache() {
    if (!series_.has_container) return false;
    for (const Part part : {kCachePart, kReclaimablePart, kSlabPart}) {
      if (part == kSlabPart && NamesAreForgotten() != Names::kExplainIt) continue;
      const Trend& cache = trend(part);
      const bool rises = cache.course == Course::kGrowing ||
                         (cache.course != Course::kFlat && cache.rise > material_rise(part, series_));
      if (!rises || cache.rise < 2 * trend(kPrivatePart).rise || cache.rise < 2 * trend(kMappedPart).rise)
        continue;
      Set(VerdictKind::kCache, cause_of(part), cache);
      verdict_.confidence = cache.course == Course::kGrowing ? 0.95 : 0.8;
      verdict_.evidence.push_back(say_growth(part, cache, series_));
      if (part == kSlabPart)
        verdict_.evidence.push_back(say_names(NamesSlope(), trend(kSlabPart).slope, series_));
      verdict_.evidence.push_back(say_process_does_not(trend(kPrivatePart), series_));
      say_what_it_means(verdict_.cause, series_, verdict_.evidence);
      return true;
    }
    return false;
  }

  // Nothing grows for ever. What rose most tells the rest.
  void Settled() {
    Part most = kPrivatePart;
    Part slowing = kPartCount, unclear = kPartCount;
    for (const Part part : {kPrivatePart, kMappedPart, kSharedPart, kSlabPart, kLivePart}) {
      const Trend& one = trend(part);
      if (one.total_rise > trend(most).total_rise) most = part;
      if (one.course == Course::kSlowing && (slowing == kPartCount || one.rise > trend(slowing).rise))
        slowing = part;
      if (one.course == Course::kUnclear && (part == kPrivatePart || one.rise > material_rise(part, series_)))
        unclear = part;
    }
    if (unclear == kPrivatePart && IsRoomForGarbage()) return RoomForGarbage();
    if (unclear != kPartCount) return Undecided(unclear);
    if (NamesAreForgotten() == Names::kCannotTell && !KeepsBooksOfCache()) return CannotTellNames();
    if (slowing != kPartCount) return WarmingUp(slowing);
    const Trend& top = trend(most);
    const double worth =
        std::max(2 * material_rise(most, series_), 0.04 * last_level(series_.parts[kPrivatePart]));
    if (top.total_rise > worth) return Plateau(most);
    Set(VerdictKind::kFlat, Cause::kNone, trend(kPrivatePart));
    verdict_.confidence = 0.95;
    verdict_.evidence.push_back(say_flat(trend(kPrivatePart), series_));
  }

  // What lives was looked at again and again and stays, and the rest of the process does too.
  bool IsRoomForGarbage() const {
    const auto stays = [](const Trend& one) {
      return one.course == Course::kFlat || one.course == Course::kStopped;
    };
    const bool was_looked_at = TellsExactly() || Collections(0) >= kFewestCollections;
    return was_looked_at && stays(trend(kLivePart)) && stays(trend(kBesidePart));
  }

  void RoomForGarbage() {
    Set(VerdictKind::kPlateau, Cause::kAllocatorRetention, trend(kPrivatePart));
    verdict_.confidence = 0.9;
    verdict_.evidence.push_back(
        say_live(NameOfTeller(), trend(kLivePart), Collections(0), /*is_room=*/true, series_));
    Draw(kPrivatePart);
  }

  Part Within(Part part) const {  // the kind of private memory that rose most
    if (part != kPrivatePart) return part;
    Part largest = kHeapPart;
    for (const Part one : {kMapsPart, kStacksPart, kWrittenPart}) {
      if (trend(one).total_rise > trend(largest).total_rise) largest = one;
    }
    return largest;
  }

  // What came in jumps was allocated at once: by a request whose memory the allocator kept, most likely.
  Cause SettledCause(Part inner, double jumps) const {
    if (!is_private(inner)) return cause_of(inner);
    if (trend(kThreadsPart).total_rise > material_rise(kThreadsPart, series_)) return Cause::kThreadStacks;
    return inner == kHeapPart && jumps > kJumpShare ? Cause::kAllocatorRetention : cause_of(inner);
  }

  void Stays(VerdictKind kind, Part part, double confidence, std::string evidence) {
    const Part inner = Within(part);
    const double jumps = jump_share(series_.parts[inner]);
    Set(kind, SettledCause(inner, jumps), trend(part));
    verdict_.confidence = confidence;
    verdict_.evidence.push_back(std::move(evidence));
    Draw(part);
    if (verdict_.cause == Cause::kAllocatorRetention) {
      verdict_.evidence.push_back(say_retention(trend(inner), std::min(1.0, jumps)));
    }
  }

  void WarmingUp(Part part) {
    Stays(VerdictKind::kWarmingUp, part, 0.8, say_slowing(part, trend(part), series_));
  }

  void Plateau(Part part) {
    Stays(VerdictKind::kPlateau, part, 0.9, say_plateau(Within(part), trend(Within(part)), series_));
  }

  void Undecided(Part part) {
    const Trend& one = trend(part);
    Set(VerdictKind::kUndecided, Cause::kNone, one);
    const double seconds_per_x = series_.span > 0 ? series_.seconds / series_.span : 1;
    verdict_.seconds_needed = std::max(1.0, one.needed_x * seconds_per_x);
    verdict_.evidence.push_back(say_undecided(part, one, series_));
    if (TellsLive() && part == kPrivatePart)
      verdict_.evidence.push_back(
          say_live(NameOfTeller(), trend(kLivePart), Collections(0), /*is_room=*/false, series_));
    Draw(part);
    if (one.rivals.pieces == 0 && one.rivals.turns == 0 && one.rivals.stairs == 0) return;
    verdict_.rivals = one.rivals;
    verdict_.confidence = one.confidence;
    verdict_.evidence.push_back(say_rivals(one.rivals, RuntimeOf()));
  }

  void CannotTellNames() {
    Set(VerdictKind::kUndecided, Cause::kNone, trend(kSlabPart));
    verdict_.evidence.push_back(say_growth(kSlabPart, trend(kSlabPart), series_));
    verdict_.evidence.push_back(say_names(NamesSlope(), trend(kSlabPart).slope, series_));
  }

  static constexpr size_t kFewestPoints = 12;
  const Series& series_;
  const JudgeOptions& options_;
  std::array<Trend, kPartCount> trends_;
  Verdict verdict_;
};

}  // namespace

Verdict Judge(std::span<const Sample> samples, const JudgeOptions& options) {
  const Series series = make_series(samples);
  return Judging(series, options).Decide();
}

}  // namespace plimsoll
