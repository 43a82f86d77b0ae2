# Sourced by tools/run_tests.sh: what `./dev test` does, in order. To add a stage, write a function here and add its
# name to a list. It runs in a shell of its own with `set -euo pipefail`, in the repository's root.
#   status 0: passed; 77: skipped (use `skip REASON`); anything else: failed.
#   If its last line is `N passed, M failed[, K skipped]`, those are its counts; otherwise it counts as one.
# shellcheck shell=bash disable=SC2034

QUICK_STAGES=(build models goldens unit_tests mutations tools_tests
  cli_tests compile_tests train_tests train_torch_tests gradients_torch optimize_tests exec_tests exec_trouble exec_escapes lab_tests watch_tests watch_trouble verdicts corpus_few
  python_tests backend_suite
  conformance references bad_input random_graphs sklearn golden_verify
  include_rule clang_format install wheel)
FULL_STAGES=(references_full random_graphs_full generation train_torch_full train_watch asan mutations_full tsan verdicts_full corpus chaos_full unexplained watch_page train_onnxruntime
  python_leaks_full packages version2 aarch64)
# These watch processes for minutes and compute little: they run beside the others.
WAITING_STAGES=(exec_tests exec_trouble exec_escapes lab_tests watch_tests watch_trouble verdicts corpus_few)

CACHE=${PLIMSOLL_CACHE:-$HOME/.cache/plimsoll}

skip() {
  echo "skipped: $*"
  exit 77
}

# The models of the benchmark set. Without a network those that are not in the cache are counted as skipped.
models() {
  local wrong=0 fetching=
  if need_node; then
    tools/fetch_models.py & # waits for the network, the other for the processor
    fetching=$!
  fi
  if need "${MODEL_PACKAGES[@]}"; then tools/export_models.py || wrong=1; fi
  if [[ $fetching ]]; then
    wait "$fetching" || [[ $? == 77 ]] || wrong=1
  fi
  local missing
  missing=$({ tools/export_models.py --list && tools/fetch_models.py --list; } | grep ' missing$') || true
  [[ -z $missing ]] || echo "$missing"
  # A file in the cache is no test: all models together are one.
  echo "$((!wrong && ${#missing} == 0)) passed, $wrong failed, $(grep -c . <<<"$missing" || true) skipped"
  ((wrong == 0))
}

# ONNX Runtime's answers for them.
goldens() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  need_node || skip "no node"
  tools/make_goldens.py
}

unit_tests() {
  need "${TEST_PACKAGES[@]}" || echo "some tests will skip"
  run_ctest build
}

# mutate PROGRAM N SEED: models with faults, made from ONNX's own small ones, are read, written and run.
mutate() {
  local models
  mapfile -t models < <(find /usr/share/libonnx-testdata -name model.onnx -size -64k 2>/dev/null | sort)
  ((${#models[@]})) || skip "no libonnx-testdata"
  "$1" "$2" "$3" "${models[@]}"
}

mutations() {
  mutate build/tests/plimsoll_mutate 5000 1
}

# Under the address and undefined sanitizers.
mutations_full() {
  cmake --preset asan >/dev/null
  cmake --build build/asan --target plimsoll_mutate
  mutate build/asan/tests/plimsoll_mutate 100000 1
}

# Every case of ctest counts.
run_ctest() {
  local log=$1/ctest.log status=0
  ctest --test-dir "$1" --output-on-failure -j2 --no-tests=error >"$log" 2>&1 || status=$?
  ((status == 0)) || cat "$log"
  # "100% tests passed, 0 tests failed out of 57"; skipped ones are listed as "(Skipped)" further down.
  local failed total skipped
  read -r failed total < <(sed -n 's/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\)/\1 \2/p' "$log") ||
    { cat "$log"; return 1; }
  skipped=$(grep -c '(Skipped)$' "$log") || true
  echo "$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
  return "$status"
}

# Our own scripts: what they claim to catch, they catch.
tools_tests() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tools/test_tools.py
}

# The command, as its users see it.
cli_tests() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/cli/test_cli.py
}

# What `plimsoll compile` writes.
compile_tests() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/cli/test_compile.py
}

# The command trains: told and kept, resumed to the bit, killed, refused.
train_tests() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/cli/test_train.py
}

# Losses of every step beside PyTorch's.
train_torch_tests() {
  need "${MODEL_PACKAGES[@]}" || skip "no python3-torch"
  /usr/bin/python3 tests/train/against_torch.py build/plimsoll --steps 40 mlp gpt lstm
  /usr/bin/python3 tests/train/mixed_precision.py build/plimsoll --steps 40 gpt lstm
  /usr/bin/python3 tests/train/layers.py build/plimsoll
}

# The gradient of every operator that PyTorch has.
gradients_torch() {
  need "${MODEL_PACKAGES[@]}" "${TEST_PACKAGES[@]}" || skip "no python3-torch or python3-onnx"
  /usr/bin/python3 tests/train/gradients_against_torch.py build/plimsoll
}

# Ten thousand steps under `watch`.
train_watch() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  PLIMSOLL_LONG=1 /usr/bin/python3 tests/cli/test_train.py Train.test_ten_thousand_steps_are_flat
}

# Two hundred steps of each, and every optimizer and loss.
train_torch_full() {
  need "${MODEL_PACKAGES[@]}" || skip "no python3-torch"
  /usr/bin/python3 tests/train/against_torch.py build/plimsoll --steps 200
  /usr/bin/python3 tests/train/mixed_precision.py build/plimsoll --steps 200
  /usr/bin/python3 tests/train/rounding.py build/plimsoll
}

# Artifacts, losses and checkpoints beside those of ONNX Runtime's own training, which comes from npm.
train_onnxruntime() {
  need "${PYTHON_PACKAGES[@]}" "${TEST_PACKAGES[@]}" || skip "no pybind11 or no python3-onnx"
  need_node || skip "no node"
  cmake --build build --target plimsoll_python >/dev/null
  /usr/bin/python3 tests/train/onnxruntime_training.py
}

# What `plimsoll optimize` writes is ONNX.
optimize_tests() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-onnx"
  /usr/bin/python3 tests/cli/test_optimize.py
}

watch_tests() {
  /usr/bin/python3 tests/cli/test_watch.py
}

watch_trouble() {
  /usr/bin/python3 tests/cli/test_watch_trouble.py
}

# The page of `plimsoll watch --html` in a real browser, which is large to install.
watch_page() {
  need "${BROWSER_PACKAGES[@]}" || skip "no chromium"
  /usr/bin/python3 tests/cli/test_watch_page.py
}

# plimsoll exec: limits, receipts, and nothing left behind.
exec_tests() {
  /usr/bin/python3 tests/cli/test_exec.py
}

exec_trouble() {
  need strace || echo "fault injection will skip"
  /usr/bin/python3 tests/cli/test_exec_trouble.py
}

# Every way out that a job may try, in every mechanism that this machine has: the table in docs/isolate.md.
exec_escapes() {
  /usr/bin/python3 tests/cli/test_exec_escapes.py
}

# plimsoll lab: the experiments run, and what they say of Plimsoll's own way holds.
lab_tests() {
  /usr/bin/python3 tests/cli/test_lab.py
}

# The Python package, with Debian's Python.
python_tests() {
  need "${PYTHON_PACKAGES[@]}" || skip "no pybind11 or no pytest"
  need "${DOCTOR_PACKAGES[@]}" || echo "tests of the torch doctor will skip"
  cmake --preset release >/dev/null # the build may have been configured before pybind11 was there
  cmake --build build --target plimsoll_python >/dev/null
  run_pytest python/tests
}

# ONNX's own backend tests, all that ship data, through plimsoll.backend.
backend_suite() {
  need "${PYTHON_PACKAGES[@]}" python3-onnx libonnx-testdata || skip "no pybind11 or no python3-onnx"
  PYTHONPATH=build/python /usr/bin/python3 python/tests/backend_suite.py
}

# 100,000 runs, 1,000 sessions, 1,000 exceptions, 10,000 bindings; sixteen threads for a minute. A tenth is in python_tests.
python_leaks_full() {
  need "${PYTHON_PACKAGES[@]}" || skip "no pybind11 or no pytest"
  export PLIMSOLL_LEAK_SHARE=1 PLIMSOLL_THREADS_SECONDS=60
  run_pytest -s python/tests/test_leaks.py
}

# Pools under load whose workers are killed every 100 ms, for a minute: C++, then Python.
chaos_full() {
  PLIMSOLL_CHAOS_SECONDS=60 build/tests/test_isolate --gtest_filter='*ChaosLosesNothing*'
  need "${PYTHON_PACKAGES[@]}" || skip "no pybind11 or no pytest"
  PLIMSOLL_CHAOS_SECONDS=60 /usr/bin/python3 -m pytest -q -s -p no:cacheprovider python/tests/test_pool.py -k chaos
}

# run_pytest ARGUMENTS...: with the reason of every skip; our last line instead of pytest's.
run_pytest() {
  local log status=0
  log=$(mktemp)
  /usr/bin/python3 -m pytest -q -rs -p no:cacheprovider "$@" >"$log" 2>&1 || status=$?
  grep -v '^[.sFEx]* *\[ *[0-9]*%\]$' "$log" || true
  /usr/bin/python3 - "$log" <<'PYTHON'
import re, sys
last = open(sys.argv[1]).read().splitlines()[-1]
count = lambda *words: sum(int(n) for n, word in re.findall(r"(\d+) (\w+)", last) if word in words)
print(f"{count('passed')} passed, {count('failed', 'error', 'errors')} failed, {count('skipped', 'xfailed')} skipped")
PYTHON
  rm "$log"
  return "$status"
}

# Verdicts on a few live programs whose memory behaves in a known way; recorded ones are among the unit tests.
verdicts() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  tests/scenarios/evaluate.py check
}

# All of them, ten seeds each, with the bounds that docs/verdicts.md gives: about half an hour.
verdicts_full() {
  need "${EXAMPLE_PACKAGES[@]}" || echo "families with torch will be skipped"
  tests/scenarios/evaluate.py prove --jobs 10
}

# Six real programs, steady and leaking, shortened to 40 s and all at once.
corpus_few() {
  need_each "${FEW_CORPUS_PACKAGES[@]}" # of what is missing the programs are skipped, by name
  tests/corpus/corpus.py check
}

# All 209 real programs, two minutes and three seeds each, ten at a time: some four hours. What nothing was tuned on, the fifth
# look, is held to bounds.
corpus() {
  need_each "${CORPUS_PACKAGES[@]}" # of what is missing the programs are skipped, by name
  need_node || skip "no node"
  tests/corpus/corpus.py prove
}

# verify_variants VARIANTS... -- ARGUMENTS: `plimsoll verify` once for each variant (a string of options), counts added
# up. Failures are shown as they come, what is not implemented once. COMMAND is how the command is started.
COMMAND=(build/plimsoll)
verify_variants() {
  local variants=() variant log status wrong=0 passed=0 failed=0
  while [[ $1 != -- ]]; do variants+=("$1") && shift; done
  shift
  log=$(mktemp)
  for variant in "${variants[@]}"; do
    status=0
    # shellcheck disable=SC2086
    "${COMMAND[@]}" verify "$@" $variant >"$log" || status=$?
    [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]] || { cat "$log"; rm "$log"; return 1; }
    ((passed += BASH_REMATCH[1], failed += BASH_REMATCH[2])) || true
    ((status == 0)) || wrong=1
    echo "verify ${variant:-(defaults)}: $(tail -n 1 "$log")"
    if [[ $variant == "${variants[0]}" ]]; then head -n -1 "$log"; else grep '^failed ' "$log" || true; fi
  done
  rm "$log"
  echo "$passed passed, $failed failed"
  ((wrong == 0))
}

# Every case of Debian's libonnx-testdata whose operators are implemented, under several truths.
conformance() {
  need "${TEST_PACKAGES[@]}" || skip "no libonnx-testdata"
  local variants=("" "--placer naive" "--poison --check-passes" "--threads 1" "--threads 2" "--isa sse4" "--level none" "--compiled")
  if grep -qw avx2 /proc/cpuinfo; then variants+=("--isa avx2"); fi
  verify_testdata "${variants[@]}"
}

verify_testdata() {
  local data=/usr/share/libonnx-testdata/data
  verify_variants "$@" -- \
    "$data"/node "$data"/pytorch-converted "$data"/pytorch-operator "$data"/simple \
    --contradictory test_adam_multiple # docs/conformance.md
}

# Every operator that is newer than that data, or not ONNX's own, against numpy: tests/reference/README.md.
references() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/reference/run.py
}

references_full() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/reference/run.py --full
}

# The same cases, spoiled: an Error that says what is wrong, or an answer.
bad_input() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/reference/bad_input.py --count 2
}

# Graphs made of those cases: the same answer under every truth.
random_graphs() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/reference/random_graphs.py --count 200
}

random_graphs_full() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  /usr/bin/python3 tests/reference/random_graphs.py --count 10000 --seed 1
}

# Tokens, speech and embeddings of real models, against ONNX Runtime.
generation() {
  need "${TEST_PACKAGES[@]}" || skip "no python3-numpy"
  need_node || skip "no node"
  /usr/bin/python3 tests/generation/compare.py
}

# Pipelines of scikit-learn, written as ONNX from their fitted attributes, predict what scikit-learn predicts.
sklearn() {
  need "${SKLEARN_PACKAGES[@]}" || skip "no python3-sklearn"
  tools/sklearn_pipelines.py
}

# ONNX Runtime's answers on the models of the benchmark set.
golden_verify() {
  [[ -d $CACHE/goldens ]] || skip "no goldens in $CACHE"
  verify_variants --check-passes "--level none" "--placer naive --poison --threads 2 --isa sse4" -- \
    "$CACHE"/goldens --rtol 1e-3 --atol 1e-4
}

build() {
  need "${BUILD_PACKAGES[@]}"
  need "${PYTHON_PACKAGES[@]}" || echo "without the Python package"
  # What later stages install comes while the compiler works; whatever goes wrong with it, they say.
  { need_node && need "${TEST_PACKAGES[@]}" "${MODEL_PACKAGES[@]}" "${DOCTOR_PACKAGES[@]}" "${SKLEARN_PACKAGES[@]}" \
    "${WHEEL_PACKAGES[@]}" "${TYPING_PACKAGES[@]}" "${FEW_CORPUS_PACKAGES[@]}" strace; } >/dev/null 2>&1 &
  cmake --preset release -DPLIMSOLL_TESTS=ON -DPLIMSOLL_INSTRUCTION_SETS=all >/dev/null
  cmake --build build
  wait || true
}

# Real processes: what the account does not explain is at most 2 % or 1 MiB, in both views.
unexplained() {
  need "${PYTHON_PACKAGES[@]}" || skip "no pybind11 or no pytest"
  cmake --build build --target plimsoll_python plimsoll_holder >/dev/null
  tools/unexplained.py
}

include_rule() {
  tools/check_includes.py
}

clang_format() {
  need "${FORMAT_PACKAGES[@]}" || skip "no clang-format-14"
  tools/check_format.sh
}

# A program outside the tree finds the installed library, by CMake and by pkg-config, includes every public header, and runs.
install() {
  need "${INSTALL_PACKAGES[@]}" || skip "no pkg-config"
  local room
  room=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$room'" EXIT
  cmake --install build --prefix "$room/prefix" >/dev/null
  tests/installed/use_library.sh "$room" "$room/prefix"
  "$room/prefix/bin/plimsoll" --version
}

# The wheel in a clean virtual environment that sees Debian's numpy.
wheel() {
  need "${PYTHON_PACKAGES[@]}" "${WHEEL_PACKAGES[@]}" || skip "no pybind11 or no patchelf"
  need "${TYPING_PACKAGES[@]}" || echo "types will not be checked"
  ./dev wheel >/dev/null
  tests/installed/use_wheel.sh build/wheel/*.whl
}

# The Debian packages, by lintian, and in a root that has nothing else.
packages() {
  need "${PYTHON_PACKAGES[@]}" "${DEB_PACKAGES[@]}" "${ROOT_PACKAGES[@]}" || skip "no debootstrap or no lintian"
  ./dev package
  tests/installed/use_packages.sh build/packages
}

asan() {
  cmake --preset asan >/dev/null
  cmake --build build/asan
  PLIMSOLL=build/asan/plimsoll /usr/bin/python3 tests/cli/test_cli.py
  run_ctest build/asan
}

tsan() {
  cmake --preset tsan >/dev/null
  cmake --build build/tsan
  # It would end a forked child that makes threads, which a team does by design (decision 0023) and a test tries.
  TSAN_OPTIONS=die_after_fork=0 run_ctest build/tsan
}

# Live verdicts that are asked for on version 2 too; `missing_names` needs it.
VERSION2_FAMILIES=missing_names,page_cache_log,page_cache_read,small_files,tmpfs_files,sysv_segments,memfd_grows,posix_timers
VERSION2_FAMILIES+=,messages_unread,linear_leak,anonymous_maps,descriptors,threads_blocked,steady,sawtooth,shrinking

# The tests of isolate and observe, verdicts, and the tests of `plimsoll exec`, on a kernel that has version 2 cgroups
# alone. Those of observe run in a cgroup of their own, because the root has no account; what they make is beside it.
version2() {
  need "${GUEST_PACKAGES[@]}" || skip "no qemu-system-x86"
  local log=build/version2.log file status=0 wrong=0 files=()
  for file in test_isolate test_observe isolate_echo_worker sandbox_escape plimsoll_{holder,scenario,record,judge}; do
    files+=(--file "$PWD/build/tests/$file")
  done
  tools/run_in_guest.py --python --memory 4096 --timeout 1800 "${files[@]}" --file "$PWD/build/plimsoll" \
    --file "$PWD/tests" --file "$PWD/docs" --file "$(command -v flock)" --file "$(command -v ipcrm)" \
    --file /usr/lib/systemd/systemd --file "$(command -v systemd-run)" -- "
    cd $PWD; export GTEST_COLOR=no
    build/tests/test_isolate --gtest_filter=-*Chaos*
    echo '[  SKIPPED ] 1 test, *Chaos*: it counts what a fast machine does in seconds'
    /usr/bin/python3 tests/cli/test_exec.py
    /usr/bin/python3 tests/cli/test_exec_trouble.py
    /usr/bin/python3 tests/cli/test_exec_v2.py
    mkdir -p /run/systemd/system # else systemd's user manager does not start
    /usr/bin/python3 tests/cli/test_exec_scope.py
    /usr/bin/python3 tests/cli/test_exec_escapes.py
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/observe
    echo \$\$ >/sys/fs/cgroup/observe/cgroup.procs
    build/tests/test_observe
    /usr/bin/python3 tests/scenarios/evaluate.py check --jobs 4 --seconds 12 --families $VERSION2_FAMILIES" \
    >"$log" 2>&1 || status=$?
  ((status != 77)) || { cat "$log"; exit 77; }
  grep -E '^\[  (FAILED|SKIPPED)|^(FAIL|ERROR|failed|skipped):' "$log" || true
  # Two summaries of GoogleTest's and six of ours.
  local passed failed skipped
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\?.*/\1/p; s/^\([0-9]*\) passed, .*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
  failed=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) tests\?,.*/\1/p; s/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
  skipped=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests\?,.*/\1/p; s/^[0-9]* passed, .*, \([0-9]*\) skipped/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
  [[ $(grep -c 'PASSED  \]\|^[0-9]* passed, ' "$log") == 8 ]] || { tail -n 40 "$log"; wrong=1; }
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0 && wrong == 0))
}

# For aarch64, with Debian's cross compiler: ONNX's cases, then the unit tests, under qemu-user. It says nothing about time.
aarch64() {
  need "${BUILD_PACKAGES[@]}" "${AARCH64_PACKAGES[@]}" "${TEST_PACKAGES[@]}" || skip "no g++-aarch64-linux-gnu or no qemu-user"
  local root log=build/aarch64/stage.log wrong=0
  root=$(tools/aarch64_root.sh) || skip "no arm64 packages"
  cmake --preset aarch64 >/dev/null
  cmake --build build/aarch64
  COMMAND=(qemu-aarch64 -L "$root" build/aarch64/plimsoll)
  verify_testdata "" "--placer naive --poison --check-passes --threads 2" "--level none" >"$log" || wrong=1
  run_ctest build/aarch64 >>"$log" || wrong=1
  cat "$log"
  echo "skipped, by reason:"
  grep -h -A 1 ': Skipped$' build/aarch64/Testing/Temporary/LastTest.log | grep -v -e ': Skipped$' -e '^--$' | sort | uniq -c || true
  sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1 \2 \4/p' "$log" |
    awk '{p += $1; f += $2; s += $3} END {printf "%d passed, %d failed, %d skipped\n", p, f, s}'
  ((wrong == 0))
}
