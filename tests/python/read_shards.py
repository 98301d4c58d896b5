"""Reads an output folder with pyarrow (checking page CRCs) and with `datasets`, streaming and not, and compares.

Usage: read_shards.py OUT
Ends with status 0 if every row is the same in all readings and the counts are those of the index.
"""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from datasets import load_dataset

out = Path(sys.argv[1])
index = json.loads((out / "shards/index.json").read_text())
for table in ("entities", "relations", "triples"):
    rows = pq.read_table(out / f"triples/{table}.parquet", page_checksum_verification=True)
    print(table, rows.num_rows, rows.column_names)

for task in index["tasks"]:
    files = [str(out / "shards" / file["path"]) for file in task["files"]]
    arrow = [row for file in files for row in pq.read_table(file, page_checksum_verification=True).to_pylist()]
    cache = str(out / ".datasets")
    whole = load_dataset("parquet", data_files=files, split="train", cache_dir=cache)
    streamed = load_dataset("parquet", data_files=files, split="train", streaming=True)
    assert len(arrow) == task["rows"], (task["task"], len(arrow), task["rows"])
    assert arrow == whole.to_list(), f"{task['task']}: datasets reads other rows than pyarrow"
    assert arrow == list(streamed), f"{task['task']}: streaming reads other rows than pyarrow"
    assert all(len(row["input_ids"]) == len(row["token_type_ids"]) for row in arrow)
    if task["task"] == "triplet":
        assert all((row["slot"] is None) == (row["label"] == 1) for row in arrow)
    print(task["task"], len(arrow), whole.features)
