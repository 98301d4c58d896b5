"""Counts of a corpus in parts beside those of the whole.

Usage: parts.py ENGRAFT DATA VOCABULARY [--out OUT]
ENGRAFT is the binary; DATA has medquad/, hoc/, bc5cdr/ and pubmedqa/ as published; VOCABULARY is BERT's vocab.txt. The texts once, and twelve times with their
lines shuffled and, from the second time on, a quarter of the words replaced by others of them, each in 64 files that are a part each. Seconds are on the
clock, and of the processor where it says so, medians of three; those of the parts are of all parts in one process, those of the join do not include the parts.
By two threads and by 16, in turn: benches/scale.py projects 16 cores from the latter, which share memory and sort as they would there. Whole and joined counts must be the same bytes;
some 2 GB below OUT. Prints a table in Markdown.
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

FILES, RUNS, THREADS = 64, 3, (2, 16)


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
    """The rows of a text, one for each number of threads."""
    folder = runs.work / f"files-{len(lines)}"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number:02}.txt").write_text("".join(lines[number * len(lines) // FILES : (number + 1) * len(lines) // FILES]), encoding="utf-8")
    path = runs.work / f"{folder.name}.toml"
    path.write_text(f'version = 5\nvocabulary.file = "{given.vocabulary.resolve()}"\ncounts = {{}}\n[corpus]\ntexts = [{{ name = "files", paths = ["{folder}"], format.text = "line" }}]\n', encoding="utf-8")
    options = ["--config", path, "--data", given.data.resolve()]
    costs = {threads: [] for threads in THREADS}
    for _ in range(RUNS):
        for threads in THREADS:
            costs[threads].append(counted(runs, name, options, threads))
    rows = []
    for threads, of in costs.items():
        seconds = [statistics.median(each) for each in zip(*(cost for cost, _ in of))]
        rows.append([name, str(threads), *(f"{each:.2f}" for each in seconds), *(f"{each:,}" for each in of[0][1])])
    return rows


def counted(runs, name, options, threads):
    """Seconds, and the words, pairs and bytes of whole and parts."""
    work, cut = runs.work, [*options, "--set", 'corpus.parts.bytes="1B"']
    for out in ("whole", "parts"):
        shutil.rmtree(work / out, ignore_errors=True)
    names = runs.parts("counts", "parts", *cut)
    costs = [runs.run("counts", "whole", *options, jobs=threads), *(runs.run(stages, "parts", *cut, jobs=threads) for stages in (" ".join(names), "counts"))]
    for file in (work / "whole/counts").iterdir():
        if file.read_bytes() != (work / "parts/counts" / file.name).read_bytes():
            sys.exit(f"{name}: {file.name} of the joined counts differs from that of the whole corpus")
    indices = [json.loads((work / of / "index.json").read_text(encoding="utf-8")) for of in ("whole/counts", *(f"parts/{part}" for part in names))]
    sizes = []
    for each in ([index["distinct"] for index in indices], [index["pairs"]["rows"] for index in indices]):
        sizes += [each[0], sum(each[1:])]
    sizes += [runs.size("whole/counts"), sum(runs.size(f"parts/{part}") for part in names)]
    return [of for processor, _, seconds in costs for of in (seconds, processor)], sizes


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
    rows = [row for name, some in (("27 MB", lines), ("309 MB", enlarged(lines))) for row in compared(runs, name, some, given)]
    print(f"Texts in {FILES} files, each a part:\n")
    heads = [head for what in ("whole", "64 parts", "joined") for head in (f"{what}, s", f"{what}, processor s")]
    table(["text", "threads", *heads, *(f"{what}: {of}" for what in ("words", "pairs", "bytes") for of in ("whole", "parts"))], rows)
    print(f"{os.cpu_count()} cores; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; medians of {RUNS} runs.")


if __name__ == "__main__":
    main()
