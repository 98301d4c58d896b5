#!/usr/bin/env bash
# Each example of python/examples runs on the embedded world; what comes of it is compared with what the package makes in one process.
#
#   scripts/examples.sh [NAME...]      duckdb daft ray spark trainer; prints `NAME: identical` for each
#
# Other libraries are installed from PyPI into target/examples; Spark needs Java. ENGRAFT_BIN names the program and ENGRAFT_PACKAGE a folder with the package
# `engraft`; without them they are built. ENGRAFT_TORCH names a Python with tests/python/requirements-torch.txt; without one the trainer is not tried.
set -euo pipefail
cd "$(dirname "$0")/.."
names=("$@")
[ $# -gt 0 ] || names=(duckdb daft ray spark trainer)
engraft=$(scripts/binary.sh)
examples=$PWD/python/examples
compare=$PWD/tests/python/examples.py
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/examples")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=${ENGRAFT_PACKAGE:-}
if [ -z "$package" ]; then
  cargo build --quiet --release -p engraft-py
  package=$work/package
  mkdir -p "$package/engraft"
  cp python/engraft/*.py "$package/engraft/"
  cp "${CARGO_TARGET_DIR:-target}/release/lib_engraft.so" "$package/engraft/_engraft.abi3.so"
fi
PYTHONPATH=$(realpath "$package")
export PYTHONPATH

python_with() { # NAME PACKAGE==VERSION...
  local name=$1
  shift
  "$tools/$name/bin/python" -c pass 2> /dev/null || python3 -m venv "$tools/$name"
  "$tools/$name/bin/python" -m pip install --quiet --disable-pip-version-check numpy pyarrow==26.0.1 "$@" >&2
  echo "$tools/$name/bin/python"
}

"$engraft" --out "$work/out" --set world.scale=0.1 --set shards.items_per_group=50 --set 'shards.size={ rows = 700 }' run shards > "$work/said" 2>&1 ||
  { cat "$work/said" >&2; exit 1; }
python=$(python_with duckdb duckdb==2.0.1)
"$python" "$compare" texts "$work/out" "$work/texts.parquet"

duckdb() {
  "$python" "$examples/duckdb_tables.py" "$work/texts.parquet" "$work/out/triples" "$1"
}
daft() {
  "$(python_with daft daft==0.6.14)" "$examples/daft_frame.py" "$work/texts.parquet" "$work/out/vocabulary" "$1"
}
ray() {
  RAY_ADDRESS=local "$(python_with ray ray==2.60.0 pandas)" "$examples/ray_data.py" "$work/texts.parquet" "$work/out/triples" "$1"
}
spark() {
  "$(python_with spark pyspark==4.3.0 pandas)" "$examples/spark.py" "$work/texts.parquet" "$1"
}
# One training without an end, and one that ends between two checkpoints and is started again.
trainer() {
  local run="$ENGRAFT_TORCH -W ignore $examples/trainer.py $work/out/shards"
  export OMP_NUM_THREADS=1
  $run "$1/whole" --steps 12 --every 4
  $run "$1/resumed" --steps 12 --every 4 --until 6
  [ ! -e "$1/resumed/model" ]
  $run "$1/resumed" --steps 12 --every 4
  cmp "$1/whole/model/model.safetensors" "$1/resumed/model/model.safetensors"
}

for name in "${names[@]}"; do
  if [ "$name" = trainer ] && [ -z "${ENGRAFT_TORCH:-}" ]; then
    echo "trainer: ENGRAFT_TORCH names no Python with torch and transformers: it was not tried"
    continue
  fi
  "$name" "$work/$name" > "$work/$name.log" 2>&1 || { cat "$work/$name.log" >&2; exit 1; }
  [ "$name" = trainer ] || "$python" "$compare" "$name" "$work/out" "$work/texts.parquet" "$work/$name"
  echo "$name: identical"
done
