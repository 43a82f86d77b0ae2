#!/usr/bin/env bash
# ./dev test [--full] [STAGE...]: runs the stages of tools/test_stages.sh. The last line: N passed, M failed, K skipped.
set -uo pipefail
trap 'echo; echo "interrupted"; exit 130' INT
cd "$(dirname "$(readlink -f "$0")")/.." || exit 1
source tools/packages.sh
source tools/test_stages.sh

full=0 stages=()
for argument in "$@"; do
  case $argument in
    --full) full=1 ;;
    -*) echo "usage: ./dev test [--full] [STAGE...]" >&2; exit 2 ;;
    *) stages+=("$argument") ;;
  esac
done
for stage in "${stages[@]}"; do
  [[ " ${QUICK_STAGES[*]} ${FULL_STAGES[*]} " == *" $stage "* ]] || {
    echo "error: no stage '$stage'; there are: ${QUICK_STAGES[*]}, and with --full ${FULL_STAGES[*]}" >&2
    exit 2
  }
done
if ((${#stages[@]} == 0)); then
  stages=("${QUICK_STAGES[@]}")
  if ((full)); then stages+=("${FULL_STAGES[@]}"); fi
fi

logs=build/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0 summary=()

# run STAGE: runs it, shows its output, and adds up its counts.
run() {
  local stage=$1 log=$logs/$1.log start=$SECONDS status verdict p=0 f=0 s=0
  echo "== $stage"
  bash -euo pipefail -c 'trap "exit 130" INT; source tools/packages.sh; source tools/test_stages.sh; "$1"' \
    stage "$stage" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
    p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
  fi
  case $status in
    0) verdict=passed; ((p + f + s)) || p=1; ((p + f)) || verdict=skipped ;;
    77) verdict=skipped; ((s)) || s=1 ;;
    130) exit 130 ;;
    *) verdict=FAILED; ((f)) || f=1 ;;
  esac
  ((passed += p, failed += f, skipped += s))
  summary+=("$(printf '%-16s %-8s %6d passed %4d failed %4d skipped %5d s' \
    "$stage" "$verdict" "$p" "$f" "$s" $((SECONDS - start)))")
  [[ $verdict != FAILED ]]
}

for stage in "${stages[@]}"; do
  run "$stage" || [[ $stage != build ]] || break # nothing else makes sense without a build
done

echo
printf '%s\n' "${summary[@]}"
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
