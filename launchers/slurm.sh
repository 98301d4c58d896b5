#!/usr/bin/env bash
# Runs all stages of a config by Slurm: an array for each level of the graph, a task for each stage, artifacts by the depot.
#   bash launchers/slurm.sh s3://bucket/engraft /scratch/engraft --config engraft.toml --data /data
# WORK is seen by all nodes: a training that is ended goes on there. What is done already is left out, so the same command goes on after a failure.
set -euo pipefail
depot=$1 work=$2
shift 2
mkdir -p "$work"
# It ends with 1 where a stage cannot run; why is in its line.
engraft plan --graph --json --depot "$depot" --out "$work/plan" "$@" > "$work/plan.jsonl" || [ $? -eq 1 ]
python3 - "$work" <<'PYTHON'
import json, sys
work, levels = sys.argv[1], {}
for line in map(json.loads, open(f"{work}/plan.jsonl")):
    if line["error"]:
        sys.exit(f"{line['stage']}: {line['error']}")
    if line["state"] not in ("depot", "fresh"):
        levels.setdefault(line["level"], []).append(line["stage"])
for level, stages in levels.items():
    print("\n".join(stages), file=open(f"{work}/level-{level}", "w"))
print("\n".join(map(str, sorted(levels))), file=open(f"{work}/levels", "w"))
PYTHON
options=$(printf '%q ' --depot "$depot" "$@")
after=
while read -r level; do
  [ -n "$level" ] || continue
  tasks=$(wc -l < "$work/level-$level")
  after=$(sbatch --parsable --job-name="engraft-$level" --kill-on-invalid-dep=yes --array="1-$tasks" ${after:+--dependency=afterok:$after} ${SBATCH_OPTIONS:-} --wrap "
    stage=\$(sed -n \"\${SLURM_ARRAY_TASK_ID}p\" $(printf %q "$work/level-$level"))
    for try in 1 2 3; do engraft run \"\$stage\" --out $(printf %q "$work")/\"\$stage\" $options && exit 0; done
    exit 1")
  echo "level $level: $tasks stages, job $after"
done < "$work/levels"
