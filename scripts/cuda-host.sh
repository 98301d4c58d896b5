#!/usr/bin/env bash
# The CUDA kernels on the host: every kernel compiled by g++ against the shim of model/cuda/host, and tested against f64.
#
#   scripts/cuda-host.sh             all tests, then all again under AddressSanitizer and UndefinedBehaviorSanitizer on fewer shapes
#   scripts/cuda-host.sh --kernels   the kernels alone; the next call finds them tested, unless something has changed
#
# Prints a line for each kernel. The last line is JSON; the exit status says whether everything passed. Needs g++ 12 or later and python3; no GPU, no CUDA.
# JOBS says how many compilers and tests run at a time (2). Also leaves target/cuda/host/libengraft_kernels.so, the kernels for the mock driver, with
# kernels.txt, which names them, and the mock driver in target/cuda/mock (model/cuda/mock/build.sh); that needs cudarc's source. Last, the model crate is built
# with CUDA against the mock (scripts/cuda-workspace.sh), whole training steps are compared with the CPU's and counted, and the program of scripts/gpu-check.sh makes
# its small trainings and answers once how fast it is.
set -euo pipefail
cd "$(dirname "$0")/.."
# Cargo runs in another folder, too.
[ -z "${CARGO_TARGET_DIR:-}" ] || CARGO_TARGET_DIR=$(realpath -m "$CARGO_TARGET_DIR")
export work=${CARGO_TARGET_DIR:-target}/cuda/host
jobs=${JOBS:-2}
began=$SECONDS
mkdir -p "$work/plain" "$work/checked"
export CXX=${CXX:-g++}
export warnings="-Wall -Wextra -Wconversion -Wno-sign-conversion -Wno-float-conversion -Wshadow -Werror"
export checked="-O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
# No fused products: where the tests hold a kernel to the CPU's bits, both round every operation.
export common="-std=c++20 -ffp-contract=off -fPIC -fno-semantic-interposition"

# The object of a unit, KIND and file. Sanitizers look at kernels and the shim: tests without a kernel of their own, which take twice as long to compile for
# them, are the same in both kinds.
object() {
  local kind=$1
  if [[ $2 == model/cuda/test/* ]] && ! grep -q '\.cuh"' "$2"; then kind=plain; fi
  echo "$work/$kind/$(basename "${2%.*}").o"
}
# One unit, KIND and file, unless nothing has changed since.
unit() {
  local object flags
  object=$(object "$@")
  [[ $object == "$work/$1/"* ]] || return 0
  if [ -e "$object" ] && [ -z "$(find model/cuda scripts/cuda-host.sh -newer "$object" \( -name '*.h' -o -name '*.hpp' -o -name '*.cuh' -o -samefile "$2" -o -name cuda-host.sh \) -print -quit)" ]; then
    return
  fi
  flags="-O2"
  [ "$1" = checked ] && flags=$checked
  # shellcheck disable=SC2086
  $CXX $common $warnings $flags -x c++ -c "$2" -o "$object.part" && mv "$object.part" "$object"
}
link() {
  local flags="" name program made
  [ "$1" = checked ] && flags="-fsanitize=address,undefined"
  name=$(basename "${2%.cpp}")
  program=$work/$1/$name
  made="$(object "$@") $(objects "$1") $(object "$1" model/cuda/test/harness.cpp)"
  # shellcheck disable=SC2086
  [ -e "$program" ] && [ -z "$(find $made -newer "$program" -print -quit)" ] && return
  # shellcheck disable=SC2086
  $CXX $flags -o "$program" $made
}
objects() { # KIND: the shim and all kernels
  for file in model/cuda/host/*.cpp model/cuda/kernels/*.cu; do echo "$work/$1/$(basename "${file%.*}").o"; done
}
# One test, unless it has passed since it was linked; what it says goes to a file, failures also to the terminal.
try() {
  local name
  name=$(basename "${2%.cpp}")
  [ ! "$work/$1/$name.said" -nt "$work/$1/$name" ] || return 0
  if [ "$1" = checked ]; then export ENGRAFT_QUICK=1; fi
  # Threads of a kernel that failed are left where they stood: what they held is no leak of ours.
  if ! ASAN_OPTIONS=detect_leaks=0 "$work/$1/$name" > "$work/$1/$name.said"; then
    echo "failed $1 $name" >> "$work/failed"
    touch -d @0 "$work/$1/$name.said"
  fi
}
export -f object unit link objects try

rm -f "$work/failed"
tests=(model/cuda/test/*_test.cpp)
units=(model/cuda/host/*.cpp model/cuda/kernels/*.cu model/cuda/test/harness.cpp "${tests[@]}")
each() { # FUNCTION files...: for both kinds
  local function=$1
  shift
  { printf 'checked %s\n' "$@"; printf 'plain %s\n' "$@"; } | xargs -P "$jobs" -L 1 bash -c "set -euo pipefail; $function \"\$@\"" _
}
each unit "${units[@]}"
each link "${tests[@]}"
# shellcheck disable=SC2046
$CXX -shared -o "$work/libengraft_kernels.so" $(objects plain)
sed -nE 's/^ENGRAFT_KERNEL\((\w+),.*/\1/p' model/cuda/kernels/*.cu | sort > "$work/kernels.txt"
# The mock driver, and against it the model crate, whose compiler works while the kernels are tested.
if [ "${1:-}" != --kernels ]; then
  model/cuda/mock/build.sh "$work/../mock" || echo "the mock driver was not built" >> "$work/failed"
  mock=$(cd "$work/../mock" && pwd)
  kernels=$(cd "$work" && pwd)/libengraft_kernels.so
  workspace=$(scripts/cuda-workspace.sh)
  goldens=${ENGRAFT_GOLDENS:-$PWD/tests/fixtures/golden}
  on_mock() { (cd "$workspace" && env LIBRARY_PATH="$mock" LD_LIBRARY_PATH="$mock" MOCK_KERNELS="$kernels" MOCK_DEVICES=4 CARGO_TERM_COLOR=never "$@"); }
  # Both at once, so that what the two have in common has the same features and is compiled once.
  of=(-p engraft-model -p engraft-parity --features engraft-model/cuda)
  built=(cargo build "${of[@]}" --example gpu_check)
  tested=(cargo test "${of[@]}")
  : > "$work/steps.said"
  if [ ! -e "$work/failed" ]; then
    { on_mock "${tested[@]}" --lib --test parity --no-run && on_mock "${built[@]}"; } >> "$work/steps.said" 2>&1 || true &
  fi
fi
# The long ones first.
each try model/cuda/test/attention_test.cpp $(printf '%s\n' "${tests[@]}" | grep -v attention_test)

# Faults that only a sanitizer sees, planted in kernels of the shim's own test.
for planted in shim_out_of_bounds shim_shared_out_of_bounds; do
  if ASAN_OPTIONS=detect_leaks=0 "$work/checked/shim_test" "$planted" > "$work/planted" 2>&1 || ! grep -q 'heap-buffer-overflow' "$work/planted"; then
    echo "planted fault $planted was not found" | tee -a "$work/failed"
  fi
done

if [ "${1:-}" = --kernels ]; then
  [ -e "$work/failed" ] || exit 0
  cat "$work/failed"
  grep -h FAILED "$work"/*/*.said
  exit 1
fi

# The mock driver runs the same kernels through the driver's interface.
# shellcheck disable=SC2016,SC2086
{ $CXX -std=c++20 -O1 $warnings -o "$work/mock_test" model/cuda/mock/mock_test.cpp -L"$work/../mock" -lcuda -lcublasLt '-Wl,-rpath,$ORIGIN/../mock' &&
  "$work/mock_test"; } 2> "$work/mock.said" || { cat "$work/mock.said" >&2; echo "failed mock_test" >> "$work/failed"; }
wait

# What on_mock takes, behind the SOURCES of the tests that it runs and `--`: at least as many have to pass as the sources have. Cargo calls it a success when a
# filter fits the name of no test.
all_of() {
  local sources=() least passed status=0
  while [ "$1" != -- ]; do
    sources+=("$1")
    shift
  done
  shift
  least=$(grep -rh '^ *#\[test\]' "${sources[@]}" | wc -l)
  on_mock "$@" > "$work/tests.said" 2>&1 || status=$?
  cat "$work/tests.said" >> "$work/steps.said"
  passed=$(awk '/^test result: ok\. [0-9]+ passed/ { sum += $4 } END { print sum + 0 }' "$work/tests.said")
  if [ "$least" -eq 0 ] || [ "$passed" -lt "$least" ]; then
    echo "$passed tests passed, and ${sources[*]} have $least" >> "$work/steps.said"
    status=1
  fi
  return "$status"
}
# Whole steps: the trainer's own launches on the mock, against the CPU's numbers, and what a step asks of the driver.
if ! all_of model/src/cuda.rs model/src/cuda -- "${tested[@]}" --lib -- cuda:: --nocapture ||
  ! all_of tests/tests/parity_machine.rs tests/tests/parity_head/retrain.rs -- \
    ENGRAFT_GOLDENS="$goldens" ENGRAFT_GOLDENS_DEVICE=cuda:0 "${tested[@]}" --test parity -- parity_machine retrain; then
  tail -n 60 "$work/steps.said" >&2
  echo "failed steps on the mock driver" >> "$work/failed"
fi
grep -E '^test .* (ok|FAILED)$' "$work/steps.said" || true
grep -hoE "a step .*in (F32|Bf16): .*\"products\":[0-9]+|[0-9]+ bytes a token and layer.*" "$work/steps.said" || true
program=$(cd "$work/../.." && pwd)/debug/examples/gpu_check
speed='{"model":{"layers":2,"hidden":64,"heads":2,"feed_forward":128,"vocabulary":50,"longest":8,"dropout":0.1,"dtype":"bf16"}}
{"batches":[[3,8],[5,5]]}
{"steps":3}'
if ! { on_mock "${built[@]}" && on_mock "$program" train tiny && on_mock "$program" speed <<< "$speed"; } > "$work/gpu_check.said" 2>&1 ||
  grep -q '"error"' "$work/gpu_check.said" || ! grep -q '"launched"' "$work/gpu_check.said"; then
  tail -n 30 "$work/gpu_check.said" >&2
  echo "failed gpu_check on the mock driver" >> "$work/failed"
fi
echo "gpu_check: $(grep -c '"passed":true' "$work/gpu_check.said" || true) trainings as on the CPU, and $(grep -c '"launched"' "$work/gpu_check.said" || true) answers about speed"

python3 - "$work" $((SECONDS - began)) << 'PYTHON'
import json, pathlib, re, sys

work, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
kernels = (work / "kernels.txt").read_text().split()
found = {}
steps = {}
for line in (work / "steps.said").read_text().splitlines():
    if counted := re.search(r"a step in (\w+): (\{.*\})", line):
        steps[counted[1]] = json.loads(counted[2])
if not steps:
    print("no step was counted")
for said in sorted(work.glob("*/*.said")):
    for line in said.read_text().splitlines():
        name, cases, launches, error, verdict = re.match(r"(\S+) +(\d+) cases +(\d+) launches  error (\S+)  (\S+)", line).groups()
        of = found.setdefault(name, {"cases": 0, "launches": 0, "checked": 0, "error": 0.0, "ok": True})
        of["cases"] += int(cases)
        of["launches"] += int(launches)
        of["checked"] += int(launches) if said.parent.name == "checked" else 0
        of["error"] = max(of["error"], float(error))
        of["ok"] = of["ok"] and verdict == "ok"
for name, of in sorted(found.items()):
    print(f"{name:32} {of['cases']:5} cases {of['launches']:6} launches, {of['checked']:5} under sanitizers  error {of['error']:.1e}  {'ok' if of['ok'] else 'FAILED'}")
untested = [name for name in kernels if name not in found or not found[name]["checked"]]
for name in untested:
    print(f"{name}: no test launches it")
broken = (work / "failed").read_text().splitlines() if (work / "failed").exists() else []
for line in broken:
    print(line)
failed = sum(not of["ok"] for of in found.values()) + len(untested) + len(broken) + (not steps)
tested = len(kernels) - len(untested)
# Of a step of 12 layers in bf16, behind the first one: kernels and products together.
one = steps.get("Bf16", {})
of_step = {"launches": one.get("launches", 0) + one.get("products", 0), **{what: one.get(what) for what in ("waits", "uploads", "allocations")}}
print(json.dumps({**of_step, "kernels_tested": tested, "failed": failed, "cases": sum(of["cases"] for of in found.values()),
                  "kernel_launches": sum(of["launches"] for of in found.values()), "seconds": seconds}, separators=(",", ":")))
sys.exit(failed > 0)
PYTHON
