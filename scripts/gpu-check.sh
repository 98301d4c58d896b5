#!/usr/bin/env bash
# The whole proof of the CUDA path, in one command of at most nine minutes on a machine with a GPU.
#
#   scripts/gpu-check.sh build          here, without a GPU: makes target/gpu-check, all that the other machine needs besides the checkout
#   scripts/gpu-check.sh [OPTION]...    there: runs the stages, with a line of JSON behind each, on standard output and in $OUT/gpu-check.jsonl
#
# `build` needs cargo, g++ and python3, and gets nvcc as Python wheels (scripts/cuda-toolkit.sh); it fails if the folder and the checkout are more than 64 MiB
# together (MOST, in MiB). There, python3 and the libraries of a CUDA 13 toolkit are needed, PyTorch for comparing speed, compute-sanitizer and ncu for their
# stages; what is lacking is said. OPTION is one of scripts/gpu-check.py, such as --only 0,2.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" != build ]; then
  exec python3 scripts/gpu-check.py "$@"
fi

root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
out=$target/gpu-check
toolkit=${TOOLKIT:-$target/cuda/toolkit}
work=$target/cuda/device
jobs=${JOBS:-$(nproc)}
mkdir -p "$out/tests" "$work"
newer() { [ ! -e "$1" ] || [ -n "$(find "${@:2}" -newer "$1" -type f -print -quit)" ]; } # FILE, what it is made from

# 1. Kernels: the trainer's, and two that only tests have.
sources=(model/cuda/kernels model/cuda/device model/cuda/*.h)
if newer "$target/cuda/engraft.compute_80.ptx" "${sources[@]}"; then
  scripts/cuda-kernels.sh
fi
if newer "$out/tests.compute_80.ptx" "${sources[@]}" model/cuda/test; then
  scripts/cuda-toolkit.sh "$toolkit"
  for file in model/cuda/test/*_kernel.cuh; do echo "#include \"test/${file##*/}\""; done > "$work/tests.cu"
  "$toolkit/bin/nvcc" -Imodel/cuda -std=c++17 -O3 -ccbin "${NVCC_CCBIN:-g++}" -arch=compute_80 -ptx -o "$out/tests.compute_80.ptx" "$work/tests.cu"
fi
cp "$target/cuda/engraft.sm_90.cubin" "$target/cuda/engraft.compute_80.ptx" "$out"
sed -nE 's/^ENGRAFT_KERNEL\((\w+),.*/\1/p' model/cuda/kernels/*.cu model/cuda/test/*_kernel.cuh | sort > "$out/kernels.txt"

# 2. The kernels' tests, launching through the driver. What they compare with is computed as on the host: without fused products.
object() { # a source file
  local made
  made=$work/$(basename "${1%.*}").o
  if [ ! -e "$made" ] || [ -n "$(find model/cuda "$1" -newer "$made" \( -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -samefile "$1" \) -print -quit)" ]; then
    "${CXX:-g++}" -std=c++20 -ffp-contract=off -O2 -DENGRAFT_ON_DEVICE -x c++ -c "$1" -o "$made.part"
    mv "$made.part" "$made"
  fi
}
export -f object
export work
tests=$(find model/cuda/test -name '*_test.cpp' ! -name shim_test.cpp | sort)
# shellcheck disable=SC2086
printf '%s\n' $tests model/cuda/test/harness.cpp model/cuda/host/*.cpp | xargs -P "$jobs" -I{} bash -c 'set -euo pipefail; object {}'
rm -f "$out"/tests/*
for file in $tests; do
  name=$(basename "${file%.cpp}")
  "${CXX:-g++}" -s -static-libstdc++ -static-libgcc -o "$out/tests/$name" "$work/$name.o" "$work"/{harness,block,fiber,registry}.o -ldl
done

# 3. The program that trains, and the tests against golden numbers: linked against the mock driver's libraries, which are called as the real ones are, and without candle's kernels, which a
# training does not launch. Optimised as whole as the usual binary, so in a folder beside that of the tests' builds.
model/cuda/mock/build.sh "$target/cuda/mock"
workspace=$(scripts/cuda-workspace.sh)
(
  cd "$workspace"
  export LIBRARY_PATH=$target/cuda/mock ENGRAFT_CUDA_KERNELS=$target/cuda CARGO_PROFILE_RELEASE_OPT_LEVEL=3 CARGO_PROFILE_RELEASE_DEBUG=false
  of=(--release -p engraft-model -p engraft-parity --features engraft-model/cuda --target-dir "$work/rust")
  cargo build "${of[@]}" --example gpu_check
  cargo test "${of[@]}" --test parity --no-run --message-format json-render-diagnostics |
    sed -nE 's/.*"name":"parity".*"executable":"([^"]+)".*/\1/p' > "$work/parity"
)
strip -o "$out/gpu_check" "$work/rust/release/examples/gpu_check"
# Packed: both programs embed the kernels, and together they are more than may travel.
strip -o "$work/goldens" "$(cat "$work/parity")"
python3 -c 'import lzma, sys; open(sys.argv[2], "wb").write(lzma.compress(open(sys.argv[1], "rb").read()))' "$work/goldens" "$out/goldens.xz"

# 4. What travels.
git ls-files -z --cached --others --exclude-standard | python3 -c '
import json, os, sys
folder, most = sys.argv[1], int(sys.argv[2]) << 20
of_folder = sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names)
of_checkout = sum(os.path.getsize(path) for path in sys.stdin.read().split("\0") if os.path.isfile(path))
print(json.dumps({"folder": folder, "bytes": of_folder, "with_checkout": of_folder + of_checkout, "most": most}))
sys.exit(of_folder + of_checkout > most)' "$out" "${MOST:-64}"
