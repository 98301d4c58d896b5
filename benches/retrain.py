"""Retraining on a graph as it is streamed: engraft beside the usual PyTorch loop, in one run.

Usage: retrain.py BENCH SHARDS [--threads 2 1] [--rounds 3] [--steps 8] [--items 32] [--lora]
BENCH is the built program `bench`, SHARDS a folder of four-task shards. The shape is MiniLM's: 6 layers, 384 wide, 12 heads, feed-forward
1536, vocabulary 30522, f32. A step shows the same triples in all four KIMERA tasks. engraft reads, collates and trains without padding; the peer is
retrain_peer.py: the same samples in the same order, padded to the longest row of their batch, scaled_dot_product_attention, fused AdamW. Both begin with
the same weights, and the run fails where their losses come apart. They take turns, each in a process of its own. Useful tokens are those that are no
padding. With --lora adapters of rank 8 are trained in the encoder's place, and the peer is transformers' BERT with PEFT's. Prints tables in Markdown.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SHAPE = {"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522, "dropout": 0.0}
WARMUP = 2
# Of a loss: both sides compute in f32 and move the weights after each step.
SLACK = 2e-3


def said(command, threads):
    words = [str(word) for word in command]
    ran = subprocess.run(words, check=False, capture_output=True, text=True, env={**os.environ, "RAYON_NUM_THREADS": str(threads)})
    if ran.returncode:
        sys.exit(f"{words[:2]}: {ran.stderr}")
    return json.loads(ran.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("shards", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--items", type=int, nargs="+", default=[32])
    parser.add_argument("--lora", action="store_true", help="train low-rank adapters of queries and values")
    given = parser.parse_args()
    before, torch = os.getloadavg()[0], ""
    bench, peer = given.bench.resolve(), Path(__file__).resolve().parent / "retrain_peer.py"
    for threads in given.threads:
        print(f"{threads} thread{'s' * (threads > 1)}: median milliseconds a step (the least). Ratios: engraft over PyTorch, in useful tokens per second.\n")
        print("| triples a step | useful tokens a step | padding | | milliseconds | of the processor | useful tokens/s | peak MiB | ratio of medians | of the least | of the processor |")
        print("|--:|--:|--:|---" + "|--:" * 7 + "|")
        for items in given.items:
            of = {"shape": SHAPE, "shards": str(given.shards.resolve()), "items": items, "warmup": WARMUP, "steps": given.steps, "threads": threads}
            of |= {"lora": {}} if given.lora else {}
            with tempfile.TemporaryDirectory() as folder:
                prepared = said([bench, "retrain_steps", "prepare", json.dumps(of), folder], threads)
                sides = {"engraft": [bench, "retrain_steps", "measure", json.dumps(of)], "PyTorch": [sys.executable, peer, json.dumps(of), folder]}
                found = {name: [] for name in sides}
                for _ in range(given.rounds):
                    for name, command in sides.items():
                        found[name].append(said(command, threads))
            ours, theirs = (found[name][0] for name in sides)
            apart = max(abs(a / b - 1) for a, b in zip(ours["losses"], theirs["losses"], strict=True))
            if ours["tokens"] != theirs["tokens"] or not apart < SLACK:
                sys.exit(f"the two sides do not make the same steps: losses {ours['losses']} and {theirs['losses']}, tokens {ours['tokens']} and {theirs['tokens']}")
            torch = theirs["torch"]
            tokens = statistics.mean(ours["tokens"])
            every = {name: {key: [ms for run in runs for ms in run[key]] for key in ("total", "processor")} for name, runs in found.items()}
            middle, least = ({name: {key: of(ms) for key, ms in keys.items()} for name, keys in every.items()} for of in (statistics.median, min))
            for name, runs in found.items():
                cells = [f"{middle[name][key]:,.0f} ({least[name][key]:,.0f})" for key in ("total", "processor")]
                cells += [f"{tokens / middle[name]['total'] * 1e3:,.0f}", f"{max(run['peak_mib'] for run in runs):,.0f}"]
                cells += [f"{of['PyTorch'][key] / of[name][key]:.2f}" for of, key in ((middle, "total"), (least, "total"), (middle, "processor"))]
                first = [f"{items}", f"{tokens:,.0f}", f"{prepared['padding']:.0%}"] if name == "engraft" else [""] * 3
                print("| " + " | ".join([*first, name, *cells]) + " |", flush=True)
        print(f"\nLosses of all steps differ by {apart:.0e} of theirs, at most.\n")
    print(f"{os.cpu_count()} cores, {platform.system()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; {given.rounds} runs of {given.steps} steps each, "
          f"after {WARMUP} unmeasured; PyTorch {torch}, Python {platform.python_version()}.")


main()
