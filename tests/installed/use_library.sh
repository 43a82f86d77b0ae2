#!/usr/bin/env bash
# use_library.sh ROOM [PREFIX]: builds and runs a program against the installed library, by find_package and by pkg-config.
# ROOM is a folder for it; without PREFIX the library is where the system has it. From the repository's root.
set -euo pipefail
room=$1 prefix=${2:-}
architecture=$(gcc -print-multiarch)
if [[ $prefix ]]; then
  export CMAKE_PREFIX_PATH=$prefix PKG_CONFIG_PATH=$prefix/lib/$architecture/pkgconfig
  export LD_LIBRARY_PATH=$prefix/lib/$architecture
fi
cp -r tests/installed/consumer "$room/consumer"
cp examples/run_model.cpp "$room/consumer/main.cpp"
cmake -G Ninja -S "$room/consumer" -B "$room/build" >/dev/null
cmake --build "$room/build"
"$room/build/consumer" examples/digits.onnx | grep 'digit 1;'
"$room/build/moved_over" examples/digits.onnx
read -ra flags < <(pkg-config --cflags --libs plimsoll)
g++ -std=c++20 examples/run_model.cpp -o "$room/by_pkg_config" "${flags[@]}"
"$room/by_pkg_config" examples/digits.onnx | grep 'held after the session: 0 bytes'
