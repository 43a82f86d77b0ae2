// The pages of our own code.
#pragma once

namespace plimsoll {

// Lets the code that was needed so far leave this process: what runs next comes back from the file as it is
// reached. Reading and rewriting a model takes megabytes of code that runs have no use for. Pages that
// somebody wrote to, such as a debugger, stay. Does nothing where /proc does not tell which these are.
void drop_code_pages() noexcept;

}  // namespace plimsoll
