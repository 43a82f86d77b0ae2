#!/usr/bin/env bash
# Names the C++ files that clang-format would change; fails if there are any.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
if ! complaints=$(tools/cpp_files.sh | xargs -0 -r clang-format-14 --dry-run -Werror 2>&1); then
  sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error:.*/\1/p' <<<"$complaints" | sort | uniq -c
  echo "not formatted; run ./dev format"
  exit 1
fi
