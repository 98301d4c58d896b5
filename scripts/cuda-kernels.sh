#!/usr/bin/env bash
# The CUDA kernels, compiled ahead of time on any machine: no GPU, no driver, no toolkit.
#
#   scripts/cuda-kernels.sh          writes target/cuda/engraft.sm_90.cubin and target/cuda/engraft.compute_80.ptx
#
# Prints registers, shared memory and spills of each kernel as the assembler tells them, and fails if anything spills. The first run gets nvcc 13.0 as Python
# wheels (160 MB); TOOLKIT names a folder that has it already. Needs python3 with pip and g++.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}/cuda
toolkit=${TOOLKIT:-$target/toolkit}
scripts/cuda-toolkit.sh "$toolkit"
mkdir -p "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One module: every kernel file as one unit. Names are unique among them. The unit's own name goes into those of its internal symbols, so it has a fixed
# place: the same sources give the same bytes.
all=$target/all.cu
for file in model/cuda/kernels/*.cu; do echo "#include \"kernels/${file##*/}\""; done > "$all"
flags=(-Imodel/cuda -std=c++17 -O3 -ccbin "${NVCC_CCBIN:-g++}" -Werror all-warnings)
"$toolkit/bin/nvcc" "${flags[@]}" -arch=sm_90 -cubin -Xptxas -v -o "$work/cubin" "$all" 2> "$work/said" || { cat "$work/said" >&2; exit 1; }
"$toolkit/bin/nvcc" "${flags[@]}" -arch=compute_80 -ptx -o "$work/ptx" "$all"
mv "$work/cubin" "$target/engraft.sm_90.cubin"
mv "$work/ptx" "$target/engraft.compute_80.ptx"

# ptxas names a kernel, then its stack and spills, then its registers.
sed -E "s/^ptxas info *: *//" "$work/said" | awk '
  /Compiling entry function/ { split($0, part, "\047"); name = part[2] }
  /spill stores/ { for (i = 1; i <= NF; i++) if ($i == "spill") spilled[name] += $(i - 2) }
  /Used [0-9]+ registers/ {
    shared = 0
    for (i = 1; i <= NF; i++) { if ($i == "registers,") registers = $(i - 1); if ($i == "smem") shared = $(i - 2) }
    printf "%-40s %4d registers  %6d bytes shared  %d bytes spilled\n", name, registers, shared, spilled[name] | "sort"
    kernels++; wrong += spilled[name] > 0
  }
  END {
    close("sort")
    printf "{\"kernels\":%d,\"spilling\":%d}\n", kernels, wrong
    exit wrong > 0 || kernels == 0
  }'
