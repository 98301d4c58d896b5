#!/usr/bin/env bash
# The engraft binary with CUDA, made on a machine that has neither GPU nor driver nor CUDA toolkit.
#
# Where a toolkit is installed (nvcc on the PATH), `scripts/cuda-kernels.sh` and `cargo build --release --features cuda` are enough.
# Here the compiler and the headers come as Python wheels (160 MB), and stand-ins for the libraries that the driver and the
# toolkit bring are made from the names that cudarc asks for; the real ones are needed only where the binary runs.
#
#   scripts/cuda-build.sh            writes <target>/cuda/engraft, stripped, and says what it needs
#   CAP=80 scripts/cuda-build.sh     for another compute capability than 9.0 (H100)
#
# Needs cargo, python3 with pip, gcc and g++ (what nvcc 13 supports: up to 15), readelf and strip. The kernels take some 17 minutes of
# one core; CUDAFORGE_THREADS says how many work at once. TOOLKIT names another folder for the compiler.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

metadata=$(cargo metadata --format-version 1 --locked --features engraft/cuda)
of_metadata() { python3 -c 'import json, sys; told = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" <<< "$metadata"; }
target=$(of_metadata 'told["target_directory"]')
toolkit=${TOOLKIT:-$target/cuda/toolkit}

# 1. Compiler and headers.
scripts/cuda-toolkit.sh "$toolkit"

# 2. Stand-ins for libraries: each says the name under which the real one is found, and has the functions that cudarc calls.
bindings=$(dirname "$(of_metadata 'next(p["manifest_path"] for p in told["packages"] if p["name"] == "cudarc")')")/src
stand_in() { # NAME SONAME MODULE
  local library=$toolkit/lib/stubs/lib$1.so
  [ -e "$library" ] && return
  local names
  names=$(grep -ohE '\bfn (cu|curand|nvrtc)[A-Za-z0-9_]+ *\(' "$bindings/$3/sys/mod.rs" | sed -E 's/fn ([A-Za-z0-9_]+).*/\1/' | sort -u) || true
  [ -n "$names" ] || { echo "cudarc's bindings name no function of $1: look at $bindings/$3" >&2; exit 1; }
  awk '{ print "int " $1 "(void) { return 999; }" }' <<< "$names" \
    | gcc -x c - -shared -fPIC -w -fno-builtin "-Wl,-soname,$2" -o "$library.part"
  mv "$library.part" "$library"
}
mkdir -p "$toolkit/lib/stubs"
stand_in cuda libcuda.so.1 driver
stand_in cublas libcublas.so.13 cublas
stand_in cublasLt libcublasLt.so.13 cublaslt
stand_in curand libcurand.so.10 curand
stand_in nvrtc libnvrtc.so.13 nvrtc

# 3. Our kernels, and the binary with them. What is said to the linker goes to the binary alone: in RUSTFLAGS it would compile every dependency anew.
export CUDA_HOME=$toolkit PATH=$toolkit/bin:$PATH
export CUDA_COMPUTE_CAP=${CAP:-90} CUDARC_CUDA_VERSION=13000 NVCC_CCBIN=${NVCC_CCBIN:-$(command -v g++)}
export LIBRARY_PATH=$toolkit/lib:$toolkit/lib/stubs${LIBRARY_PATH:+:$LIBRARY_PATH}
nvcc --version | tail -2
TOOLKIT=$toolkit CARGO_TARGET_DIR=$target scripts/cuda-kernels.sh
export ENGRAFT_CUDA_KERNELS=$target/cuda
cargo rustc --release --locked -p engraft --bin engraft --features cuda -- -C link-arg=-Wl,--allow-shlib-undefined
strip -o "$target/cuda/engraft" "$target/release/engraft"
# It does not start without a driver, so it must not be taken for the usual one.
rm -f "$target/release/engraft"

# 4. What it is.
echo
echo "$target/cuda/engraft: $(($(stat -c %s "$target/cuda/engraft") / 1048576)) MiB, compute capability $CUDA_COMPUTE_CAP"
echo "needs: $(readelf -d "$target/cuda/engraft" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | tr '\n' ' ')"
cat << 'HOW'
libcuda.so.1 comes with the driver (580 or later); the others with a CUDA 13 toolkit, or as wheels:
  python3 -m pip install nvidia-cuda-runtime==13.0.96 nvidia-cublas nvidia-curand==10.4.0.35 nvidia-cuda-nvrtc
  export LD_LIBRARY_PATH=$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13/lib:$LD_LIBRARY_PATH
HOW
