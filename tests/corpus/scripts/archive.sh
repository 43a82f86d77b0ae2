#!/bin/bash
# Backups with tar, xz and rsync.
cd "$1" || exit
mkdir -p data copy
for i in {1..40}; do head -c $((RANDOM * 4)) /dev/urandom | base64 >"data/$i"; done
while :; do
  rsync -a --delete data/ copy/
  tar c data | xz -1 >data.tar.xz
  head -c $((RANDOM * 4)) /dev/urandom | base64 >"data/$((1 + RANDOM % 40))"
  sleep 1.5
done
