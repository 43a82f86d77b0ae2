#!/usr/bin/env bash
# make_corpus.sh DIRECTORY: fills it with the small models of Debian's libonnx-testdata, the seeds of the fuzzers.
set -euo pipefail
[[ $# == 1 ]] || { sed -n 2p "$0" >&2; exit 2; }
data=/usr/share/libonnx-testdata
[[ -d $data ]] || { echo "error: no $data (Debian package libonnx-testdata)" >&2; exit 1; }
mkdir -p "$1"
find "$data" -name model.onnx -size -16k | while read -r model; do
  cp "$model" "$1/$(basename "$(dirname "$model")").onnx"
done
echo "$(find "$1" -name '*.onnx' | wc -l) models in $1"
