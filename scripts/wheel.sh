#!/usr/bin/env bash
# Python's wheel: built, installed into empty virtual environments, and tested there.
#
#   scripts/wheel.sh OUT [PYTHON ...]        leaves the wheel in OUT and prints, as JSON in the last line, its size, what building took and the
#                                            interpreters that it was tried with: python3, and each PYTHON (3.11 or later)
#
# Needs python3 (3.11 or later) with venv, and PyPI or another index for maturin, numpy and pyarrow. ENGRAFT_TORCH names a Python with
# tests/python/requirements-torch.txt; without one the loaders of PyTorch are not tried. ENGRAFT_BIN names the program that makes the shards to try
# it on; without one it is built.
set -euo pipefail
out=$(realpath -m "${1:?where the wheel goes: scripts/wheel.sh OUT [PYTHON ...]}")
shift
pythons=()
for python in python3 "$@"; do
  pythons+=("$(realpath -s "$(command -v "$python")")")
done
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/wheel" "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tools=$target/wheel/tools
[ -x "$tools/bin/maturin" ] || { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check 'maturin>=1.9,<2'; }

# Debuggers and lints of the other builds have nothing to do with it.
unset RUSTC_WORKSPACE_WRAPPER CARGO_PROFILE_DEV_DEBUG
times_of() { awk '{ print $16 + $17 }' "/proc/$$/stat"; } # of children that have ended, in clock ticks
began=$(times_of)
"$tools/bin/maturin" build --quiet --manifest-path python/Cargo.toml --target-dir "$target/wheel/target" --out "$work"
seconds=$((($(times_of) - began) / $(getconf CLK_TCK)))
wheel=$(echo "$work"/*.whl)
bytes=$(stat -c %s "$wheel")
echo "built: $bytes bytes, $seconds seconds of the processor" >&2
[ "$seconds" -le 500 ] || echo "warning: that is more than the 500 seconds that it should take (Cargo.toml, [profile.wheel])" >&2
[ "$bytes" -le 10000000 ] || { echo "the wheel has $bytes bytes, expected at most 10,000,000" >&2; exit 1; }
crates=$(cargo tree --locked -p engraft-py -e normal --prefix none)
if grep -E '^(polars|candle)' <<< "$crates"; then
  echo "the wheel is to have neither polars nor candle in it" >&2
  exit 1
fi

# Its promises, on the embedded world.
engraft=$(scripts/binary.sh)
"$engraft" --out "$work/out" --set world.scale=0.1 --set shards.items_per_group=50 --set 'shards.size={ rows = 700 }' run shards > "$work/said" 2>&1 ||
  { cat "$work/said" >&2; exit 1; }
"$engraft" --config configs/world-maps.toml --out "$work/maps" --set world.scale=0.2 run maps > "$work/said" 2>&1 ||
  { cat "$work/said" >&2; exit 1; }
tried=
try_with() { # PYTHON
  rm -rf "$work/bare"
  "$1" -m venv "$work/bare"
  "$work/bare/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
  "$work/bare/bin/python" -I -c 'import engraft, importlib.metadata as of; assert engraft.__version__ == of.version("engraft"); help(engraft.Stream)' > "$work/help"
  grep -q 'steps of an epoch' "$work/help"
  "$work/bare/bin/python" -m pip install --quiet --disable-pip-version-check pyarrow
  "$work/bare/bin/python" tests/python/stream.py "$work/out"
  "$work/bare/bin/python" -W ignore tests/python/arrow_kernels.py "$work/out" configs/default.toml "$work/maps" configs/parts/world-corpus.toml
  tried+=${tried:+,}$("$work/bare/bin/python" -c 'import platform; print(f"\"{platform.python_version()}\"")')
}
for python in "${pythons[@]}"; do
  try_with "$python"
done
scripts/stubs.sh "$work/bare/bin/python"
if [ -n "${ENGRAFT_TORCH:-}" ]; then
  "$work/bare/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$work/alone" "$wheel"
  PYTHONPATH=$work/alone OMP_NUM_THREADS=1 "$ENGRAFT_TORCH" -W ignore tests/python/torch_stream.py "$work/out"
else
  echo "ENGRAFT_TORCH names no Python with torch and torchdata: the loaders of PyTorch were not tried"
fi
cp "$wheel" "$out/"
printf '{"wheel":"%s","bytes":%d,"build_cpu_s":%d,"pythons":[%s]}\n' "$out/$(basename "$wheel")" "$bytes" "$seconds" "$tried"
