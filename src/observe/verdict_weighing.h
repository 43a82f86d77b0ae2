// How sure each part's growth is: its trend, weighed against its rivals and against what runtimes tell of
// their heaps.
#pragma once

#include <array>

#include "observe/verdict_runtimes.h"
#include "observe/verdict_series.h"

namespace plimsoll {

class Weighing {
 public:
  static constexpr double kFewestCollections = 3;  // fewer tell nothing

  explicit Weighing(const Series& series);  // which outlives it

  const Trend& trend(Part part) const { return trends_[part]; }
  bool growing(Part part) const { return trends_[part].course == Course::kGrowing; }

  bool TellsLive() const { return !series_.collections.empty(); }
  // Not an upper bound of what lives.
  bool TellsExactly() const { return series_.is_exact; }
  double Collections(double since) const;
  Runtime RuntimeOf() const;  // of the process that holds most
  const char* NameOfTeller() const;

 private:
  void WeighRivals(Part part);
  void WeighBeside(const Points& points, Trend& beside) const;
  bool GrowsTogether() const;
  void WeighCollections();
  bool WasLookedAt(const Trend& live, double rise) const;
  bool WereLookedAt(const Trend& beside) const;
  double RoomBeside(const Trend& beside) const;
  double RateBetweenCollections(double since) const;
  double Nurseries(Part part, const Trend& grown, double rise, const Runtime& runtime) const;
  const Series::Member* Largest(bool that_tells = false) const;
  bool LargestTells() const;

  const Series& series_;
  std::array<Trend, kPartCount> trends_;
  bool grows_together_ = false;  // what lives and what is beside the heap
};

}  // namespace plimsoll
