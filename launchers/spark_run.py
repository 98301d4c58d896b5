"""Runs all stages of a config by Spark: a job for each level of the graph, a task for each stage, artifacts by the depot.

    spark-submit launchers/spark_run.py s3://bucket/engraft /scratch/engraft --config engraft.toml --data /data

What fails is tried again as often as spark.task.maxFailures says (with a local master: local[N,FAILURES])."""
import json
import subprocess
import sys

from pyspark.sql import SparkSession

depot, work, *options = sys.argv[1:]
plan = ["engraft", "plan", "--graph", "--json", "--depot", depot, "--out", f"{work}/plan", *options]
lines = subprocess.run(plan, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
levels = {}
# What the depot has is left there.
for stage in (stage for stage in map(json.loads, lines) if stage["state"] not in ("depot", "fresh")):
    levels.setdefault(stage["level"], []).append(stage["stage"])


def run(stage):
    subprocess.run(["engraft", "run", stage, "--depot", depot, "--out", f"{work}/{stage}", *options], check=True)


spark = SparkSession.builder.appName("engraft").getOrCreate()
for level in sorted(levels):
    stages = levels[level]
    spark.sparkContext.parallelize(stages, len(stages)).foreach(run)
    print(f"level {level}: {' '.join(stages)}")
spark.stop()
