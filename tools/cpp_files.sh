#!/usr/bin/env bash
# All our C++ files, NUL-separated.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
find include src apps python tests bench examples \( -name '*.h' -o -name '*.cpp' \) -print0 2>/dev/null || true
