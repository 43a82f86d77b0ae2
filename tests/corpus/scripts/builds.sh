#!/bin/bash
# Prints as builds do: some hundred lines at a time.
RANDOM=$1
while :; do
  for ((i = 200 + RANDOM % 400; i > 0; --i)); do echo "[$i] Building part $RANDOM of the shop, with some words about $RANDOM"; done
  sleep $((2 + RANDOM % 4)).$((RANDOM % 10))
done
