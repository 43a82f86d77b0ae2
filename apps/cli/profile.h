// Where the time of a run goes.
#pragma once

#include <plimsoll/peaks.h>
#include <plimsoll/session.h>

#include <string>
#include <vector>

#include "report.h"

namespace plimsoll::cli {

class Profile {
 public:
  // `entries` are sums over `runs` runs.
  Profile(const std::vector<Session::ProfileEntry>& entries, size_t runs, const Peaks& peaks, int threads);

  // All operators and the worst nodes, per run. Worst is what loses the most time against the roof: the time
  // that its arithmetic, or its bytes if that is longer, would take at the peak of the threads it has.
  std::string text() const;
  Json json() const;

 private:
  struct Row {
    std::string name, op;
    double ms = 0;
    double share = 0;
    int64_t count = 0;
    double gflops = 0;     // per second; 0: not known
    double gigabytes = 0;  // likewise; of its inputs and outputs
    double of_peak = 0;    // the time at the roof over its time
    double lost_ms() const { return ms * (1 - of_peak); }
  };
  static std::vector<Row> sorted(std::vector<Row> rows);

  // What reading so many bytes a run could do at most; caches are faster than memory.
  double gigabytes_per_second(double bytes) const;
  // All its runs at the roof.
  double least_ms(const Session::ProfileEntry& entry) const;

  std::vector<Row> operators_, nodes_;
  Peaks peaks_;  // of one core
  int threads_;
};

}  // namespace plimsoll::cli
