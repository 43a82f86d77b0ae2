#!/usr/bin/env bash
# use_wheel.sh WHEEL: installs it into a clean virtual environment, without an index, and uses it from there.
set -euo pipefail
wheel=$(readlink -f "$1")
here=$PWD
room=$(mktemp -d)
# shellcheck disable=SC2064
trap "rm -rf '$room'" EXIT
/usr/bin/python3 -m venv --system-site-packages "$room/env"
export PATH="$room/env/bin:$PATH"
unset PYTHONPATH LD_LIBRARY_PATH
pip install -q --no-index --disable-pip-version-check "$wheel"
cd "$room" # nothing of the tree
[[ $(command -v plimsoll) == "$room/env/bin/plimsoll" ]]
plimsoll run "$here/examples/digits.onnx" --dim batch=1 | grep -q 'told'
# Everything it needs beyond the C and C++ libraries is its own.
for binary in env/bin/plimsoll env/lib/python3.11/site-packages/plimsoll/*.so; do
  foreign=$(ldd "$binary" | grep -v "$room\|linux-vdso\|ld-linux\|/lib\(c\|m\|dl\|rt\|pthread\|stdc++\|gcc_s\)\.so") || true
  [[ -z $foreign ]] || { echo "$binary also needs: $foreign" >&2; exit 1; }
done
python "$here/tests/installed/use_package.py" "$here/examples"
if command -v mypy >/dev/null; then
  python "$here/tests/installed/every_name.py" >every_name_used.py
  mypy --strict --config-file "$here/tests/installed/mypy.ini" --cache-dir "$room/mypy" --python-executable "$room/env/bin/python" every_name_used.py
else
  echo "skipped: types, no mypy"
fi
pip uninstall -q -y plimsoll
[[ ! -e env/bin/plimsoll && ! -e env/lib/python3.11/site-packages/plimsoll && ! -e env/lib/python3.11/site-packages/plimsoll.libs ]]
ls -l "$wheel" | awk '{print $NF ": " $5 " bytes"}'
