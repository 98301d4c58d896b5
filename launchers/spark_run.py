"""Runs all stages of a config by Spark: a job for each level of the graph, a task for each stage, artifacts by the depot.

    spark-submit launchers/spark_run.py s3://bucket/engraft /scratch/engraft --config engraft.toml --data /data

What fails is tried again as often as spark.task.maxFailures says (with a local master: local[N,FAILURES])."""
import json
import subprocess
import sys

from pyspark.sql import SparkSession

depot, work, *options = sys.argv[1:]
plan = ["engraft", "plan", "--graph", "--json", "--depot", depot, "--out", f"{work}/plan", *options]
stages = [json.loads(line) for line in subprocess.run(plan, stdout=subprocess.PIPE, text=True).stdout.splitlines()]
if not stages or any(stage["error"] for stage in stages):
    sys.exit("\n".join(f"{stage['stage']}: {stage['error']}" for stage in stages if stage["error"]) or 2)
levels = {}
# What the depot has is left there.
for stage in (stage for stage in stages if stage["state"] not in ("depot", "fresh")):
    levels.setdefault(stage["level"], []).append(stage["stage"])


def run(stage):
    subprocess.run(["engraft", "run", stage, "--depot", depot, "--out", f"{work}/{stage}", *options], check=True)


spark = SparkSession.builder.appName("engraft").getOrCreate()
for level in sorted(levels):
    names = levels[level]
    spark.sparkContext.parallelize(names, len(names)).foreach(run)
    print(f"level {level}: {' '.join(names)}")
spark.stop()
