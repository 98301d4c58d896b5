"""A retraining step under a hard head mask beside one without a mask, in one run.

Usage: masked.py BENCH [--threads 2 1] [--rounds 3] [--steps 6]
BENCH is the built program `bench`. The shape is MiniLM's: 6 layers, 384 wide, 12 heads, feed-forward 1536, vocabulary 30522, f32; 16 rows of 64 tokens,
relation classification; 5 heads of every layer are kept, 7 retrained. With `shared = "freeze"` nothing else of the encoder is trained: wholly frozen parameters are no
variables, so no gradient of theirs is computed. The three ways take turns, each in a process of its own. Prints tables in Markdown.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

SHAPE = {"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522, "dropout": 0.0}
WAYS = {"no mask": "open", 'hard mask, `shared = "train"`': "train", 'hard mask, `shared = "freeze"`': "freeze"}
WARMUP = 2


def said(bench, of):
    ran = subprocess.run([str(bench), "masked_step", json.dumps(of)], check=False, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{bench}: {ran.stderr}")
    return json.loads(ran.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6)
    given = parser.parse_args()
    before = os.getloadavg()[0]
    for threads in given.threads:
        of = {"shape": SHAPE, "rows": 16, "length": 64, "kept": 5, "warmup": WARMUP, "steps": given.steps, "threads": threads}
        found = {name: [] for name in WAYS}
        for _ in range(given.rounds):
            for name, heads in WAYS.items():
                found[name].append(said(given.bench.resolve(), of | {"heads": heads}))
        every = {name: {key: [ms for run in runs for ms in run[key]] for key in ("total", "processor")} for name, runs in found.items()}
        middle, least = ({name: {key: pick(ms) for key, ms in keys.items()} for name, keys in every.items()} for pick in (statistics.median, min))
        print(f"{threads} thread{'s' * (threads > 1)}: median milliseconds a step (the least). Share: of the step without a mask.\n")
        print("| | numbers with a gradient | milliseconds | of the processor | peak MiB | share of medians | of the least | of the processor |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|")
        for name, runs in found.items():
            cells = [f"{runs[0]['trained']:,}", *(f"{middle[name][key]:,.0f} ({least[name][key]:,.0f})" for key in ("total", "processor"))]
            cells.append(f"{max(run['peak_mib'] for run in runs):,.0f}")
            cells += [f"{pick[name][key] / pick['no mask'][key]:.2f}" for pick, key in ((middle, "total"), (least, "total"), (middle, "processor"))]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print()
    print(f"{os.cpu_count()} cores, {platform.system()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; {given.rounds} runs of {given.steps} steps each, "
          f"after {WARMUP} unmeasured; Python {platform.python_version()}.")


main()
