"""Eight tasks answered by one encoder in one pass, beside eight encoders with a task each: `engraft predict` end to end, in one run.

    python benches/tasks.py ENGRAFT DATA [--out out/bench-tasks] [--lines 2000] [--rounds 3]

DATA has a folder `minilm`. The models are made by benches/tasks.toml (a minute), then asked about sentences of the embedded world's texts, with
loading and tokenising: the one model once, the eight models one after the other. That both say the same form is checked: an answer of each task for every
line. Prints a table in Markdown; the ratio is that of the medians.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path


def asked(engraft, model, lines):
    """Seconds, and the answers."""
    begun = time.perf_counter()
    ran = subprocess.run([str(engraft), "predict", str(model), str(lines)], capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(ran.stderr)
    return time.perf_counter() - begun, [json.loads(line) for line in ran.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engraft", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out/bench-tasks"))
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    engraft, config = args.engraft.resolve(), Path(__file__).resolve().parent / "tasks.toml"
    run = [str(engraft), "run", "scores", "--config", str(config), "--data", str(args.data), "--out", str(args.out)]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    text = "\n".join(path.read_text() for path in sorted((args.out / "world" / "text").glob("*.txt")))
    sentences = [sentence.strip() + "." for line in text.splitlines() for sentence in line.split(".") if len(sentence) > 20]
    if len(sentences) < args.lines:
        sys.exit(f"the world has {len(sentences)} sentences: ask for no more with --lines")
    lines = args.out / "lines.jsonl"
    lines.write_text("".join(json.dumps({"text": sentence}) + "\n" for sentence in sentences[: args.lines]))
    together = args.out / "recipe-eight-1" / "model"
    alone = sorted(args.out.glob("finetune-base-*-1/model"))
    assert len(alone) == 8, alone
    one, eight = [], []
    for _ in range(args.rounds):
        seconds, answers = asked(engraft, together, lines)
        one.append(seconds)
        assert len(answers) == args.lines and all(len(answer["tasks"]) == 8 for answer in answers), answers[0]
        seconds = 0.0
        for model in alone:
            of_one, answers = asked(engraft, model, lines)
            seconds += of_one
            assert len(answers) == args.lines
        eight.append(seconds)
    print("| | seconds (median) | the least | lines/s, all eight tasks |\n|---|--:|--:|--:|")
    for name, seconds in (("one encoder, eight tasks", one), ("eight encoders", eight)):
        middle = statistics.median(seconds)
        print(f"| {name} | {middle:.2f} | {min(seconds):.2f} | {args.lines / middle:,.0f} |")
    print(f"\nRatio of the medians {statistics.median(eight) / statistics.median(one):.2f}, of the least {min(eight) / min(one):.2f}. {args.lines} sentences; {os.cpu_count()} cores, {platform.system()}.")


if __name__ == "__main__":
    main()
