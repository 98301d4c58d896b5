"""Runs all stages of a config by Ray: a task for each stage, artifacts by the depot.

    python launchers/ray_run.py s3://bucket/engraft /scratch/engraft --config engraft.toml --data /data

A stage begins when those that it reads are done. What dies is tried again, on any node: a training goes on where WORK is seen by all."""
import json
import subprocess
import sys

import ray

depot, work, *options = sys.argv[1:]
plan = ["engraft", "plan", "--graph", "--json", "--depot", depot, "--out", f"{work}/plan", *options]
stages = [json.loads(line) for line in subprocess.run(plan, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
if not stages or any(stage["error"] for stage in stages):
    sys.exit("\n".join(f"{stage['stage']}: {stage['error']}" for stage in stages if stage["error"]) or 2)


@ray.remote(max_retries=2, retry_exceptions=True)
def run(stage, *reads):
    subprocess.run(["engraft", "run", stage, "--depot", depot, "--out", f"{work}/{stage}", *options], check=True)
    return stage


ray.init(address="auto")
done = {}
# Every stage comes after those that it reads; what the depot has is left there.
for stage in (stage for stage in stages if stage["state"] not in ("depot", "fresh")):
    done[stage["stage"]] = run.remote(stage["stage"], *(done[read] for read in stage["reads"] if read in done))
print("\n".join(ray.get(list(done.values()))))
