#!/usr/bin/env bash
# The mock driver: libcuda.so.1, libcublas.so.13, libcublasLt.so.13, libcurand.so.10, libnvrtc.so.13 and libnccl.so.2 on host memory.
#
#   model/cuda/mock/build.sh [DIR]      writes them into DIR (target/cuda/mock), with the names that linkers look for beside them
#
# CUDARC names the folder of cudarc's source; left out, cargo's registry is searched.
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=${1:-${CARGO_TARGET_DIR:-target}/cuda/mock}
version=$(sed -n '/^name = "cudarc"/{n;s/version = "\(.*\)"/\1/p;q}' Cargo.lock)
source_of_cudarc() { find "${CARGO_HOME:-$HOME/.cargo}"/registry/src -maxdepth 2 -name "cudarc-$version" -print -quit; }
cudarc=${CUDARC:-$(source_of_cudarc)}
# A build without CUDA does not need it, so it may not be there yet.
[ -d "$cudarc" ] || { cargo fetch --quiet --locked && cudarc=$(source_of_cudarc); }
[ -d "$cudarc" ] || { echo "no source of cudarc $version: run cargo fetch, or name its folder in CUDARC" >&2; exit 1; }
flags="-std=c++20 -O3 -fPIC -Wall -Wextra -Wshadow -Werror"
mkdir -p "$out"
library() { # NAME SONAME MODULE -- sources and libraries
  local name=$1 soname=$2 module=$3 stubs
  shift 3
  [ -e "$out/$soname" ] && [ -z "$(find model/cuda/mock -newer "$out/$soname" -print -quit)" ] && return
  stubs=$(mktemp --suffix=.cpp)
  python3 model/cuda/mock/stubs.py "$cudarc" "$module" > "$stubs"
  # What the linker may not find: the library beside this one.
  # shellcheck disable=SC2086
  ${CXX:-g++} $flags -shared -o "$out/$soname.part" "-Wl,-soname,$soname" "$stubs" "$@" "-Wl,-rpath,\$ORIGIN" -ldl
  mv "$out/$soname.part" "$out/$soname"
  ln -sf "$soname" "$out/lib$name.so"
  rm "$stubs"
}
mock=model/cuda/mock
library cuda libcuda.so.1 driver $mock/state.cpp $mock/device.cpp $mock/stream.cpp $mock/module.cpp
library cublas libcublas.so.13 cublas $mock/cublas.cpp $mock/product.cpp -L"$out" -lcuda
library cublasLt libcublasLt.so.13 cublaslt $mock/cublaslt.cpp $mock/product.cpp -L"$out" -lcuda
library curand libcurand.so.10 curand $mock/curand.cpp -L"$out" -lcuda
library nvrtc libnvrtc.so.13 nvrtc -L"$out" -lcuda
library nccl libnccl.so.2 nccl $mock/nccl.cpp -L"$out" -lcuda
