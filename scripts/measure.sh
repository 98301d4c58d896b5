#!/usr/bin/env bash
# Measures the house: `scripts/measure.sh [REVISION ...]` prints a column for each revision, by default the one before the second plan (29d2b95) and what
# lies here. ARCHITECTURE.md has the table.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
columns=()
for revision in "${@:-29d2b95}"; do
  mkdir "$folder/$revision"
  git archive "$revision" | tar -x -C "$folder/$revision"
  columns+=("$revision=$folder/$revision")
done
python3 scripts/measure.py "${columns[@]}" "here=$PWD"
