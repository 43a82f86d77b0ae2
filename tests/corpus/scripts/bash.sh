#!/bin/bash
# Polls something with a command per turn and remembers every answer, or the last hundred.
form=$1 RANDOM=$2
answers=()
while :; do
  answers+=("$(date +%s%N) $(printf 'x%.0s' {1..400})$RANDOM$RANDOM")
  for i in {1..60}; do answers+=("$i $RANDOM ${answers[-1]:0:200}"); done
  [[ $form == leaks ]] || ((${#answers[@]} < 3000)) || answers=()
  sleep 0.15
done
