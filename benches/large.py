"""What docs/scale.md needs of large texts and graphs and benches/stages.py does not measure: stages of a corpus in parts, and of a Metathesaurus of 20 M relations.

Usage: large.py ENGRAFT DATA VOCABULARY [--bench BENCH] [--out OUT]
ENGRAFT is the binary; DATA has hsdn/, rotmensch/, mesh/, medquad/, hoc/, bc5cdr/ and pubmedqa/ as published; VOCABULARY is BERT's vocab.txt. With BENCH, the
benchmarks' binary, a Metathesaurus is invented as well (2.6 GB, below OUT). Each stage is a process of its own with one thread, whose inputs are there.
Seconds are of the processor and include the start of the process and the digests of what is read. Counts in parts: parts.py. Prints a table in Markdown. Needs pyarrow.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from maps import table, texts
from runs import Runs, timed

ROOT = Path(__file__).resolve().parent.parent
TIMES = 10
parser = argparse.ArgumentParser()
parser.add_argument("engraft", type=Path)
parser.add_argument("data", type=Path)
parser.add_argument("vocabulary", type=Path)
parser.add_argument("--bench", type=Path)
parser.add_argument("--out", type=Path)
given = parser.parse_args()
engraft, data, vocabulary = (path.resolve() for path in (given.engraft, given.data, given.vocabulary))
work = (given.out or Path(tempfile.mkdtemp(prefix="engraft-large-"))).resolve()
work.mkdir(parents=True, exist_ok=True)
runs = Runs(engraft, work)
run, size, facts, cut = runs.run, runs.size, runs.facts, runs.parts
if any(work.glob("*/ledger.jsonl")):
    sys.exit(f"{work} has results of an earlier run, which would not be made again: remove them first (META may stay)")
rows, made = [], {}


def measured(name, what, amount, cost, written):
    processor, peak, _ = cost
    rows.append([name, f"{amount:,}", what, f"{processor:.1f}", f"{amount / processor:,.0f}", f"{peak:,.0f}", f"{written / 1e6:.3f}"])
    print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)


def config(name, text):
    path = work / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return ["--config", path, "--data", data]


before = os.getloadavg()[0]
lines = [" ".join(one.split()) + "\n" for one in texts(data)]
text = "".join(lines).encode()
for number in range(TIMES):
    path = work / f"text/{number}.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text)

# Mentions, by the terms of MeSH and HSDN.
tagging = ["--config", ROOT / "configs/kam-maps.toml", "--data", data, "--set", "tag={}"]
tagging += ["--set", f'corpus.texts=[{{name="text",paths=["{work}/text"],format={{text="line"}}}}]']
run("triples", "mentions", *tagging)
one = [*tagging, "--set", 'corpus.parts.bytes="1GB"']
cost = run("mentions.part-0001", "mentions", *one)
measured("`mentions`, a part", "bytes of text", TIMES * len(text), cost, size("mentions/mentions.part-0001"))
many = [*tagging, "--set", 'corpus.parts.bytes="1B"']
run(" ".join(cut("mentions", "mentions", *many)), "mentions", *many)
cost = run("mentions", "mentions", *many)
measured(f"`mentions`, joined ({TIMES} parts)", "bytes of text", TIMES * len(text), cost, size("mentions/mentions"))


def passages(task, paths, form):
    """The part of all texts, and shards of a part and of as many as there are files."""
    head = f'version = 5\nvocabulary.file = "{vocabulary}"\nsources.rotmensch.path = "rotmensch/DerivedKnowledgeGraph_final.csv"\nshards.tasks = ["{task}"]\n'
    of = lambda paths, size: f"{head}[shards.{task}.files]\npaths = {json.dumps([str(path) for path in paths])}\nformat = {form}\nparts.bytes = \"{size}\"\n"
    for name, some, size_of_part in (("part", paths, "1GB"), ("few", paths[: -(-len(paths) // TIMES)], "1B"), ("many", paths, "1B")):
        out = f"{task}-{name}"
        options = config(out, of(some, size_of_part))
        run("triples", out, *options)
        names = cut(task, out, *options)
        cost = run(" ".join(names), out, *options)
        subwords = sum(facts(out, part)["passages"]["subwords"] for part in names)
        if name == "part":
            measured(f"`{task}`, a part", "subwords", subwords, cost, size(f"{out}/{names[0]}"))
            continue
        run("split", out, *options)
        cost = run("shards", out, *options)
        index = json.loads((work / out / "shards/index.json").read_text(encoding="utf-8"))
        made[task] = sum(part["rows"] for of in index["tasks"] for part in of["parts"])
        measured(f"`shards` of `{task}`, {len(names)} part{'s' if len(names) > 1 else ''}", "subwords", subwords, cost, size(f"{out}/shards"))


passages("masked_lm", sorted((work / "text").iterdir()), '{ text = "line" }')
annotated = b"".join(file.read_bytes() for file in sorted((data / "bc5cdr/CDR_Data/CDR.Corpus.v010516").glob("*.PubTator.txt")))
copies = [work / f"annotated/{number:02}.PubTator.txt" for number in range(78)]
for copy in copies:
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes(annotated)
passages("tagging", copies, '{ pubtator = { between = "space" } }')

if given.bench:
    meta = work / "META"
    if not meta.exists():
        begun = work / "META.begun"
        timed(given.bench.resolve(), "metathesaurus", begun, 4_000_000, 20_000_000)
        begun.rename(meta)
    # The options of benches/src/umls_triples.rs.
    types = json.dumps([f"T{number:03}" for number in range(1, 101)])
    umls = config("umls", f"""version = 5
[sources.umls]
path = "{meta}"
languages = ["ENG"]
vocabularies.deny = ["LNC"]
max_srl = 3
semantic_types = {types}
min_relation_count = 10000
unlabelled = "drop"
terms = "drop"
definitions = "drop"
[vocabulary.train]
size = 30000
[split.parts.ratio]
train = 0.8
""")
    read = sum(file.stat().st_size for file in meta.iterdir())
    cost = run("triples", "umls", *umls)
    measured("`triples`, the Metathesaurus", "bytes of RRF", read, cost, size("umls/triples"))
    cost = run("split", "umls", *umls)
    triples = sum(facts("umls", "split")["triples"].values())
    measured("`split`, its triples", "triples", triples, cost, size("umls/split"))
    cost = run("vocabulary", "umls", *umls)
    names = [pq.read_table(work / f"umls/triples/{of}.parquet").column("text") for of in ("entities", "relations")]
    amount = sum(pc.sum(pc.binary_length(texts)).as_py() for texts in names)
    measured("`vocabulary`, its names", "bytes of names", amount, cost, size("umls/vocabulary"))
    cost = run("shards", "umls", *umls)
    index = json.loads((work / "umls/shards/index.json").read_text(encoding="utf-8"))
    samples = sum(part["rows"] for task in index["tasks"] for part in task["parts"])
    measured("`shards`, its triples", "rows", samples, cost, size("umls/shards"))

print("Processor seconds with one thread:\n")
table(["stage", "input", "unit", "processor seconds", "per second of one core", "peak MiB", "written, MB"], rows)
print("Rows of the last shards: " + ", ".join(f"`{task}` {count:,}" for task, count in made.items()) + ".\n")
print(f"{os.cpu_count()} cores; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; one run each.")
