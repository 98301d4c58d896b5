"""Reads a folder of maps as the tools of its users do and compares: pyarrow (checking page CRCs), `datasets` (streaming and not), and mlcroissant.

Usage: read_maps.py OUT
Ends with status 0 if every row is the same in all readings, the bytes that README.md says are those in memory, checksums are those of the
index, and mlcroissant's own command finds no error in croissant.json.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import mlcroissant
import numpy as np
import pyarrow.parquet as pq
from datasets import load_dataset

WIDTHS = {"uint16": 2, "uint32": 4, "int32": 4, "int8": 1, "float": 4}
out = Path(sys.argv[1])
maps = out / "maps"
part = json.loads((maps / "index.json").read_text())["parts"][0]


def plain(value):
    """A value of mlcroissant as pyarrow has it."""
    if isinstance(value, (list, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode()
    return value.item() if isinstance(value, np.generic) else value


def in_memory(schema, rows):
    """The bytes of all rows as Arrow has them."""
    size = 0
    for field in schema:
        if str(field.type).startswith("list"):
            values = sum(len(row[field.name]) for row in rows)
            size += (len(rows) + 1) * 4 + values * WIDTHS[str(field.type.value_type)]
        else:
            size += len(rows) * WIDTHS[str(field.type)]
    return size


tables = [pq.read_table(maps / file["path"], page_checksum_verification=True) for file in part["files"]]
rows = [row for table in tables for row in table.to_pylist()]
assert len(rows) == part["rows"] > 0, (len(rows), part["rows"])
for file in part["files"]:
    assert hashlib.sha256((maps / file["path"]).read_bytes()).hexdigest() == file["sha256"], file["path"]

whole = load_dataset(str(maps), "maps", split="train", cache_dir=str(out / ".datasets"))
assert whole.to_list() == rows, "datasets reads other rows"
assert list(load_dataset(str(maps), split="train", streaming=True)) == rows, "datasets streams other rows"
said = int(re.search(r"num_bytes: (\d+)", (maps / "README.md").read_text())[1])
assert said == in_memory(tables[0].schema, rows), (said, in_memory(tables[0].schema, rows))

croissant = maps / "croissant.json"
command = [Path(sys.executable).parent / "mlcroissant", "validate", "--jsonld", croissant]
checked = subprocess.run(command, capture_output=True, text=True, check=False)
assert checked.returncode == 0 and "error(s)" not in checked.stderr, checked.stderr
dataset = mlcroissant.Dataset(str(croissant))
found = []
for record in dataset.records("maps"):
    row = {name.removeprefix("maps/"): plain(value) for name, value in record.items()}
    assert row.pop("part") == "train", row
    found.append(row)
assert found == rows, "mlcroissant reads other rows"
listed = {file.content_url: file.sha256 for file in dataset.metadata.file_objects}
assert listed == {file["path"]: file["sha256"] for file in part["files"]}, "croissant.json lists other files"
print(f"{len(rows)} rows of maps are the same in all readings")
