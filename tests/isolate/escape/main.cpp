// escape NAME [ARGUMENTS...]: exit code 0 if the attempt succeeded, 1 if it was refused, 2 if there is none
// of that name. Prints which, and why.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "attempts.h"

namespace escape {

bool opened(long descriptor) {
  if (descriptor < 0) return false;
  close(static_cast<int>(descriptor));
  return true;
}

std::string temporary(const std::string& name) {
  const char* directory = std::getenv("TMPDIR");
  return std::string(directory != nullptr ? directory : "/tmp") + "/" + name;
}

bool passed_permission(long result) {
  return result >= 0 || (errno != EPERM && errno != EACCES && errno != ENOSYS);
}

}  // namespace escape

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (const auto& attempts :
       {escape::file_attempts(), escape::network_attempts(), escape::process_attempts(),
        escape::kernel_attempts(), escape::namespace_attempts()}) {
    for (const escape::Attempt& attempt : attempts) {
      if (std::strcmp(attempt.name, argv[1]) != 0) continue;
      errno = 0;
      const bool out = attempt.run(escape::Arguments(argv + 2, argv + argc));
      std::printf("%s: %s\n", attempt.name, out ? "succeeded" : std::strerror(errno));
      return out ? 0 : 1;
    }
  }
  std::printf("no attempt '%s'\n", argv[1]);
  return 2;
}
