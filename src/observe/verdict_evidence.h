// Sentences with figures, for the verdict.
#pragma once

#include <string>
#include <vector>

#include "observe/verdict_runtimes.h"
#include "observe/verdict_series.h"

namespace plimsoll {

std::string say_too_short(const Series& series, size_t fewest_samples, double minimum_seconds);
std::string say_growth(Part part, const Trend& trend, const Series& series);
std::string say_count(Part part, const Trend& trend, const Series& series);
std::string say_slowing(Part part, const Trend& trend, const Series& series);
std::string say_plateau(Part part, const Trend& trend, const Series& series);
std::string say_flat(const Trend& trend, const Series& series);
std::string say_undecided(Part part, const Trend& trend, const Series& series);
std::string say_process_does_not(const Trend& trend, const Series& series);
std::string say_names(double names_slope, double slope, const Series& series);
std::string say_copies(const Series& series, double lost_bytes, double rise_bytes, double left_bytes);
std::string say_retention(const Trend& trend, double jump_share);
// How the other explanations of a rise do.
std::string say_rivals(const GrowthRivals& rivals, const Runtime& runtime);
// `is_room`: it is sure that what rises beside it is none of that.
std::string say_live(const char* runtime, const Trend& live, double collections, bool is_room,
                     const Series& series);
std::string say_reachable();
// What grows is beside the heap of a runtime that collects.
std::string say_beside(const char* runtime, const Trend& live, double collections, const Series& series);
std::string say_grower(const GrowingProcess& grower, const Series& series);
// What is inference, and what would turn it into a finding.
void say_what_it_means(Cause cause, const Series& series, std::vector<std::string>& evidence);

}  // namespace plimsoll
