"""Triples to encoded four-task shards: engraft beside Hugging Face `datasets.map` with a fast tokenizer, in one run.

Usage: shards.py ENGRAFT [DATA] [--scale S] [--sample N] [--out OUT]
ENGRAFT is the binary, DATA the folder with hsdn/, rotmensch/ and mesh/; without it the triples are those of the world at scale S. Both sides
start from the same triple table and the same vocabulary, use two processes or threads, and write Parquet (engraft zstd with page CRC,
SHA-256 and BLAKE3, the peer its default). The peer draws its negatives without any filter, which is less work. With --sample the peer
builds the rows of the first N / 2 and of the first N triples, and its time for all of them follows from the two: it handles batch after batch, so
what it takes beyond its start grows with the rows. Medians of three. Checks that both sides wrote the same subject and relation rows. Prints a table in Markdown.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import datasets
import pyarrow.parquet as pq
from datasets import Dataset, disable_progress_bars
from tokenizers import BertWordPieceTokenizer

RUNS = 3
parser = argparse.ArgumentParser()
parser.add_argument("engraft", type=Path)
parser.add_argument("data", type=Path, nargs="?")
parser.add_argument("--scale", type=float, default=170.0)
parser.add_argument("--sample", type=int)
parser.add_argument("--out", type=Path)
given = parser.parse_args()
engraft = given.engraft.resolve()
root = Path(__file__).resolve().parent.parent
work = (given.out or Path(tempfile.mkdtemp())).resolve()
out = work / "out"
common = ["--out", out]
if given.data:
    common += ["--config", root / "configs/open.toml", "--data", given.data.resolve()]
else:
    common += ["--set", f"world.scale={given.scale}"]


def say(*words):
    subprocess.run([engraft, *common, *words], check=True, capture_output=True)


def ours():
    """Seconds of stage `shards` alone, as a user waits for it: from the start of the process to its end."""
    say("clean", "shards")
    start = time.perf_counter()
    say("--jobs", "2", "run", "shards")
    return time.perf_counter() - start


disable_progress_bars()
say("--jobs", "2", "run", "vocabulary")
seconds = statistics.median(ours() for _ in range(RUNS))
index = json.loads((out / "shards/index.json").read_text())
parts = {entry["task"]: entry["parts"][0] for entry in index["tasks"]}
assert all(len(entry["parts"]) == 1 for entry in index["tasks"]), "the split is not `all`"
rows = sum(part["rows"] for part in parts.values())
tokens = sum(part["tokens"] for part in parts.values())
size = sum(file["bytes"] for part in parts.values() for file in part["files"])

entities = pq.read_table(out / "triples/entities.parquet", columns=["text"])["text"].to_pylist()
relations = pq.read_table(out / "triples/relations.parquet", columns=["text"])["text"].to_pylist()
table = pq.read_table(out / "triples/triples.parquet", columns=["subject", "relation", "object"])
total = table.num_rows
triples = table.slice(0, min(given.sample or total, total)).to_pydict()
sample = len(triples["subject"])
tokenizer = BertWordPieceTokenizer(str(out / "vocabulary/vocab.txt"), lowercase=True)
special = index["tokenizer"]["special"]
CLS, SEP, BLANK = special["cls"], special["sep"], special["blank"]


def columns(batch):
    texts = [entities[i] for i in batch["subject"]], [relations[i] for i in batch["relation"]], [entities[i] for i in batch["object"]]
    encoded = [tokenizer.encode_batch(column, add_special_tokens=False) for column in texts]
    return [(s.ids[:100], r.ids[:10], o.ids[:100]) for s, r, o in zip(*encoded)]


def pack(s, r, o):
    return [CLS, *s, SEP, *r, SEP, *o, SEP]


def subject(batch):
    rows = columns(batch)
    return {"input_ids": [pack([BLANK] * len(s), r, o) for s, r, o in rows],
            "labels": [[-100, *s, *[-100] * (len(r) + len(o) + 3)] for s, r, o in rows]}


def object_(batch):
    rows = columns(batch)
    return {"input_ids": [pack(s, r, [BLANK] * len(o)) for s, r, o in rows],
            "labels": [[*[-100] * (len(s) + len(r) + 3), *o, -100] for s, r, o in rows]}


def relation(batch):
    return {"input_ids": [pack(s, [BLANK], o) for s, _, o in columns(batch)], "label": batch["relation"]}


def triplet(batch, indices):
    swapped = {name: list(batch[name]) for name in ("subject", "relation", "object")}
    for row, i in enumerate(indices):
        slot = ("subject", "relation", "object")[i % 3]
        swapped[slot][row] = triples[slot][(i * 7919 + 13) % sample]
    true, false = columns(batch), columns(swapped)
    pairs = [pack(*row) for both in zip(true, false) for row in both]
    return {"input_ids": pairs, "label": [1, 0] * len(true)}


def theirs(rows):
    folder = work / "peer"
    start = time.perf_counter()
    source = Dataset.from_dict(rows)
    for name, build in (("subject", subject), ("object", object_), ("relation", relation), ("triplet", triplet)):
        built = source.map(build, batched=True, num_proc=2, remove_columns=source.column_names,
                           with_indices=name == "triplet", load_from_cache_file=False)
        built.to_parquet(folder / f"{name}.parquet")
    return time.perf_counter() - start


def first(task, names):
    """The first `sample` rows of a task."""
    found = []
    for file in parts[task]["files"]:
        if len(found) >= sample:
            break
        found += pq.read_table(out / "shards" / file["path"], columns=names).slice(0, sample - len(found)).to_pylist()
    return found


os.environ["TOKENIZERS_PARALLELISM"] = "false"
half = {name: column[: sample // 2] for name, column in triples.items()}
# Starting processes and handing them the texts happens once; only what comes on top grows with the rows.
part = statistics.median(theirs(half) for _ in range(RUNS)) if sample < total else 0
measured = statistics.median(theirs(triples) for _ in range(RUNS))
for task, names in (("subject", ["input_ids", "labels"]), ("relation", ["input_ids", "label"])):
    assert first(task, names) == pq.read_table(work / f"peer/{task}.parquet", columns=names).to_pylist(), f"{task}: other rows"
peer = measured if sample == total else measured + (measured - part) / (sample - sample // 2) * (total - sample)
made = {name: pq.ParquetFile(work / f"peer/{name}.parquet").metadata for name in parts}
peer_size = sum((work / f"peer/{name}.parquet").stat().st_size for name in parts) / sum(meta.num_rows for meta in made.values())

how = "" if sample == total else f" ({part:.2f} s for the first {sample // 2:,} triples and {measured:.2f} s for {sample:,}; the rest at that slope)"
print(f"{total:,} triples to {rows:,} rows with {tokens:,} tokens; subject and relation rows of {sample:,} triples compared and equal.\n")
print("| | seconds | rows/s | tokens/s | bytes per row | ratio |")
print("|---|--:|--:|--:|--:|--:|")
print(f"| `engraft run shards --jobs 2`, from start to end of the process | {seconds:.2f} | {rows / seconds:,.0f} "
      f"| {tokens / seconds:,.0f} | {size / rows:.1f} | {peer / seconds:.1f} |")
print(f"| `datasets.map`, `num_proc=2`, and `to_parquet`{how} | {peer:.2f} | {rows / peer:,.0f} | {tokens / peer:,.0f} | {peer_size:.1f} | 1 |")
print(f"\n{os.cpu_count()} cores, {platform.system()}; median of {RUNS}; datasets {datasets.__version__}, Python {platform.python_version()}.")
