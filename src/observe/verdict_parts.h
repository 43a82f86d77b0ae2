// What the parts of a series are: their names, what each one's growth is called, and how much of it counts.
#pragma once

#include "observe/verdict_series.h"

namespace plimsoll {

bool is_private(Part part);
bool is_count(Part part);  // of processes, threads and the like: a collector has no part in it
Cause cause_of(Part part);
const char* part_name(Part part);  // short, for JSON and the page
double last_level(const Points& points);
// A rise of a part that is worth speaking of: beyond what allocators and the kernel's counters do by
// themselves.
double material_rise(Part part, const Series& series);

}  // namespace plimsoll
