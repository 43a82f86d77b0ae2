// The verdict: trends of all parts, weighed against each other. docs/verdicts.md has the method and how often
// it is right.

#include <algorithm>
#include <cmath>

#include "observe/verdict_evidence.h"
#include "observe/verdict_parts.h"
#include "observe/verdict_rivals.h"
#include "observe/verdict_weighing.h"

namespace plimsoll {

namespace {

constexpr double kKiB = 1024;
constexpr double kFewNames = 1.5 * 1024 * 1024;  // bytes: a few thousand files
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
  Judging(const Series& series, const JudgeOptions& options)
      : series_(series), options_(options), weighed_(series) {}

  Verdict Decide() {
    if (series_.seconds < options_.minimum_seconds || series_.samples < kFewestPoints) return TooShort();
    if (CopiesAfterFork()) return verdict_;
    if (Leaks()) return verdict_;
    if (FillsCache()) return verdict_;
    Settled();
    return verdict_;
  }

 private:
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

  const Trend& trend(Part part) const { return weighed_.trend(part); }
  bool growing(Part part) const { return weighed_.growing(part); }

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

  // So little of it may be names after all, which the rest of the machine, forgetting its own, hides.
  bool MayBeNames() const {
    const bool is_little = trend(kSlabPart).rivals.bytes < kFewNames && !series_.knows_reclaimable;
    const bool is_counted = growing(kDescriptorsPart) || growing(kThreadsPart) || growing(kProcessesPart);
    return growing(kSlabPart) && is_little && !is_counted && NamesAreForgotten() == Names::kNo;
  }

  bool KernelMemoryLeaks() const {
    return growing(kSlabPart) && !KeepsBooksOfCache() && !MayBeNames() && NamesAreForgotten() == Names::kNo;
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
    verdict_.evidence.push_back(say_rivals(*verdict_.rivals, weighed_.RuntimeOf()));
    if (worst == kPartCount || worst == kLivePart || is_private(worst)) NameGrower();
    Draw(worst == kPartCount ? blamed : measured);
    if (worst == kLivePart)
      verdict_.evidence.push_back(say_reachable());
    else if (beside)
      verdict_.evidence.push_back(
          say_beside(weighed_.NameOfTeller(), trend(kLivePart), weighed_.Collections(0), series_));
    else
      say_what_it_means(verdict_.cause, series_, verdict_.evidence);
    return true;
  }

  // What a heap keeps is the part to name, not the process's memory that it is in, unless more than that
  // grows.
  bool LivesOn() const {
    const bool more_beside = growing(kBesidePart) && trend(kBesidePart).slope > trend(kLivePart).slope;
    return weighed_.TellsExactly() && growing(kLivePart) && !more_beside;
  }

  // A heap of which only bounds are known takes new pages for garbage too: then what is beside it is
  // measured.
  bool GrowsBeside() const {
    const bool more_lives = growing(kLivePart) && trend(kLivePart).slope >= trend(kBesidePart).slope;
    return !weighed_.TellsExactly() && growing(kBesidePart) && !more_lives;
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
    bool beside_private = false;
    for (const Part part : {kPrivatePart, kMappedPart, kSharedPart, kSlabPart, kLivePart}) {
      const Trend& one = trend(part);
      if (one.total_rise > trend(most).total_rise) most = part;
      if (one.course == Course::kSlowing && (slowing == kPartCount || one.rise > trend(slowing).rise))
        slowing = part;
      const bool is_unclear =
          one.course == Course::kUnclear && (part == kPrivatePart || one.rise > material_rise(part, series_));
      if (!is_unclear) continue;
      if (part != kPrivatePart) beside_private = true;
      if (unclear == kPartCount || one.confidence > trend(unclear).confidence) unclear = part;
    }
    if (unclear == kPrivatePart && !beside_private && IsRoomForGarbage()) return RoomForGarbage();
    if (unclear != kPartCount) return Undecided(unclear);
    const bool cannot_tell = NamesAreForgotten() == Names::kCannotTell || MayBeNames();
    if (cannot_tell && !KeepsBooksOfCache()) return CannotTellNames();
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
    const bool was_looked_at =
        weighed_.TellsExactly() || weighed_.Collections(0) >= Weighing::kFewestCollections;
    return was_looked_at && stays(trend(kLivePart)) && stays(trend(kBesidePart));
  }

  void RoomForGarbage() {
    Set(VerdictKind::kPlateau, Cause::kAllocatorRetention, trend(kPrivatePart));
    verdict_.confidence = 0.9;
    verdict_.evidence.push_back(say_live(weighed_.NameOfTeller(), trend(kLivePart), weighed_.Collections(0),
                                         /*is_room=*/true, series_));
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
    if (weighed_.TellsLive() && part == kPrivatePart)
      verdict_.evidence.push_back(say_live(weighed_.NameOfTeller(), trend(kLivePart), weighed_.Collections(0),
                                           /*is_room=*/false, series_));
    Draw(part);
    if (one.rivals.pieces == 0 && one.rivals.turns == 0 && one.rivals.stairs == 0) return;
    verdict_.rivals = one.rivals;
    verdict_.confidence = one.confidence;
    verdict_.evidence.push_back(say_rivals(one.rivals, weighed_.RuntimeOf()));
  }

  void CannotTellNames() {
    Set(VerdictKind::kUndecided, Cause::kNone, trend(kSlabPart));
    verdict_.evidence.push_back(say_growth(kSlabPart, trend(kSlabPart), series_));
    if (MayBeNames())
      say_what_it_means(Cause::kSlab, series_, verdict_.evidence);
    else
      verdict_.evidence.push_back(say_names(NamesSlope(), trend(kSlabPart).slope, series_));
  }

  static constexpr size_t kFewestPoints = 12;
  const Series& series_;
  const JudgeOptions& options_;
  Weighing weighed_;
  Verdict verdict_;
};

}  // namespace

Verdict Judge(std::span<const Sample> samples, const JudgeOptions& options) {
  const Series series = make_series(samples);
  return Judging(series, options).Decide();
}

}  // namespace plimsoll
