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
for stage in "${stages[@]}"; do rm -f "$logs/$stage.result"; done # another run in this tree may have other stages

# run STAGE: runs it, shows its output, and writes "VERDICT PASSED FAILED SKIPPED SECONDS" to its .result.
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
  echo "$verdict $p $f $s $((SECONDS - start))" >"$logs/$stage.result"
  [[ $verdict != FAILED ]]
}

# Nothing else makes sense without a build.
if [[ " ${stages[*]} " == *" build "* ]] && ! run build; then stages=(build); fi

# Stages that mostly wait run beside the others; their output is shown at the end.
beside=() others=()
for stage in "${stages[@]}"; do
  if [[ $stage == build ]]; then continue; fi
  if [[ " ${WAITING_STAGES[*]} " == *" $stage "* ]]; then beside+=("$stage"); else others+=("$stage"); fi
done
set -m # a process group of their own, so that Ctrl-C can be passed on
for stage in "${beside[@]}"; do run "$stage" >/dev/null; done &
lane=$!
set +m
trap 'kill -INT -- -$lane 2>/dev/null; wait; echo; echo "interrupted"; exit 130' INT
for stage in "${others[@]}"; do run "$stage"; done
wait "$lane"
for stage in "${beside[@]}"; do
  echo "== $stage"
  cat "$logs/$stage.log"
done

echo
passed=0 failed=0 skipped=0
for stage in "${stages[@]}"; do
  read -r verdict p f s seconds <"$logs/$stage.result" || verdict=FAILED p=0 f=1 s=0 seconds=0
  ((passed += p, failed += f, skipped += s))
  printf '%-16s %-8s %6d passed %4d failed %4d skipped %5d s\n' "$stage" "$verdict" "$p" "$f" "$s" "$seconds"
done
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
