#!/usr/bin/env bash
# Each launcher runs the embedded world and a corpus in parts through a depot, with workers killed in the middle; what comes of it is compared with one machine's
# run of the whole corpus. Then a text changes, and it runs again.
#
#   scripts/launchers.sh [NAME...]      slurm snakemake ray spark kubernetes; prints `NAME: identical` for each
#
# Slurm and Kubernetes are played by stubs (no node, no cluster). The others are installed from PyPI into target/launchers; Spark needs Java.
# ENGRAFT_BIN names the program; without one it is built.
set -euo pipefail
cd "$(dirname "$0")/.."
names=("$@")
[ $# -gt 0 ] || names=(slurm snakemake ray spark kubernetes)
engraft=$(scripts/binary.sh)
launchers=$PWD/launchers
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}/launchers")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Stubs are programs, which some folders for temporary files may not hold.
printf '#!/bin/sh\n' > "$work/try" && chmod +x "$work/try"
if ! "$work/try" 2> /dev/null; then
  rm -rf "$work"
  mkdir -p "$tools"
  work=$(mktemp -d -p "$tools")
fi
cd "$work"
mkdir bin

# The program as workers find it: the first that makes shards is killed at work, and the first that makes maps of the second part when these are written.
cat > bin/engraft <<STUB
#!/usr/bin/env bash
point=
case "\$1 \$2" in
  "run shards") mkdir "\$WORK/killed-\$2" 2> /dev/null && point=working ;;
  "run maps.part-0002") mkdir "\$WORK/killed-\$2" 2> /dev/null && point=synced ;;
esac
if [ -n "\$point" ]; then
  ENGRAFT_KILL_AT=\$2:\$point "$engraft" "\$@"
  ended=\$?
  # Killed, and not ended by itself.
  [ \$ended != 137 ] || touch "\$WORK/killed-\$2/dead"
  exit \$ended
fi
exec "$engraft" "\$@"
STUB
# Slurm as far as slurm.sh knows it: tasks of an array in any order, at once; what they wait for is done when it returns.
cat > bin/sbatch <<'STUB'
#!/usr/bin/env bash
set -euo pipefail
while [ $# -gt 0 ]; do
  case $1 in
    --array=1-*) tasks=${1#--array=1-} ;;
    --dependency=afterok:*) [ -e "$WORK/job-${1#--dependency=afterok:}" ] ;;
    --wrap) shift; script=$1 ;;
  esac
  shift
done
job=$(find "$WORK" -maxdepth 1 -name 'job-*' | wc -l)
pids=
for task in $(seq "$tasks" | sort -R); do
  SLURM_ARRAY_TASK_ID=$task bash -c "$script" >> "$WORK/tasks.log" 2>&1 &
  pids+=" $!"
done
for pid in $pids; do wait "$pid"; done
touch "$WORK/job-$job"
echo "$job"
STUB
chmod +x bin/*
PATH=$work/bin:$PATH

cat > small.toml <<CONFIG
version = 5
extends = "world"
world.scale = 0.1
vocabulary.train.size = 500
shards = { size = { rows = 700 }, items_per_group = 50 }
retrain = { epochs = 1, checkpoint_every = 2, stream.batching = { items = 128 } }
encoder = { hidden_size = 16, intermediate_size = 32, num_hidden_layers = 1 }
corpus.texts = [{ name = "notes", paths = ["$work/texts"], format.text = "line" }]
pmi = { min_count = 2, min_pair_count = 2 }
maps.phrases.neighbours.min_count = 2
CONFIG
printf 'version = 5\nextends = "small.toml"\ncorpus.parts.bytes = "1kB"\n' > parts.toml
"$engraft" run world --set world.scale=0.1 --out made > made.log 2>&1 || { cat made.log >&2; exit 1; }
mkdir texts
cat made/world/text/*.txt > made/all.txt
split --number=l/3 --additional-suffix=.txt made/all.txt texts/
"$engraft" run --config small.toml --out one > one.log 2>&1 || { cat one.log >&2; exit 1; }

install() { # PACKAGE VERSION
  "$tools/$1/bin/python" -c 'pass' 2> /dev/null || python3 -m venv "$tools/$1"
  "$tools/$1/bin/python" -m pip install --quiet --disable-pip-version-check "$1==$2"
}

slurm() { bash "$launchers/slurm.sh" "$1" "$WORK" --config "$work/parts.toml"; }
snakemake() {
  install snakemake 9.27.1
  "$tools/snakemake/bin/snakemake" -s "$launchers/Snakefile" --directory "$WORK" --cores 2 --retries 2 --config "depot=$1" "work=$WORK" "options=--config $work/parts.toml"
}
ray() {
  install ray 2.60.0
  # Two nodes, of one worker each.
  "$tools/ray/bin/python" - "$launchers/ray_run.py" "$1" "$WORK" --config "$work/parts.toml" <<'PYTHON'
import os, subprocess, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1)
cluster.wait_for_nodes()
done = subprocess.run([sys.executable, *sys.argv[1:]], env=dict(os.environ, RAY_ADDRESS=cluster.address))
cluster.shutdown()
sys.exit(done.returncode)
PYTHON
}
spark() {
  install pyspark 4.3.0
  export PYSPARK_PYTHON=$tools/pyspark/bin/python PYSPARK_DRIVER_PYTHON=$tools/pyspark/bin/python
  "$tools/pyspark/bin/spark-submit" --master 'local[2,3]' "$launchers/spark_run.py" "$1" "$WORK" --config "$work/parts.toml"
}
# What a pod of the Job does, for each level in turn.
kubernetes() {
  sed -n '/args:/,/volumeMounts:/{s/^              //p}' "$launchers/kubernetes.yaml" > "$WORK/pod.sh"
  for level in 0 1 2 3 4 5 6 7 8 9; do
    engraft plan --graph --json --depot "$1" --out "$WORK/plan" --config "$work/parts.toml" > "$WORK/plan.jsonl"
    STAGES=$(python3 -c 'import json, sys; print(*(s["stage"] for s in map(json.loads, open(sys.argv[1])) if s["level"] == int(sys.argv[2]) and s["state"] not in ("depot", "fresh")))' "$WORK/plan.jsonl" "$level")
    index=0
    for _ in $STAGES; do
      for _ in 1 2 3; do
        env STAGES="$STAGES" JOB_COMPLETION_INDEX=$index DEPOT="$1" WORK="$WORK" OPTIONS="--config $work/parts.toml" sh -ec "$(cat "$WORK/pod.sh")" && break
      done
      index=$((index + 1))
    done
  done
}

for name in "${names[@]}"; do
  export WORK=$work/$name
  mkdir "$WORK"
  "$name" "$work/depot-$name" > "$name.log" 2>&1 || { cat "$name.log" "$WORK"/*.log >&2; exit 1; }
  [ -e "$WORK/killed-shards/dead" ] && [ -e "$WORK/killed-maps.part-0002/dead" ] || { echo "$name: nobody was killed" >&2; exit 1; }
  "$engraft" pull --depot "$work/depot-$name" --config parts.toml --out "$name-all" > "$name-pull.log" 2>&1 || { cat "$name-pull.log" >&2; exit 1; }
  for stage in one/*/; do
    stage=$(basename "$stage")
    [ "$stage" = live ] || diff -r "one/$stage" "$name-all/$stage" > /dev/null || { echo "$name: $stage differs" >&2; exit 1; }
  done
  # Another text: what comes of it is made again, and no mark of before stands for it.
  cp texts/aa.txt kept.txt
  echo 'Fever was seen again.' >> texts/aa.txt
  "$name" "$work/depot-$name" > "$name.log" 2>&1 || { cat "$name.log" "$WORK"/*.log >&2; exit 1; }
  "$engraft" plan --graph --json --depot "$work/depot-$name" --config parts.toml --out again > again.jsonl
  python3 - again.jsonl <<'PYTHON' || { echo "$name: texts changed, and these were not made again" >&2; exit 1; }
import json, sys
sys.exit(" ".join(stage["stage"] for stage in map(json.loads, open(sys.argv[1])) if stage["state"] not in ("depot", "fresh")) or 0)
PYTHON
  mv kept.txt texts/aa.txt
  echo "$name: identical"
done
