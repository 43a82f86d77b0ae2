#include "observe/verdict_parts.h"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr double kKiB = 1024, kMiB = 1024 * 1024;

}  // namespace

bool is_private(Part part) {
  return part == kHeapPart || part == kMapsPart || part == kStacksPart || part == kWrittenPart;
}

Cause cause_of(Part part) {
  switch (part) {
    case kHeapPart:
    case kLivePart:
      return Cause::kLiveHeap;
    case kWrittenPart:
      return Cause::kCopyOnWrite;
    case kMapsPart:
      return Cause::kAnonymousMaps;
    case kStacksPart:
    case kThreadsPart:
      return Cause::kThreadStacks;
    case kMappedPart:
      return Cause::kMappedFiles;
    case kSharedPart:
      return Cause::kSharedMemory;
    case kSlabPart:
    case kReclaimablePart:
      return Cause::kSlab;
    case kCachePart:
      return Cause::kPageCache;
    case kDescriptorsPart:
      return Cause::kDescriptors;
    case kProcessesPart:
      return Cause::kProcesses;
    default:
      return Cause::kNone;
  }
}

double last_level(const Points& points) {
  std::vector<double> values;
  for (size_t i = points.size() - std::min<size_t>(points.size(), 9); i < points.size(); ++i) {
    values.push_back(points[i].y);
  }
  return quantile(std::move(values), 0.5);
}

double material_rise(Part part, const Series& series) {
  const double level = last_level(series.parts[kPrivatePart]);
  switch (part) {
    case kDescriptorsPart:
      return 12;
    case kThreadsPart:
    case kProcessesPart:
      return 4;
    case kMappingsPart:
      return 24;
    case kSlabPart:
    case kReclaimablePart:
      return 512 * kKiB;
    case kCachePart:
      return std::max(2 * kMiB, 0.02 * level);
    case kMappedPart:
    case kLivePart:
      return std::max(1 * kMiB, 0.01 * level);
    default:
      return std::max(640 * kKiB, 0.004 * level);
  }
}

bool is_count(Part part) {
  return part >= kDescriptorsPart;
}

const char* part_name(Part part) {
  switch (part) {
    case kHeapPart:
      return "heap";
    case kMapsPart:
      return "anonymous maps";
    case kStacksPart:
      return "stacks";
    case kWrittenPart:
      return "private file";
    case kPrivatePart:
      return "private";
    case kMappedPart:
      return "shared file";
    case kSharedPart:
      return "shared memory";
    case kSlabPart:
      return "kernel memory";
    case kCachePart:
      return "page cache";
    case kReclaimablePart:
      return "reclaimable slab";
    case kLivePart:
      return "live";
    case kBesidePart:
      return "beside the heap";
    case kDescriptorsPart:
      return "descriptors";
    case kThreadsPart:
      return "threads";
    case kMappingsPart:
      return "mappings";
    case kProcessesPart:
      return "processes";
    default:
      return "";
  }
}

}  // namespace plimsoll
