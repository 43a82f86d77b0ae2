#include "observe/verdict_evidence.h"

#include <fmt/core.h>

#include <cmath>

#include "observe/verdict_rivals.h"

namespace plimsoll {

namespace {

constexpr double kMostTimes = 20;  // what it held: there was as good as nothing before

const char* name_of(Part part) {
  switch (part) {
    case kHeapPart:
      return "the heap (brk and the allocators' arenas)";
    case kMapsPart:
      return "anonymous maps (mmap, and malloc's blocks of 128 KiB and more)";
    case kStacksPart:
      return "stacks";
    case kWrittenPart:
      return "written copies of mapped files";
    case kPrivatePart:
      return "private memory";
    case kMappedPart:
      return "pages of mapped files";
    case kSharedPart:
      return "shared memory";
    case kSlabPart:
      return "the container's kernel memory";
    case kCachePart:
      return "the container's page cache";
    case kReclaimablePart:
      return "the container's reclaimable slab";
    case kLivePart:
      return "what collections leave of the heap";
    case kBesidePart:
      return "memory beside the heap that is collected";
    case kDescriptorsPart:
      return "open descriptors";
    case kThreadsPart:
      return "threads";
    case kMappingsPart:
      return "mappings";
    case kProcessesPart:
      return "processes";
    default:
      return "memory";
  }
}

std::string bytes_text(double bytes) {
  const double size = std::abs(bytes);
  if (size >= 1024.0 * 1024 * 1024) return fmt::format("{:.2f} GiB", bytes / (1024.0 * 1024 * 1024));
  if (size >= 1024.0 * 1024) return fmt::format("{:.1f} MiB", bytes / (1024.0 * 1024));
  if (size >= 1024) return fmt::format("{:.1f} KiB", bytes / 1024);
  return fmt::format("{:.0f} bytes", bytes);
}

double seconds_of(double x, const Series& series) {
  return series.span > 0 ? x * series.seconds / series.span : 0;
}

// "in 8.4 s (3120 iterations)"
std::string period_text(double x, const Series& series) {
  if (!series.by_iteration) return fmt::format("in {:.1f} s", x);
  return fmt::format("in {:.1f} s ({:.0f} iterations)", seconds_of(x, series), x);
}

const char* unit_of(const Series& series) {
  return series.by_iteration ? "iteration" : "second";
}

// ", 19.5 KiB per iteration (19.0 KiB to 20.0 KiB)": the median of all slopes, which a jump or a pause does
// not move; where the rise did, the two are told apart.
std::string rate_text(const Trend& trend, const Series& series) {
  const double mean = trend.seen_x > 0 ? trend.rise / trend.seen_x : trend.slope;
  return fmt::format(", {}{} per {} ({} to {})",
                     mean < trend.low || mean > trend.high ? "for the most part " : "",
                     bytes_text(trend.slope), unit_of(series), bytes_text(trend.low), bytes_text(trend.high));
}

}  // namespace

std::string say_too_short(const Series& series, size_t fewest_samples, double minimum_seconds) {
  return fmt::format("{} samples over {:.1f} s can be used, and a verdict needs {} samples and {:.1f} s{}",
                     series.samples, series.seconds, fewest_samples, minimum_seconds,
                     series.gaps > 0 ? fmt::format(" ({} gaps left out)", series.gaps) : "");
}

std::string say_growth(Part part, const Trend& trend, const Series& series) {
  return fmt::format(
      "{} grew by {} {}{}, in {} of {} stretches{}", name_of(part), bytes_text(trend.rise),
      period_text(trend.seen_x, series), rate_text(trend, series), trend.rising_stretches, trend.stretches,
      trend.cycle > 0 ? fmt::format("; measured between collections, which are up to {:.1f} s apart",
                                    seconds_of(trend.cycle, series))
                      : "");
}

std::string say_count(Part part, const Trend& trend, const Series& series) {
  return fmt::format("{} rose by {:.0f} {}, {:.3g} per {}", name_of(part), trend.rise,
                     period_text(trend.seen_x, series), trend.slope, unit_of(series));
}

std::string say_slowing(Part part, const Trend& trend, const Series& series) {
  return fmt::format("{} still rises, by {} {}, but its rate fell to {:.0f} % of what it was", name_of(part),
                     bytes_text(trend.rise), period_text(trend.seen_x, series),
                     100 * std::max(0.0, trend.late_share));
}

std::string say_plateau(Part part, const Trend& trend, const Series& series) {
  const bool has_tail = trend.seen_x > 0;
  return fmt::format("{} rose by {} and then stayed: {} now, {} at most{}", name_of(part),
                     bytes_text(trend.total_rise), bytes_text(trend.level), bytes_text(trend.peak),
                     has_tail ? fmt::format(", lately {} in {:.1f} s", bytes_text(trend.rise),
                                            seconds_of(trend.seen_x, series))
                              : "");
}

std::string say_flat(const Trend& trend, const Series& series) {
  return fmt::format(
      "private memory stays at {} over {:.1f} s (at most {}, change {}){}", bytes_text(trend.level),
      series.seconds, bytes_text(trend.peak), bytes_text(trend.total_rise),
      trend.cycle > 0
          ? fmt::format("; it rises and falls, up to {:.1f} s apart", seconds_of(trend.cycle, series))
          : "");
}

std::string say_undecided(Part part, const Trend& trend, const Series& series) {
  if (trend.cycle > 0 && trend.stretches == 0) {
    return fmt::format(
        "{} rises and falls with up to {:.1f} s between two lows: {:.1f} s show too few of them",
        name_of(part), seconds_of(trend.cycle, series), series.seconds);
  }
  return fmt::format(
      "{} lately rose by {} in {:.1f} s, in {} of {} stretches, at {:.0f} % of the rate before: "
      "neither steady nor over",
      name_of(part), bytes_text(trend.rise), seconds_of(trend.seen_x, series), trend.rising_stretches,
      trend.stretches, 100 * trend.late_share);
}

std::string say_process_does_not(const Trend& trend, const Series& series) {
  return fmt::format("the processes' private memory does not grow with it: {} now, change {} over {:.1f} s",
                     bytes_text(trend.level), bytes_text(trend.total_rise), series.seconds);
}

std::string say_names(double names_slope, double slope, const Series& series) {
  return fmt::format(
      "inference: meanwhile names of files that nobody uses any more, which the kernel can forget, took {} "
      "more per {} in "
      "the whole machine: these {} may be some of them; --reclaim tells",
      bytes_text(names_slope), unit_of(series), bytes_text(slope));
}

std::string say_copies(const Series& series, double lost_bytes, double rise_bytes, double left_bytes) {
  return fmt::format(
      "after a fork private memory rose by {} while pages shared by parent and child fell by {}: "
      "they are copied as they are written; {} are left to copy, watched for {:.1f} s",
      bytes_text(rise_bytes), bytes_text(lost_bytes), bytes_text(left_bytes), series.seconds);
}

std::string say_retention(const Trend& trend, double jump_share) {
  return fmt::format(
      "inference: {:.0f} % of it came in a few jumps and the level ({}) was not passed since: freed memory "
      "that the "
      "allocator keeps looks so, and so does something large that was loaded once; --trim tells",
      100 * jump_share, bytes_text(trend.level));
}

std::string say_rivals(const GrowthRivals& rivals, const Runtime& runtime) {
  if (rivals.stairs > 0)
    return fmt::format(
        "it came in {:.0f} stairs, each left when it was full at the same rate, and the next is not overdue",
        rivals.stairs);
  if (rivals.turns > 0)
    return fmt::format(
        "it was collected {:.0f} times: after each more was left than before, and it reached higher",
        rivals.turns);
  std::string text = fmt::format(
      "a line explains the rise with {:.0f} %, a curve that levels off with {:.0f} %; it came in about "
      "{:.0f} "
      "steps, lately at {:.0f} % of its mean rate",
      100 * rivals.line, 100 * (1 - rivals.line), std::max(1.0, rivals.pieces), 100 * rivals.recent);
  if (size_of(rivals) < 1)
    text += fmt::format("; {} are {:.1f} % of what it held", bytes_text(rivals.bytes), 100 * rivals.share);
  if (log_largeness(rivals) > 0)
    text += rivals.share < kMostTimes
                ? fmt::format("; {} are {:.1f} times what it held", bytes_text(rivals.bytes), rivals.share)
                : fmt::format("; {} are nearly all that it holds", bytes_text(rivals.bytes));
  if (rivals.nurseries > 0)
    text += fmt::format("; {} lets its heap grow before it collects, and no collection was seen in it",
                        runtime.name);
  return text;
}

std::string say_live(const char* runtime, const Trend& live, double collections, bool is_room,
                     const Series& series) {
  return fmt::format(
      "{} says that {} were left at its last collection, a change of {} over {:.1f} s and {:.0f} "
      "collections: what rises is{} room for garbage",
      runtime, bytes_text(live.level), bytes_text(live.total_rise), series.seconds, collections,
      is_room ? "" : ", so far,");
}

std::string say_reachable() {
  return "the collector does not take it: something still refers to these objects, and a snapshot of the "
         "heap names it";
}

std::string say_beside(const char* runtime, const Trend& live, double collections, const Series& series) {
  return fmt::format(
      "{} says that its heap is not what grows: {} were left at its last collection, a change of {} over "
      "{:.1f} s and {:.0f} collections; beside it are direct and native buffers, classes, compiled code and "
      "stacks",
      runtime, bytes_text(live.level), bytes_text(live.total_rise), series.seconds, collections);
}

std::string say_grower(const GrowingProcess& grower, const Series& series) {
  return fmt::format(
      "of {} processes that were followed, process {} ({}) grows most: {} to {}, {} per second",
      series.members.size(), grower.pid, grower.command, bytes_text(static_cast<double>(grower.first_bytes)),
      bytes_text(static_cast<double>(grower.last_bytes)), bytes_text(grower.bytes_per_second));
}

void say_what_it_means(Cause cause, const Series& series, std::vector<std::string>& evidence) {
  switch (cause) {
    case Cause::kLiveHeap:
      evidence.push_back(
          "inference: the heap's lowest level rises without end, so blocks are not freed (or in an "
          "order that leaves no page empty); --trim tells the two apart");
      break;
    case Cause::kSlab:
      if (series.has_container && !series.knows_reclaimable) {
        evidence.push_back(
            "cgroup version 1 does not tell which slab can be reclaimed: names and inodes of many "
            "files would go under pressure; --reclaim tells");
      }
      break;
    case Cause::kPageCache:
      evidence.push_back("page cache goes under pressure; --reclaim shows it");
      break;
    default:
      break;
  }
}

}  // namespace plimsoll
