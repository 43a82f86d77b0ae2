// A job's receipt, for programs and for people.
#pragma once

#include <plimsoll/isolate.h>

#include "report.h"

namespace plimsoll::cli {

Json receipt_json(const Receipt& receipt);
std::string receipt_text(const Receipt& receipt);

}  // namespace plimsoll::cli
