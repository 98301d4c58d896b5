"""Triples to encoded four-task shards: engraft beside Hugging Face `datasets.map` with a fast tokenizer, in one run.

Usage: shards.py ENGRAFT DATA [OUT]
ENGRAFT is the binary, DATA the folder with hsdn/ and rotmensch/. Both sides start from the same triple table and the same
vocabulary, use two processes or threads, and write Parquet (engraft zstd with page CRC, the peer its default). The peer draws its
negatives without any filter, which is less work. Prints both times and their ratio; checks that both sides wrote the same subject and relation rows.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq
from datasets import Dataset, disable_progress_bars
from tokenizers import BertWordPieceTokenizer

engraft, data = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
root = Path(__file__).resolve().parent.parent
work = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
out = work / "out"
command = [engraft, "--config", root / "configs/open.toml", "--data", data, "--out", out, "--jobs", "2", "run"]


def ours():
    """Seconds of stage `shards` alone, as a user waits for it: from the start of the process to its end."""
    subprocess.run([*command, "vocabulary"], check=True, capture_output=True)
    subprocess.run([engraft, "--config", root / "configs/open.toml", "--data", data, "--out", out, "clean", "shards"],
                   check=True, capture_output=True)
    start = time.perf_counter()
    subprocess.run([*command, "shards"], check=True, capture_output=True)
    return time.perf_counter() - start


disable_progress_bars()
seconds = min(ours() for _ in range(3))
index = json.loads((out / "shards/index.json").read_text())
rows = sum(task["rows"] for task in index["tasks"])

entities = pq.read_table(out / "triples/entities.parquet", columns=["text"])["text"].to_pylist()
relations = pq.read_table(out / "triples/relations.parquet", columns=["text"])["text"].to_pylist()
triples = pq.read_table(out / "triples/triples.parquet", columns=["subject", "relation", "object"]).to_pydict()
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
    total = len(triples["subject"])
    for row, i in enumerate(indices):
        slot = ("subject", "relation", "object")[i % 3]
        swapped[slot][row] = triples[slot][(i * 7919 + 13) % total]
    true, false = columns(batch), columns(swapped)
    pairs = [pack(*row) for both in zip(true, false) for row in both]
    return {"input_ids": pairs, "label": [1, 0] * len(true)}


def theirs():
    folder = work / "peer"
    start = time.perf_counter()
    source = Dataset.from_dict(triples)
    for name, build in (("subject", subject), ("object", object_), ("relation", relation), ("triplet", triplet)):
        built = source.map(build, batched=True, num_proc=2, remove_columns=source.column_names,
                           with_indices=name == "triplet", load_from_cache_file=False)
        built.to_parquet(folder / f"{name}.parquet")
    return time.perf_counter() - start


os.environ["TOKENIZERS_PARALLELISM"] = "false"
peer = min(theirs() for _ in range(2))
for task, columns_ in (("subject", ["input_ids", "labels"]), ("relation", ["input_ids", "label"])):
    files = [out / "shards" / file["path"] for entry in index["tasks"] if entry["task"] == task for file in entry["files"]]
    mine = [row for file in files for row in pq.read_table(file, columns=columns_).to_pylist()]
    assert mine == pq.read_table(work / f"peer/{task}.parquet", columns=columns_).to_pylist(), f"{task}: other rows"

print(f"triples {len(triples['subject']):,}, rows {rows:,}")
print(f"engraft run shards, 2 jobs      {seconds:8.2f} s  {rows / seconds:12,.0f} rows/s")
print(f"datasets.map, 2 processes       {peer:8.2f} s  {rows / peer:12,.0f} rows/s")
print(f"ratio                           {peer / seconds:8.1f} x")
