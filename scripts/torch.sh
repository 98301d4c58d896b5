#!/usr/bin/env bash
# A Python with PyTorch and what else tests/python/requirements-torch.txt names: that of ENGRAFT_TORCH, or one that is made in target/torch (gigabytes, from PyPI
# or another index). Prints where it is.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "${ENGRAFT_TORCH:-}" ]; then
  echo "$ENGRAFT_TORCH"
  exit
fi
python3 -m venv target/torch
target/torch/bin/pip install --quiet --disable-pip-version-check --no-compile -r tests/python/requirements-torch.txt >&2
echo "$PWD/target/torch/bin/python"
