#!/usr/bin/env bash
# nvcc and the headers of CUDA 13.0 from Python wheels (160 MB), for machines without a toolkit.
#
#   scripts/cuda-toolkit.sh DIR      makes DIR/{bin,include,lib,nvvm}, unless it is there
#
# Needs python3 with pip. 13.0, so that its code loads on drivers from 580 on.
set -euo pipefail
toolkit=$1
wheels=(
  nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85
  nvidia-cuda-runtime==13.0.96 nvidia-cuda-profiler-api==13.0.85 nvidia-curand==10.4.0.35
)
[ -x "$toolkit/bin/nvcc" ] && exit 0
mkdir -p "$(dirname "$toolkit")"
fresh=$(mktemp -d "$toolkit.XXXXXX")
trap 'rm -rf "$fresh"' EXIT
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$fresh/wheels" "${wheels[@]}"
# Wheels are unpacked as the archives that they are, since nothing of them is imported.
python3 - "$fresh" << 'PYTHON'
import pathlib, sys, zipfile

fresh = pathlib.Path(sys.argv[1])
for wheel in sorted(fresh.glob("wheels/*.whl")):
    zipfile.ZipFile(wheel).extractall(fresh / "site")
PYTHON
made=$fresh/site/nvidia/cu13
chmod +x "$made"/bin/* "$made"/nvvm/bin/*           # an archive unpacked by Python forgets what may be run
ln -s lib "$made/lib64"
ln -s libcudart.so.13 "$made/lib/libcudart.so"      # wheels have no file of the name that linkers look for
rm -f "$made"/lib/libcurand.so*                     # of curand, only the headers are wanted
rm -rf "$toolkit"
mv "$made" "$toolkit"
