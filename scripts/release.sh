#!/usr/bin/env bash
# What is given out, for machines without a compiler: the stripped program with completions, manual pages and licences; the wheels, with licences; a recipe for an
# image; checksums and bills of materials (CycloneDX) of program and package.
#
#   scripts/release.sh OUT        leaves everything in OUT, tries it there, and prints, as JSON in the last line, what it measured
#
# The program runs on any x86-64 (or the architecture of this machine) and chooses wider vectors when it starts. It needs the C library (glibc) of this
# machine or a newer one: a program that needs a newer one than the recipe's image has is refused, and so is a wheel that is not manylinux.
# Needs python3 (3.11 or later) with venv, binutils, and PyPI or another index for maturin.
set -euo pipefail
out=$(realpath -m "${1:?where it goes: scripts/release.sh OUT}")
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
mkdir -p "$out" "$target/wheel"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The image that the recipe begins with, and its glibc (Debian 13, debian:trixie-slim, has 2.41).
image=debian:bookworm-slim
image_glibc=2.36

glibc_for() { # PROGRAM: the newest glibc whose symbols it asks for
  readelf -VW "$1" | sed -n 's/.*Name: GLIBC_\([0-9][0-9.]*\).*/\1/p' | sort -uV | tail -1
}
runs_in_image() { # PROGRAM
  local needs
  needs=$(glibc_for "$1")
  [ -n "$needs" ] || { echo "$1 asks for no version of glibc: the recipe for $image is not for it" >&2; return 1; }
  [ "$(printf '%s\n' "$needs" "$image_glibc" | sort -V | tail -1)" = "$image_glibc" ] || {
    echo "$1 needs glibc $needs, and $image has $image_glibc: build on an older system, or name a newer image and its glibc in scripts/release.sh" >&2
    return 1
  }
}
all_manylinux() { # WHEEL ...
  local wheel
  for wheel in "$@"; do
    [[ ${wheel##*/} == *-manylinux_[0-9]*_[0-9]*.whl ]] || {
      echo "$wheel is not a manylinux wheel: it needs a library of this system, or a glibc that maturin does not know" >&2
      return 1
    }
  done
}

# Lints and flags of other builds have nothing to do with it; the oldest processors are meant.
unset RUSTC_WORKSPACE_WRAPPER RUSTFLAGS CARGO_PROFILE_DEV_DEBUG

cargo build --release --locked
version=$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json, sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "engraft"))')
triple=$(rustc -vV | sed -n 's/^host: //p')
name=engraft-$version-$triple
grep -q "engraft-cli==$version" python/pyproject.toml || { echo "python/pyproject.toml asks for another engraft-cli than $version" >&2; exit 1; }
rm -f "$out"/engraft-*.whl "$out"/engraft_cli-*.whl
folder=$work/$name
mkdir -p "$folder/completions" "$folder/man"
strip -o "$folder/engraft" "$target/release/engraft"
runs_in_image "$folder/engraft"
"$folder/engraft" completions bash > "$folder/completions/engraft.bash"
"$folder/engraft" completions zsh > "$folder/completions/_engraft"
"$folder/engraft" completions fish > "$folder/completions/engraft.fish"
"$folder/engraft" man --into "$folder/man"
cp LICENSE-APACHE LICENSE-MIT README.md CHANGELOG.md "$folder/"

tools=$target/wheel/tools
[ -x "$tools/bin/maturin" ] || { python3 -m venv "$tools" && "$tools/bin/python" -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'; }
bash scripts/wheel.sh "$out" | tail -1 > "$work/wheel.json"
(cd python/cli && "$tools/bin/maturin" build --quiet --release --locked --target-dir "$target" --out "$work/cli")
cp "$work"/cli/*.whl "$out/"
all_manylinux "$out"/*.whl

mkdir "$work/package"
bill=engraft-py-$version-$triple.cdx.json
python3 scripts/materials.py --package engraft --licences "$folder/LICENCES.txt" --bill "$out/$name.cdx.json" --wheel "$out"/engraft_cli-*.whl
python3 scripts/materials.py --package engraft-py --licences "$work/package/LICENCES.txt" --bill "$out/$bill" --wheel "$out"/engraft-*.whl
bytes=$(stat -c %s "$out"/engraft-*.whl)
[ "$bytes" -le 10000000 ] || { echo "with its licences the wheel is $bytes bytes, more than 10,000,000" >&2; exit 1; }
# The same bytes for the same files.
date=$(git log -1 --format=%cI)
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="$date" -C "$work" -cf - "$name" | gzip -9n > "$out/$name.tar.gz"

cat > "$out/Containerfile" <<IMAGE
# podman build -t engraft:$version -f Containerfile .    (docker build does as well), in the folder with $name.tar.gz
# The program needs glibc $(glibc_for "$folder/engraft") or newer; this image has $image_glibc.
FROM $image
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
ADD $name.tar.gz /opt/
RUN ln -s /opt/$name/engraft /usr/local/bin/engraft
ENTRYPOINT ["engraft"]
IMAGE
(cd "$out" && sha256sum "$name.tar.gz" "$name.cdx.json" "$bill" Containerfile ./*.whl | sed 's# \./# #' > SHA256SUMS && sha256sum --check --quiet SHA256SUMS)

# As somebody gets it: unpacked into an empty folder, the wheels into an empty environment.
mkdir "$work/new" && tar -C "$work/new" -xzf "$out/$name.tar.gz" --strip-components=1
(cd "$work/new" && ./engraft init > /dev/null && ./engraft plan > plan && grep -q retrain plan && ./engraft run triples --set world.scale=0.1 > said 2>&1 && ./engraft verify > verified)
# From its sources, outside the repository.
cargo install --quiet --locked --path pipeline --root "$work/installed"
mkdir "$work/elsewhere"
(cd "$work/elsewhere" && "$work/installed/bin/engraft" plan --preset world > plan && grep -q shards plan)
# By their files: the name `engraft` is another project's on PyPI.
python3 -m venv "$work/bare"
"$work/bare/bin/python" -m pip install --quiet --disable-pip-version-check "$(echo "$out"/engraft-*.whl)[cli]" "$out"/engraft_cli-*.whl
(cd "$work/new" && "$work/bare/bin/python" -m engraft verify | grep -q 'triples: ok')
"$work/bare/bin/engraft" --version | grep -q "^engraft $version"
for package in engraft engraft-cli; do
  for text in LICENCES.txt LICENSE-APACHE LICENSE-MIT; do
    "$work/bare/bin/python" -c 'import sys, importlib.metadata as of; sys.exit(not of.distribution(sys.argv[1]).read_text(f"licenses/{sys.argv[2]}"))' "$package" "$text" ||
      { echo "the wheel of $package has no $text" >&2; exit 1; }
  done
done
printf '{"program_bytes":%d,"archive_bytes":%d,"cli_wheel_bytes":%d,"wheel":%s}\n' \
  "$(stat -c %s "$folder/engraft")" "$(stat -c %s "$out/$name.tar.gz")" "$(stat -c %s "$out"/engraft_cli-*.whl)" "$(sed "s/\"bytes\":[0-9]*/\"bytes\":$(stat -c %s "$out"/engraft-*.whl)/" "$work/wheel.json")"
