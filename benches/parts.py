"""Counts of a corpus in parts beside those of the whole.

Usage: parts.py ENGRAFT DATA VOCABULARY [--out OUT]
ENGRAFT is the binary; DATA has medquad/, hoc/, bc5cdr/ and pubmedqa/ as published; VOCABULARY is BERT's vocab.txt. The texts once, and twelve times with their
lines shuffled and, from the second time on, a quarter of the words replaced by others of them, each in 64 files that are a part each. Seconds are on the
clock, and of the processor where it says so, medians of three; those of the parts are of all parts in one process, those of the join do not include the parts.
Two threads, as benches/scale.py reads the table. Whole and joined counts must be the same bytes; some 2 GB below OUT. Prints a table in Markdown.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import sys
from pathlib import Path

from maps import table, texts
from runs import Runs

FILES, RUNS, THREADS = 64, 3, 2


def enlarged(lines):
    """Twelve times as much."""
    chance = random.Random(1)
    words = "".join(lines).split()
    larger = list(lines)
    for _ in range(11):
        for line in lines:
            larger.append(" ".join(chance.choice(words) if chance.random() < 0.25 else word for word in line.split()) + "\n")
    chance.shuffle(larger)
    return larger


def compared(runs, name, lines, given):
    """A row of the table."""
    work = runs.work
    folder = work / f"files-{len(lines)}"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:02}.txt").write_text("".join(lines[number * len(lines) // FILES : (number + 1) * len(lines) // FILES]), encoding="utf-8")
    path = work / f"{folder.name}.toml"
    path.write_text(f'version = 5\nvocabulary.file = "{given.vocabulary.resolve()}"\ncounts = {{}}\n[corpus]\ntexts = [{{ name = "files", paths = ["{folder}"], format.text = "line" }}]\n', encoding="utf-8")
    options = ["--config", path, "--data", given.data.resolve()]
    cut = [*options, "--set", 'corpus.parts.bytes="1B"']
    costs = {"whole": [], "parts": [], "joined": []}

    def measured(what, stages, out, *how):
        processor, _, seconds = runs.run(stages, out, *how, jobs=THREADS)
        costs[what].append((seconds, processor))

    for _ in range(RUNS):
        for out in ("whole", "parts"):
            shutil.rmtree(work / out, ignore_errors=True)
        measured("whole", "counts", "whole", *options)
        names = runs.parts("counts", "parts", *cut)
        measured("parts", " ".join(names), "parts", *cut)
        measured("joined", "counts", "parts", *cut)
        for file in (work / "whole/counts").iterdir():
            if file.read_bytes() != (work / "parts/counts" / file.name).read_bytes():
                sys.exit(f"{name}: {file.name} of the joined counts differs from that of the whole corpus")
    medians = {what: [statistics.median(of) for of in zip(*cost)] for what, cost in costs.items()}
    times = [medians["whole"][0], *medians["parts"], *medians["joined"]]
    indices = [json.loads((work / of / "index.json").read_text(encoding="utf-8")) for of in ("whole/counts", *(f"parts/{part}" for part in names))]
    distinct = [index["distinct"] for index in indices]
    pairs = [index["pairs"]["rows"] for index in indices]
    written = [runs.size("whole/counts"), sum(runs.size(f"parts/{part}") for part in names)]
    return [name, *(f"{of:.2f}" for of in times), *(f"{of:,}" for of in (distinct[0], sum(distinct[1:]), pairs[0], sum(pairs[1:]), *written))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engraft", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out/bench-parts"))
    given = parser.parse_args()
    work = given.out.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if any(work.iterdir()):
        sys.exit(f"{work} is not empty")
    before = os.getloadavg()[0]
    lines = [" ".join(one.split()) + "\n" for one in texts(given.data.resolve())]
    runs = Runs(given.engraft.resolve(), work)
    rows = [compared(runs, name, some, given) for name, some in (("27 MB", lines), ("309 MB", enlarged(lines)))]
    print(f"Texts in {FILES} files, each a part, counted by {THREADS} threads:\n")
    heads = ["text", "whole, s", "64 parts, s", "64 parts, processor s", "joined, s", "joined, processor s"]
    table([*heads, *(f"{what}: {of}" for what in ("words", "pairs", "bytes") for of in ("whole", "parts"))], rows)
    print(f"{os.cpu_count()} cores; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; medians of {RUNS} runs.")


if __name__ == "__main__":
    main()
