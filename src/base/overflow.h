// What checked.h throws: those who know which node asked for such a size say so.
#pragma once

#include "plimsoll/error.h"

namespace plimsoll {

class Overflow : public Error {
 public:
  using Error::Error;
};

}  // namespace plimsoll
