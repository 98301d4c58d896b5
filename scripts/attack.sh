#!/usr/bin/env bash
# Attacks the binary and counts what gets through: `scripts/attack.sh QUICK` takes a minute, FULL about an hour (`just nightly`). docs/reliability.md explains
# the campaigns. ENGRAFT_PYTHON may name a Python with pyarrow, without which hostile Parquet files are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
length=$(printf '%s' "${1:-QUICK}" | tr '[:upper:]' '[:lower:]')
shift || true
cargo build --release --quiet
exec "${ENGRAFT_PYTHON:-python3}" tests/attack/attack.py target/release/engraft "$length" "$@"
