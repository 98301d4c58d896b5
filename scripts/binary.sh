#!/usr/bin/env bash
# Prints the path of the program that other scripts try: what ENGRAFT_BIN names, or what cargo builds.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -n "${ENGRAFT_BIN:-}" ] || cargo build --quiet --release
realpath "${ENGRAFT_BIN:-${CARGO_TARGET_DIR:-target}/release/engraft}"
