"""Reads an output folder as the tools of its users do and compares: pyarrow (checking page CRCs), `datasets` by config name from the
shard folder (streaming and not), and mlcroissant.

Usage: read_shards.py OUT
Ends with status 0 if every row of every task and part is the same in all readings, counts and checksums are those of the index, and
mlcroissant's own command finds no error in croissant.json.
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import mlcroissant
import numpy as np
import pyarrow.parquet as pq
from datasets import load_dataset

SPLITS = {"train": "train", "valid": "validation", "test": "test"}
out = Path(sys.argv[1])
shards = out / "shards"
index = json.loads((shards / "index.json").read_text())


def plain(value):
    """A value of mlcroissant as pyarrow has it."""
    if isinstance(value, (list, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def read(task, part):
    """The rows of one task and part by pyarrow, in order."""
    tables = []
    for file in part["files"]:
        path = shards / file["path"]
        assert hashlib.sha256(path.read_bytes()).hexdigest() == file["sha256"], f"{path}: another checksum"
        tables.append(pq.read_table(path, page_checksum_verification=True))
    rows = [row for table in tables for row in table.to_pylist()]
    assert len(rows) == part["rows"], (task, len(rows), part["rows"])
    assert sum(len(row["input_ids"]) for row in rows) == part["tokens"], f"{task}: another number of tokens"
    assert all(len(row["input_ids"]) == len(row["token_type_ids"]) for row in rows)
    assert all(len(row["input_ids"]) == len(row.get("labels", row["input_ids"])) for row in rows)
    if task == "triplet":
        negative = ("slot", "sampler", "verdict")
        assert all((row[name] is None) == (row["label"] == 1) for row in rows for name in negative)
        assert all(row["donor"] is None for row in rows if row["label"] == 1)
    return tables[0].schema, rows


def classes(task):
    """What the classes of a task are called."""
    truth = {"triplet": ["corrupted", "stated"], "synonyms": ["of_two", "of_one"]}
    return {"relation": index["relations"], "tagging": index["classes"]}.get(task, truth.get(task))


def by_datasets(task, part, schema, rows):
    """`datasets` sees the same rows and types, from the folder alone."""
    split = SPLITS[part["part"]]
    whole = load_dataset(str(shards), task, split=split, cache_dir=str(out / ".datasets"))
    assert rows == whole.to_list(), f"{task} {split}: datasets reads other rows than pyarrow"
    streamed = load_dataset(str(shards), task, split=split, streaming=True)
    assert rows == list(streamed), f"{task} {split}: streaming reads other rows than pyarrow"
    for found in (whole.features, streamed.features):
        types = {name: found.arrow_schema.field(name).type for name in found}
        assert list(types) == schema.names, (task, list(types), schema.names)
        for name, kind in types.items():
            expected = schema.field(name).type
            if (names := classes(task)) and name.startswith("label"):
                feature = found[name] if name == "label" else found[name].feature
                assert feature.names == names, f"{task}: {feature.names} instead of {names}"
                continue  # `datasets` has classes in 64 bits
            same = kind == expected or kind.value_type == expected.value_type
            assert same, f"{task}: README.md says that {name} is {kind}, the file says {expected}"


def by_croissant(dataset, task, of_part):
    """mlcroissant sees the same rows, part for part."""
    found = {part: [] for part in of_part}
    for record in dataset.records(task):
        row = {name.removeprefix(f"{task}/"): plain(value) for name, value in record.items()}
        found[row.pop("part")].append(row)
    for part, rows in of_part.items():
        assert found[part] == rows, f"{task} {part}: mlcroissant reads other rows than pyarrow"


for table in ("entities", "relations", "triples"):
    rows = pq.read_table(out / f"triples/{table}.parquet", page_checksum_verification=True)
    print(table, rows.num_rows, rows.column_names)

command = Path(sys.executable).parent / "mlcroissant"
checked = subprocess.run([command, "validate", "--jsonld", shards / "croissant.json"], capture_output=True, text=True)
assert checked.returncode == 0 and "error(s)" not in checked.stderr, checked.stderr
dataset = mlcroissant.Dataset(str(shards / "croissant.json"))
assert not dataset.metadata.ctx.issues.errors, dataset.metadata.ctx.issues.report()
listed = {file.content_url: file.sha256 for file in dataset.metadata.file_objects}

seen = set()
for entry in index["tasks"]:
    task, of_part = entry["task"], {}
    for part in entry["parts"]:
        schema, rows = read(task, part)
        by_datasets(task, part, schema, rows)
        of_part[part["part"]] = rows
        seen |= {(file["path"], file["sha256"]) for file in part["files"]}
        print(task, part["part"], len(rows), schema.names)
    by_croissant(dataset, task, of_part)
assert seen == set(listed.items()), "croissant.json lists other files than index.json"
