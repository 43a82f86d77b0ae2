#include "observe/verdict_series.h"

#include <algorithm>
#include <cmath>

namespace plimsoll {

namespace {

constexpr size_t kMostPoints = 480;        // more are joined: neighbours become their medians
constexpr double kNameBytes = 192;         // the kernel's struct dentry
constexpr int64_t kFewestIterations = 20;  // fewer are no measure

std::array<double, kPartCount> figures_of(const Sample& sample) {
  const ProcessView& process = sample.process;
  const auto number = [](int64_t value) { return static_cast<double>(std::max<int64_t>(value, 0)); };
  std::array<double, kPartCount> figures{};
  figures[kHeapPart] = number(process.heap_bytes + process.allocator_bytes - process.malloc_map_bytes);
  figures[kMapsPart] = number(process.anonymous_bytes + process.malloc_map_bytes);
  figures[kStacksPart] = number(process.stack_bytes);
  figures[kWrittenPart] = number(process.private_file_bytes);
  figures[kPrivatePart] =
      figures[kHeapPart] + figures[kMapsPart] + figures[kStacksPart] + figures[kWrittenPart];
  figures[kMappedPart] = number(process.shared_file_bytes);
  figures[kSharedPart] = number(process.shared_memory_bytes);
  figures[kForkSharedPart] = number(process.fork_shared_bytes);
  figures[kDescriptorsPart] = number(process.descriptors);
  figures[kThreadsPart] = number(process.threads - process.processes);
  figures[kMappingsPart] = number(process.mappings);
  figures[kProcessesPart] = number(process.processes);
  if (sample.container) {
    const ContainerView& container = *sample.container;
    figures[kSharedPart] = std::max(figures[kSharedPart], number(container.shared_memory_bytes));
    figures[kSlabPart] =
        number(container.slab_bytes - container.slab_reclaimable_bytes + container.other_kernel_bytes);
    figures[kCachePart] = number(container.page_cache_bytes);
    figures[kReclaimablePart] = number(container.slab_reclaimable_bytes);
    figures[kNamesPart] = kNameBytes * number(container.unused_names);
  }
  return figures;
}

struct Row {
  double seconds = 0;
  double iteration = 0;
  std::array<double, kPartCount> figures{};
};

// A process that ends while it is read leaves a sample with a part of its maps.
void drop_torn_end(std::vector<Row>& rows) {
  if (rows.size() < 2) return;
  const double before = rows[rows.size() - 2].figures[kMappingsPart];
  if (rows.back().figures[kMappingsPart] < 0.5 * before) rows.pop_back();
}

// Iterations only count up: one that is lower than before began again from 0. Time that runs backwards is a
// clock's mistake: what was read then is left out.
std::vector<Row> clean(std::span<const Sample> samples, Series& series) {
  std::vector<Row> rows;
  int64_t last_iteration = -1;
  double counted = 0;
  bool after_gap = false;
  for (const Sample& sample : samples) {
    if (sample.gap || !std::isfinite(sample.seconds)) {
      ++series.gaps;
      after_gap = true;
      continue;
    }
    if (!rows.empty() && sample.seconds <= rows.back().seconds) continue;
    if (sample.iteration >= 0) {
      const int64_t before = sample.iteration >= last_iteration ? std::max<int64_t>(last_iteration, 0) : 0;
      counted += static_cast<double>(sample.iteration - before);
      last_iteration = sample.iteration;
    }
    const Row row{sample.seconds, counted, figures_of(sample)};
    const bool restarted =
        after_gap && !rows.empty() && row.figures[kPrivatePart] < 0.5 * rows.back().figures[kPrivatePart];
    if (restarted) rows.clear();
    after_gap = false;
    if (sample.container) {
      series.has_container = true;
      series.knows_reclaimable |= sample.container->version == 2;
    }
    rows.push_back(row);
  }
  drop_torn_end(rows);
  return rows;
}

// Iterations measure growth if they were counted for a good part of the time. What was read before the first
// of them is start-up, and left out then.
bool use_iterations(std::vector<Row>& rows) {
  const auto first = std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.iteration > 0; });
  if (rows.end() - first < 2 || rows.back().iteration - first->iteration < kFewestIterations) return false;
  std::ptrdiff_t moving = 0;
  for (auto row = first + 1; row != rows.end(); ++row) moving += row->iteration > (row - 1)->iteration;
  if (moving * 3 < rows.end() - first) return false;
  rows.erase(rows.begin(), first);
  return true;
}

}  // namespace

Series make_series(std::span<const Sample> samples) {
  Series series;
  std::vector<Row> rows = clean(samples, series);
  series.by_iteration = use_iterations(rows);
  series.samples = rows.size();
  if (rows.empty()) return series;
  series.seconds = rows.back().seconds - rows.front().seconds;
  const auto x_of = [&](const Row& row) { return series.by_iteration ? row.iteration : row.seconds; };
  series.span = x_of(rows.back()) - x_of(rows.front());
  const size_t joined = (rows.size() + kMostPoints - 1) / kMostPoints;
  std::vector<double> values;
  for (size_t part = 0; part < kPartCount; ++part) {
    Points& points = series.parts[part];
    for (size_t i = 0; i < rows.size(); i += joined) {
      values.clear();
      const size_t end = std::min(i + joined, rows.size());
      for (size_t k = i; k < end; ++k) values.push_back(rows[k].figures[part]);
      points.push_back({x_of(rows[(i + end - 1) / 2]), joined == 1 ? values[0] : quantile(values, 0.5)});
    }
  }
  return series;
}

}  // namespace plimsoll
