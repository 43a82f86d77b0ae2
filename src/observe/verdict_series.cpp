#include "observe/verdict_series.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "observe/verdict_parts.h"

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
  for (const TreeMember& member : sample.members) figures[kLivePart] += number(member.live_bytes);
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

int64_t heap_of(const TreeMember& member) {
  return std::max(member.heap_bytes, member.touched_bytes);
}

// While a child lives that was forked just now, half of each page is counted as its own; it is often gone
// before it is read. The pages of the largest process alone are there in any case.
void count_largest_whole(const Sample& sample, std::array<double, kPartCount>& figures) {
  if (sample.process.proportional == 0 || sample.members.empty()) return;
  const auto largest = static_cast<double>(sample.members.front().bytes);
  if (figures[kPrivatePart] <= 0 || largest <= figures[kPrivatePart]) return;
  const double factor = largest / figures[kPrivatePart];
  for (const Part part : {kHeapPart, kMapsPart, kStacksPart, kWrittenPart, kPrivatePart})
    figures[part] *= factor;
}

struct Row {
  double seconds = 0;
  double iteration = 0;
  std::array<double, kPartCount> figures{};
  const std::vector<TreeMember>* members = nullptr;
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
    Row row{sample.seconds, counted, figures_of(sample), &sample.members};
    count_largest_whole(sample, row.figures);
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

// The first seconds are sampled faster than the rest: there as many are left out.
void even_out(std::vector<Row>& rows) {
  constexpr size_t kFewRows = 40;  // all of which are needed
  if (rows.size() < kFewRows) return;
  std::vector<double> steps;
  for (size_t i = 1; i < rows.size(); ++i) steps.push_back(rows[i].seconds - rows[i - 1].seconds);
  const double least = 0.7 * quantile(std::move(steps), 0.5);
  std::vector<Row> kept;
  for (const Row& row : rows) {
    if (kept.empty() || row.seconds - kept.back().seconds >= least) kept.push_back(row);
  }
  rows = std::move(kept);
}

constexpr double kOfImportance = 0.04;  // of the tree's private memory: smaller processes do not matter

void add_members(const std::vector<Row>& rows, const std::function<double(const Row&)>& x_of,
                 Series& series) {
  std::map<int, Series::Member> all;
  double most = 0;
  for (const Row& row : rows) {
    most = std::max(most, row.figures[kPrivatePart]);
    for (const TreeMember& member : *row.members) {
      Series::Member& one = all[member.pid];
      one.pid = member.pid;
      one.command = member.command;
      one.bytes.push_back({x_of(row), static_cast<double>(member.bytes)});
      one.tells |= member.live_bytes >= 0;
      one.untold |= member.untold_heaps > 0;
    }
  }
  int came = 0, ended = 0;
  const double begin = x_of(rows.front()), end = x_of(rows.back()), near = 0.03 * (end - begin);
  for (auto& [pid, member] : all) {
    double largest = 0;
    for (const Point& point : member.bytes) largest = std::max(largest, point.y);
    if (largest < kOfImportance * most) continue;
    const bool is_new = member.bytes.front().x > begin + near, is_gone = member.bytes.back().x < end - near;
    came += is_new;
    ended += is_gone;
    if (is_gone) series.turnover = std::max(series.turnover, member.bytes.back().x - member.bytes.front().x);
    if (member.bytes.size() >= 3) series.members.push_back(std::move(member));
  }
  if (came < 2 || ended < 2) series.turnover = 0;
}

// Whether there were collections enough, for long enough, and lately: a program that leaves its runtime no
// time to tell, or whose heap is too large to be asked, is judged from outside.
bool is_known(const Points& collections) {
  constexpr size_t kFewest = 4;
  constexpr double kOfTime = 0.4, kOverdue = 0.25;
  Points marks;
  for (const Point& point : collections) {
    if (point.y > (marks.empty() ? 0 : marks.back().y)) marks.push_back(point);
  }
  const double span = collections.back().x - collections.front().x;
  return marks.size() >= kFewest && marks.back().x - marks.front().x >= kOfTime * span &&
         collections.back().x - marks.back().x <= kOverdue * span;
}

// What runtimes tell, from the first time on. A runtime that was too busy to tell holds what it told last.
void add_collections(std::vector<Row>& rows, const std::function<double(const Row&)>& x_of, Series& series) {
  std::map<int, TreeMember> last;
  bool exact = true, bounded = true;
  for (Row& row : rows) {
    double count = 0, live = 0, heaps = 0;
    for (const TreeMember& member : *row.members) {
      if (member.live_bytes >= 0) last.insert_or_assign(member.pid, member);
      const auto told = last.find(member.pid);
      if (told == last.end()) continue;
      const int64_t heap_bytes = heap_of(told->second);
      exact &= told->second.heap_bytes >= 0;
      bounded &= heap_bytes >= 0;
      count += static_cast<double>(told->second.collections);
      live += static_cast<double>(told->second.live_bytes);
      heaps += static_cast<double>(heap_bytes);
    }
    row.figures[kLivePart] = live;
    series.collections.push_back({x_of(row), count});
    if (!last.empty()) series.beyond_heaps.push_back({x_of(row), row.figures[kPrivatePart] - heaps});
  }
  if (!bounded) series.beyond_heaps.clear();
  series.is_exact = exact && !last.empty();
  const bool is_unknown = exact && !is_known(series.collections);
  if (!last.empty() && !is_unknown) return;
  series.is_exact = false;
  series.collections.clear();
  series.beyond_heaps.clear();
  for (Row& row : rows) row.figures[kLivePart] = 0;
}

// What lives is known at full collections. Between two of them it went from one to the other, nobody knows
// how: by a line.
void know_at_collections(const Points& collections, Points& live) {
  Points marks;
  double before = 0;
  auto point = live.begin();
  for (const Point& collected : collections) {
    while (point != live.end() && point->x < collected.x) ++point;
    if (point == live.end() || collected.y <= before) continue;
    before = collected.y;
    if (marks.empty() || marks.back().x < point->x) marks.push_back(*point);
  }
  if (marks.size() < 2) return;
  std::erase_if(live, [&](const Point& one) { return one.x < marks.front().x || one.x > marks.back().x; });
  size_t next = 1;
  for (Point& one : live) {
    while (next + 1 < marks.size() && marks[next].x < one.x) ++next;
    const Point &from = marks[next - 1], &to = marks[next];
    one.y = from.y + (to.y - from.y) * (one.x - from.x) / (to.x - from.x);
  }
}

// As many as other parts have.
Points some_of(const Points& points) {
  const size_t each = (points.size() + kMostPoints - 1) / kMostPoints;
  Points some;
  for (size_t i = 0; i < points.size(); i += each) some.push_back(points[i]);
  return some;
}

// Before the first collection nothing was told, and all of it is beyond heaps.
void begin_with_first(Points& points, const Points& collections) {
  const auto first = std::find_if(collections.begin(), collections.end(),
                                  [](const Point& collected) { return collected.y > 0; });
  if (first == collections.end()) return;
  std::erase_if(points, [first](const Point& point) { return point.x < first->x; });
}

}  // namespace

Series make_series(std::span<const Sample> samples) {
  Series series;
  std::vector<Row> rows = clean(samples, series);
  series.by_iteration = use_iterations(rows);
  series.samples = rows.size();
  if (rows.empty()) return series;
  even_out(rows);
  series.seconds = rows.back().seconds - rows.front().seconds;
  const auto x_of = [&](const Row& row) { return series.by_iteration ? row.iteration : row.seconds; };
  series.span = x_of(rows.back()) - x_of(rows.front());
  add_members(rows, x_of, series);
  add_collections(rows, x_of, series);
  for (const Row& row : rows) series.clock.push_back({x_of(row), row.seconds});
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
  if (series.is_exact) {
    know_at_collections(series.collections, series.parts[kLivePart]);
    begin_with_first(series.beyond_heaps, series.collections);
  }
  series.parts[kBesidePart] = some_of(series.beyond_heaps);
  return series;
}

double seconds_at(const Series& series, double x) {
  const Points& clock = series.clock;
  if (clock.empty()) return 0;
  const auto after = std::lower_bound(clock.begin(), clock.end(), x,
                                      [](const Point& point, double at) { return point.x < at; });
  if (after == clock.begin()) return after->y;
  if (after == clock.end()) return clock.back().y;
  const Point& before = *(after - 1);
  return before.y + (x - before.x) / (after->x - before.x) * (after->y - before.y);
}

std::optional<double> FigureOf(const Sample& sample, std::string_view part) {
  std::array<double, kPartCount> figures = figures_of(sample);
  count_largest_whole(sample, figures);
  figures[kBesidePart] = figures[kPrivatePart];
  for (const TreeMember& member : sample.members)
    figures[kBesidePart] -= static_cast<double>(std::max<int64_t>(heap_of(member), 0));
  for (size_t one = 0; one < kPartCount; ++one) {
    if (!part.empty() && part == part_name(static_cast<Part>(one))) return figures[one];
  }
  return std::nullopt;
}

}  // namespace plimsoll
