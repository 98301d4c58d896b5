#!/usr/bin/env bash
# A workspace in which the model crate is built with CUDA on a machine that has neither GPU nor driver nor compiler for it: cudarc meets the mock
# driver (model/cuda/mock), and candle's own kernels are left out, which nothing tested there launches.
#
#   scripts/cuda-workspace.sh [DIR]      writes DIR (target/cuda/workspace); cargo is run in it
#
# It has the crates as links and the same versions of everything. Its lock file is its own, because candle-kernels is not the registry's.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
out=${1:-$target/cuda/workspace}
mkdir -p "$out/candle-kernels/src" "$out/.cargo" "$out/tasks" "$out/parity"
version=$(sed -n '/^name = "candle-kernels"/{n;s/version = "\(.*\)"/\1/p;q}' Cargo.lock)
find_source() { find "${CARGO_HOME:-$HOME/.cargo}"/registry/src -maxdepth 2 -name "candle-kernels-$version" -print -quit; }
kernels=$(find_source)
[ -d "$kernels" ] || { cargo fetch --quiet --locked && kernels=$(find_source); }
[ -d "$kernels" ] || { echo "no source of candle-kernels $version: run cargo fetch" >&2; exit 1; }

# Only what has changed is written: cargo goes by the time of a file.
put() { # FILE, its content on stdin
  local new
  new=$(mktemp)
  cat > "$new"
  cmp -s "$new" "$1" || cp "$new" "$1"
  rm "$new"
}
for member in base tasks/batch model clippy.toml; do ln -sfn "$root/$member" "$out/$member"; done
{
  echo '[workspace]'
  echo 'resolver = "3"'
  echo 'members = ["base", "tasks/batch", "model", "parity"]'
  sed -n '/^\[workspace.package\]/,/^\[profile/p' Cargo.toml | sed '/^\[profile/d'
  # The kernels are compiled already, and what is computed on the CPU beside them is small.
  sed -n '/^\[profile.dev\]/,$p' Cargo.toml | sed -E '/^\[profile.dev.package.(engraft-model|candle-core)\]/,/^opt-level/{s/^opt-level.*/opt-level = 0/;/^codegen-units/d}'
  echo
  echo '[patch.crates-io]'
  echo 'candle-kernels = { path = "candle-kernels" }'
} | put "$out/Cargo.toml"
[ -e "$out/Cargo.lock" ] && [ "$out/Cargo.lock" -nt Cargo.lock ] || cp Cargo.lock "$out/Cargo.lock"
# The tests against golden numbers that go through trainers and predictors, without the crates that the others need.
{
  printf '[package]\nname = "engraft-parity"\nversion = "0.0.0"\nedition = "2024"\n\n[lib]\nname = "engraft_tests"\npath = "lib.rs"\n\n'
  printf '[[test]]\nname = "parity"\npath = "parity.rs"\n\n[dependencies]\n'
  printf '%s.workspace = true\n' anyhow candle-core engraft-batch serde_json
  echo 'engraft-model = { workspace = true, features = ["cuda"] }'
  # What both workspaces have, with the features that the other one's crates ask for: what has the same is compiled once. A line that is out of date costs time alone.
  cat << 'TOML'
blake3 = "1"
bytemuck = { version = "1", features = ["extern_crate_alloc", "must_cast"] }
foldhash = "0.2"
getrandom = { version = "0.4", features = ["std", "sys_rng"] }
hashbrown = { version = "0.17", features = ["raw-entry", "rayon", "serde"] }
indexmap = { version = "2", features = ["serde"] }
memchr = "2"
num-complex = { version = "0.4", default-features = false, features = ["std"] }
once_cell = "1"
rustix = { version = "1", features = ["termios"] }
serde = { version = "1", features = ["rc"] }
serde_core = { version = "1", features = ["rc"] }
smallvec = { version = "1", features = ["const_generics", "const_new"] }

[build-dependencies]
syn = { version = "2", features = ["extra-traits", "full", "visit-mut"] }
syn3 = { package = "syn", version = "3", features = ["extra-traits", "full", "visit-mut"] }
TOML
} | put "$out/parity/Cargo.toml"
# Without a build script nobody asks for build dependencies.
echo 'fn main() {}' | put "$out/parity/build.rs"
echo "#[path = \"$root/tests/src/golden.rs\"] pub mod golden;" | put "$out/parity/lib.rs"
for test in parity_kam parity_machine parity_head/retrain; do echo "#[path = \"$root/tests/tests/$test.rs\"] mod $(basename "$test");"; done |
  put "$out/parity/parity.rs"
printf '[package]\nname = "candle-kernels"\nversion = "%s"\nedition = "2021"\n' "$version" | put "$out/candle-kernels/Cargo.toml"
{
  echo 'mod ptx {'
  grep -oE 'mdl!\([A-Z]+' "$kernels/src/lib.rs" | sed 's/mdl!(\(.*\)/    pub const \1: \&str = "";/'
  echo '}'
  sed '/^mod ptx {/,/^}/d' "$kernels/src/lib.rs"
} | put "$out/candle-kernels/src/lib.rs"
# What candle calls of its C++ is nowhere, and nothing tested here calls it.
sed -E '1i #![allow(unused, non_snake_case)]
/^extern "C" \{$/d; /^\}$/d; s/pub fn /pub unsafe extern "C" fn /; s/^(    \)( -> [a-z0-9]+)?);$/\1 { std::process::abort() }/' \
  "$kernels/src/ffi.rs" | put "$out/candle-kernels/src/ffi.rs"
# One target folder for both workspaces: of what they share, only what has other features is compiled again.
printf '[build]\ntarget-dir = "%s"\n[env]\nCUDARC_CUDA_VERSION = "13000"\nENGRAFT_CUDA_KERNELS = "mock"\n' "$target" | put "$out/.cargo/config.toml"
echo "$out"
