#!/bin/bash
# Prints as a chatty service does.
RANDOM=$1
while :; do
  for i in {1..25}; do echo "$RANDOM $i some words that a service prints when it has nothing to say, but says it often"; done
  sleep 0.1
done
