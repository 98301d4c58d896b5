"""Importance of every head over many samples: engraft beside PyTorch as the released script does it, in one run.

Usage: importance.py BENCH [--threads 2 1] [--rounds 3] [--samples 1000]
BENCH is the built program `bench`. The shape is MiniLM's: 6 layers, 384 wide, 12 heads, feed-forward 1536, vocabulary 30522, f32; a classifier
on BERT's pooler; random tokens, 6 to 64 a sample. engraft measures 32 samples in one pass, each of which has gates of its own. The peer is
importance_peer.py: one sample and one backward at a time, as run_bertology.py does it, once with gradients of all weights as there and once
without. All have the same weights and samples and take turns, each in a process of its own. What they find is compared: the run fails where importances
differ. Figures are medians over the rounds (the least beside them). Prints tables in Markdown.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPE = {"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522, "dropout": 0.0}
BATCH = 32
# Of the largest importance: both sides compute in f32.
SLACK = 1e-4


def said(command, threads):
    """The JSON object that a command prints; commands that print nothing give None."""
    words = [str(word) for word in command]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, env={**os.environ, "RAYON_NUM_THREADS": str(threads)})
    if ran.returncode:
        sys.exit(f"{words[:2]}: {ran.stderr}")
    return json.loads(ran.stdout) if ran.stdout else None


def flat(found):
    return [x for layer in found["importances"] for x in layer]


def off(found, expected):
    """The largest difference of two measurements, as a share of the largest importance."""
    return max(abs(a - b) for a, b in zip(flat(found), flat(expected), strict=True)) / max(flat(expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    before, torch = os.getloadavg()[0], ""
    chance = random.Random(7)
    lengths = [chance.randint(6, 64) for _ in range(given.samples)]
    samples = {"ids": [[chance.randrange(SHAPE["vocabulary"]) for _ in range(length)] for length in lengths], "classes": [chance.randrange(2) for _ in lengths]}
    with tempfile.TemporaryDirectory() as folder:
        weights, rows = Path(folder) / "weights.safetensors", Path(folder) / "samples.json"
        rows.write_text(json.dumps(samples))
        bench, peer = given.bench.resolve(), Path(__file__).resolve().parent / "importance_peer.py"
        shape = json.dumps(SHAPE)
        said([bench, "importance", "weights", shape, weights], 1)
        for threads in given.threads:
            sides = {
                f"engraft, {BATCH} samples at a time": [bench, "importance", "measure", shape, weights, rows, BATCH, threads],
                "PyTorch, as released": [sys.executable, peer, shape, weights, rows, threads, "released"],
                "PyTorch, weights without gradients": [sys.executable, peer, shape, weights, rows, threads, "frozen"],
            }
            found = {name: [] for name in sides}
            for _ in range(given.rounds):
                for name, command in sides.items():
                    found[name].append(said(command, threads))
            ours = next(iter(found.values()))
            apart = max(off(run, ours[0]) for runs in found.values() for run in runs)
            if not apart < SLACK:
                sys.exit(f"importances differ by {apart} of the largest")
            torch = found["PyTorch, as released"][0]["torch"]
            print(f"{given.samples:,} samples, {sum(lengths):,} tokens, {threads} thread{'s' * (threads > 1)}; importances differ by {apart:.0e} of the largest, at most.\n")
            print("| | seconds | seconds of the processor | samples/s | peak MiB | ratio of medians | of the least | of the processor |")
            print("|---|--:|--:|--:|--:|--:|--:|--:|")
            middle, least = ({name: {key: of(run[key] for run in runs) for key in ("seconds", "processor")} for name, runs in found.items()} for of in (statistics.median, min))
            us = next(iter(found))
            for name, runs in found.items():
                cells = [f"{middle[name][key]:,.1f} ({least[name][key]:,.1f})" for key in ("seconds", "processor")]
                cells += [f"{given.samples / middle[name]['seconds']:,.0f}", f"{max(run['peak_mib'] for run in runs):,.0f}"]
                cells += [f"{of[name][key] / of[us][key]:.2f}" for of, key in ((middle, "seconds"), (least, "seconds"), (middle, "processor"))]
                print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            print()
    print(f"Ratios: over engraft. {os.cpu_count()} cores, {platform.system()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; {given.rounds} rounds; "
          f"PyTorch {torch}, Python {platform.python_version()}.")


main()
