"""Whether the table of mentions says, column by column, what the lines of JSON say.

Usage: mentions_table.py FOLDER
FOLDER holds m.jsonl and m.parquet, as `engraft tag` has written them of the same texts. Ends with status 0 if all rows are the same.
"""

import json
import struct
import sys
from pathlib import Path

import pyarrow.parquet as pq

folder = Path(sys.argv[1])
MODIFIERS = ("negated", "uncertain", "historical", "hypothetical", "other_person")
single = lambda number: struct.unpack("f", struct.pack("f", number))[0]

rows = []
for line in map(json.loads, (folder / "m.jsonl").read_text(encoding="utf-8").splitlines()):
    for number, mention in enumerate(line["mentions"]):
        # Offsets of both kinds say what stands there.
        text, start, end = line["text"], mention["start"], mention["end"]
        assert text[start:end] == text.encode()[mention["byte_start"] : mention["byte_end"]].decode() == mention["text"], mention
        for place, candidate in enumerate(mention["candidates"]):
            rows.append(
                {"file": line.get("file"), "document": line["id"], "mention": number, "candidate": place, "score": single(candidate["score"])}
                | {key: mention[key] for key in ("start", "end", "byte_start", "byte_end", "text", "how")}
                | {"entity": candidate["entity"], "name": candidate["name"]}
                # Lines have the types of the first alone.
                | ({} if place else {"types": mention["types"]})
                | {modifier: modifier in mention["modifiers"] for modifier in MODIFIERS}
            )
table = pq.read_table(folder / "m.parquet").to_pylist()
assert rows and len(table) == len(rows), (len(table), len(rows))
for found, expected in zip(table, rows):
    assert found | expected == found and found.keys() - expected.keys() <= {"types"}, f"{found}\n{expected}"
print(len(rows), "rows")
