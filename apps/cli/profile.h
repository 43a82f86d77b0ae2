// Where the time of a run goes.
#pragma once

#include <plimsoll/session.h>

#include <string>
#include <vector>

#include "report.h"

namespace plimsoll::cli {

class Profile {
 public:
  // `entries` are sums over `runs` runs.
  Profile(const std::vector<Session::ProfileEntry>& entries, size_t runs);

  // All operators and the nodes that take the most, per run.
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
  };
  static std::vector<Row> sorted(std::vector<Row> rows);

  std::vector<Row> operators_, nodes_;
};

}  // namespace plimsoll::cli
