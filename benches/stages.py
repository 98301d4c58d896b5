"""Stages that docs/scale.md needs and no other benchmark times, each as a process of its own with one thread.

Usage: stages.py ENGRAFT DATA [--shards N] [--parts BYTES] [--scale S] [--out OUT]
ENGRAFT is the binary; DATA has hsdn/, mesh/, medquad/, hoc/, bc5cdr/ and pubmedqa/ as published (configs/kam-maps.toml). The corpus is counted whole and in N
shards (8), which are merged, and in parts of so many bytes (4 MB), whose counts and maps are joined; the script fails unless what comes out is the same
bytes. All cores count it in 64 files, whole and each file as a part. The vocabulary is trained on the corpus as benches/maps.py reads it;
the split is that of the world at scale S (60), 80, 10 and 10 percent. Seconds are of the processor, so that other work on the machine counts little, and
include the start of the process and the digests of what is read. Prints tables in Markdown. Python's standard library is enough.
"""

import argparse
import gzip
import json
import os
import platform
import re
import sys
import tempfile
from pathlib import Path

from maps import table, texts
from runs import Runs

FILES = 64
ROOT = Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser()
parser.add_argument("engraft", type=Path)
parser.add_argument("data", type=Path)
parser.add_argument("--shards", type=int, default=8)
parser.add_argument("--parts", default="4MB")
parser.add_argument("--scale", type=float, default=60.0)
parser.add_argument("--out", type=Path)
given = parser.parse_args()
engraft, data = given.engraft.resolve(), given.data.resolve()
work = (given.out or Path(tempfile.mkdtemp(prefix="engraft-stages-"))).resolve()
work.mkdir(parents=True, exist_ok=True)
runs = Runs(engraft, work)
run, size, facts, cut = runs.run, runs.size, runs.facts, runs.parts
kam = ["--config", ROOT / "configs/kam-maps.toml", "--data", data]
world = ["--set", f"world.scale={given.scale:g}", "--set", "split.parts.ratio.train=0.8"]


def read(folder):
    return json.loads((work / folder / "index.json").read_text(encoding="utf-8"))


before = os.getloadavg()[0]
text = "".join(" ".join(one.split()) + "\n" for one in texts(data)).encode()
(work / "text").mkdir(exist_ok=True)
(work / "text/corpus.txt").write_bytes(text)

rows = []


def measured(name, what, amount, cost, written):
    processor, peak, _ = cost
    rows.append([name, f"{amount:,}", what, f"{processor:.1f}", f"{amount / processor:,.0f}", f"{peak:,.0f}", f"{written / 1e6:.2f}"])


cost = run("counts", "whole", *kam)
counts = read("whole/counts")
measured("`counts`", "words", counts["occurrences"], cost, size("whole/counts"))

parts, folders = [], []
for number in range(1, given.shards + 1):
    run("counts", f"shard-{number}", *kam, "--set", f"counts.shard={number}/{given.shards}")
    parts.append(read(f"shard-{number}/counts"))
    folders.append(str(work / f"shard-{number}/counts"))
cost = run("counts", "merged", "--set", f"counts.merge={folders}")
for name in ("words", "pairs", "adjacent"):
    one, other = (work / out / f"counts/{name}.parquet" for out in ("whole", "merged"))
    if one.read_bytes() != other.read_bytes():
        sys.exit(f"{name}.parquet: merged counts differ from those of the whole corpus")
pairs = sum(part["pairs"]["rows"] + part["adjacent"]["rows"] for part in parts)
measured(f"`counts`, {given.shards} shards merged", "pairs read", pairs, cost, size("merged/counts"))



def same(stage, other, whole="whole"):
    """Fails unless a stage of the output folder `other` has the bytes of the whole corpus's."""
    one, two = ({file.relative_to(work / out): file.read_bytes() for file in (work / out / stage).iterdir() if file.is_file()} for out in (whole, other))
    if one != two:
        sys.exit(f"{stage}: what {other} has differs from that of the whole corpus")


in_parts = [*kam, "--set", f'corpus.parts.bytes="{given.parts}"']
names = cut("counts", "parts", *in_parts)
run(" ".join(names), "parts", *in_parts)
cost = run("counts", "parts", *in_parts)
same("counts", "parts")
of_parts = [read(f"parts/{name}") for name in names]
pairs = sum(part["pairs"]["rows"] + part["adjacent"]["rows"] for part in of_parts)
measured(f"`counts`, joined ({len(names)} parts)", "pairs read", pairs, cost, size("parts/counts"))

run("triples", "whole", *kam)
run("vocabulary", "whole", *kam)
cost = run("pmi", "whole", *kam)
pmi = read("whole/pmi")
measured("`pmi`", "pairs read", counts["pairs"]["rows"], cost, size("whole/pmi"))
cost = run("maps", "whole", *kam)
samples = read("whole/maps")["texts"]["train"]["samples"]
measured("`maps`", "samples", samples, cost, size("whole/maps"))

run(" ".join(["pmi", *cut("maps", "parts", *in_parts)]), "parts", *in_parts)
cost = run("maps", "parts", *in_parts)
same("maps", "parts")
measured(f"`maps`, joined ({len(names)} parts)", "samples", samples, cost, size("parts/maps"))

trained = ["--set", f'vocabulary.train={{size = 30000, text = ["{work}/text"]}}']
run("triples", "trained", *kam, *trained)
cost = run("vocabulary", "trained", *kam, *trained)
measured("`vocabulary`, trained on text", "bytes of text", len(text), cost, size("trained/vocabulary"))

run("triples", "world", *world)
cost = run("split", "world", *world)
triples = sum(facts("world", "split")["triples"][part] for part in ("train", "valid", "test"))
measured("`split`, the world", "triples", triples, cost, size("world/split"))

# The same text in files of about one size, counted by all cores: whole, and in as many parts, which are then joined.
lines = text.splitlines(keepends=True)
(work / "files").mkdir(exist_ok=True)
for number in range(FILES):
    (work / f"files/{number:02}.txt").write_bytes(b"".join(lines[number * len(lines) // FILES:(number + 1) * len(lines) // FILES]))
plain = work / "files.toml"
plain.write_text(f"""version = 5
vocabulary.file = "{work}/whole/vocabulary/vocab.txt"
counts = {{}}
[corpus]
texts = [{{ name = "files", paths = ["{work}/files"], format.text = "line" }}]
""", encoding="utf-8")
cores = os.cpu_count()
by_all = ["--config", plain]
whole_of_files = run("counts", "files", *by_all, jobs=cores)
by_all += ["--set", 'corpus.parts.bytes="1B"']
names = cut("counts", "parts-of-files", *by_all)
counted = run(" ".join(names), "parts-of-files", *by_all, jobs=cores)
joined = run("counts", "parts-of-files", *by_all, jobs=cores)
same("counts", "parts-of-files", "files")

print("The corpus of `configs/kam-maps.toml`:\n")
mean = sum(part["distinct"] for part in parts) / len(parts), sum(part["pairs"]["rows"] for part in parts) / len(parts)
occurrences = sum(part["occurrences"] for part in parts) / len(parts)
# About as BERT's basic tokenizer splits.
basic = len(re.findall(r"\w+|[^\w\s]", text.decode()))
table(["", "whole", f"mean of {given.shards} shards"], [
    ["words and punctuation marks", f"{counts['occurrences']:,}", f"{occurrences:,.0f}"],
    ["sentences", f"{counts['segments']:,}", ""],
    ["words and punctuation marks a sentence", f"{counts['occurrences'] / counts['segments']:.1f}", ""],
    ["distinct words", f"{counts['distinct']:,}", f"{mean[0]:,.0f}"],
    ["pairs", f"{counts['pairs']['rows']:,}", f"{mean[1]:,.0f}"],
    ["adjacent pairs", f"{counts['adjacent']['rows']:,}", f"{sum(part['adjacent']['rows'] for part in parts) / len(parts):,.0f}"],
    ["words with scores (20 times and more)", f"{pmi['words']['kept']:,}", ""],
    ["pairs with scores", f"{pmi['pairs']['kept']:,}", ""],
    ["bytes of text a word or punctuation mark", f"{len(text) / basic:.2f}", ""],
    ["text, by gzip, of its size", f"{len(gzip.compress(text, 6)) / len(text):.3f}", ""],
])
print("Processor seconds with one thread:\n")
table(["stage", "input", "unit", "processor seconds", "per second of one core", "peak MiB", "written, MB"], rows)
print(f"The same text in {FILES} files, counted by {cores} threads at once:\n")
table(["`counts`", "seconds", "processor seconds", "peak MiB"], [
    [name, f"{seconds:.2f}", f"{processor:.2f}", f"{peak:,.0f}"]
    for name, (processor, peak, seconds) in (("whole", whole_of_files), (f"{len(names)} parts", counted), ("the parts joined", joined))
])
print(f"Counting the parts and joining them takes {(counted[2] + joined[2]) / counted[2]:.2f} times as long as counting them.\n")
print(f"{os.cpu_count()} cores, {platform.system()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; one run each; Python {platform.python_version()}.")
