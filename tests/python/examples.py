"""The texts that the examples of python/examples work on, and what should come of them.

Usage: examples.py texts OUT TEXTS            writes the world's texts as TEXTS, a Parquet file with `id` and `text`
       examples.py NAME OUT TEXTS RESULT      compares what an example made with what the package makes in one process
Ends with status 0 if the two are equal.
"""

import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import engraft

name, out, texts = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
MENTION = ("start", "end", "byte_start", "byte_end", "text", "entity", "name")


def mentions():
    given = pq.read_table(texts)
    ids = given["id"].to_pylist()
    found = pa.table(engraft.tag(given, out / "triples", min_letters=4, column="text")).to_pylist()
    return [{"id": ids[row["row"]], **row} for row in found]


def of_ray():
    return [(row["id"], row["mention"], *(row[column] for column in MENTION)) for row in mentions()], ("id", "mention", *MENTION)


def of_spark():
    counted = pa.table(engraft.word_counts(pq.read_table(texts), column="text"))
    return list(zip(*counted.to_pydict().values())), ("word", "occurrences")


def of_daft():
    given = pq.read_table(texts)
    encoded = pa.table(engraft.tokenize(given, out / "vocabulary", column="text", offsets=None, max_tokens=128))
    return list(zip(given["id"].to_pylist(), encoded["input_ids"].to_pylist())), ("id", "input_ids")


def of_duckdb():
    read = lambda name: pq.read_table(out / "triples" / f"{name}.parquet").to_pylist()  # noqa: E731
    entities, relations = read("entities"), read("relations")
    named = {}
    for row in mentions():
        named.setdefault(row["id"], {})[row["entity"]] = row["name"]
    pairs = Counter()
    for row in read("triples"):
        subject, relation, object_ = entities[row["subject"]], relations[row["relation"]]["key"], entities[row["object"]]
        for of in named.values():
            if subject["key"] in of and object_["key"] in of:
                pairs[subject["text"], relation, object_["text"]] += 1
    return [(*pair, count) for pair, count in pairs.items()], ("subject", "relation", "object", "texts")


if name == "texts":
    lines = [line for file in sorted((out / "world/text").glob("*.txt")) for line in file.read_text().splitlines() if line]
    pq.write_table(pa.table({"id": [f"text-{number}" for number in range(len(lines))], "text": lines}), texts, row_group_size=40)
    sys.exit()
expected, columns = {"ray": of_ray, "spark": of_spark, "daft": of_daft, "duckdb": of_duckdb}[name]()
made = pq.read_table(sys.argv[4]).select(columns)
assert not any("uint" in str(field.type) for field in made.schema), made.schema
found = sorted(tuple(row.values()) for row in made.to_pylist())
assert found == sorted(expected) and len(found) > 50, f"{name}: {len(found)} rows, expected {len(expected)}"
