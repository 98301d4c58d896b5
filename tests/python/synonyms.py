"""Recounts the pairs of the task synonyms by another way than engraft's, from the tables that they were drawn from.

Usage: synonyms.py OUT
Ends with status 0 if every part has as many true rows as its entities have names beyond their first (names that read the same counting once),
these connect all names of each entity, no pair comes twice, every name stands for the same tokens in all rows, no false row has two names that
any entity has or that read the same, and no name of one part is one of another.
"""

import json
import sys
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet as pq

out = Path(sys.argv[1])
ORDER = ["train", "valid", "test", "aside"]


def folded(text):
    """A text as an uncased encoder tells it apart: lower case, no marks, single spaces."""
    text = unicodedata.normalize("NFC", " ".join(text.split())).lower()
    plain = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.category(c).startswith("M"))
    return unicodedata.normalize("NFC", " ".join(plain.split()))


def table(name):
    return pq.read_table(out / name).to_pylist()


entities = [folded(row["text"]) for row in table("triples/entities.parquet")]
terms = table("triples/terms.parquet")
split = [row["part"] for row in table("split/split.parquet")]
part = ["aside"] * len(entities)
for triple, of in zip(table("triples/triples.parquet"), split):
    for entity in (triple["subject"], triple["object"]):
        part[entity] = min(part[entity], of, key=ORDER.index)

names = defaultdict(set)
for row in terms:
    row["folded"] = folded(row["text"])
    if row["kind"] != "definition":
        names[row["entity"]].add(row["folded"])
holders = defaultdict(set)
for entity, text in enumerate(entities):
    for name in names[entity] | {text}:
        holders[name].add(entity)
first = {name: min((part[e] for e in of), key=ORDER.index) for name, of in holders.items()}
shown = {e for e, text in enumerate(entities) if all(first[n] == part[e] for n in names[e] | {text})}

index = json.loads((out / "shards/index.json").read_text())
vocabulary = index["tokenizer"]["special"]
written = {of["part"]: of for task in index["tasks"] if task["task"] == "synonyms" for of in task["parts"]}
tokens, seen_in = {}, {}
for of in ["train", "valid", "test"]:
    expected = sum(max(len(names[e]) - 1, 0) for e in shown if part[e] == of)
    files = written.get(of, {"files": []})["files"]
    rows = [row for file in files for row in pq.read_table(out / "shards" / file["path"]).to_pylist()]
    true = [row for row in rows if row["label"] == 1]
    assert len(true) == expected, f"{of}: {len(true)} true rows, recounted {expected}"
    pairs, reached = Counter(), defaultdict(lambda: defaultdict(set))
    for row in rows:
        one, other = terms[row["name"]], terms[row["other"]]
        assert one["entity"] == row["entity"] and "definition" not in (one["kind"], other["kind"])
        for term, number in ((one, row["name"]), (other, row["other"])):
            assert term["entity"] in shown and part[term["entity"]] == of, f"{of} shows {term}"
            assert seen_in.setdefault(term["folded"], of) == of, f"two parts show {term}"
        cuts = [at for at, token in enumerate(row["input_ids"]) if token == vocabulary["sep"]]
        assert len(cuts) == 2 and row["input_ids"][0] == vocabulary["cls"], row
        for number, ids in ((row["name"], row["input_ids"][1 : cuts[0]]), (row["other"], row["input_ids"][cuts[0] + 1 : -1])):
            assert tokens.setdefault(number, ids) == ids, f"term {number} stands for other tokens"
        texts = frozenset((one["folded"], other["folded"]))
        if row["label"] == 1:
            assert len(texts) == 2 and one["entity"] == other["entity"], row
            pairs[row["entity"], texts] += 1
            for a, b in ((one, other), (other, one)):
                reached[row["entity"]][a["folded"]].add(b["folded"])
        else:
            assert len(texts) == 2 and not holders[one["folded"]] & holders[other["folded"]], f"false, but stated: {one} {other}"
            assert len(names[other["entity"]]) > 1, f"no true row can have {other}"
    assert all(count == 1 for count in pairs.values()), "a pair comes twice"
    for entity, beside in reached.items():
        found, ahead = set(), [next(iter(beside))]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead.extend(beside[name])
        assert found == names[entity], f"entity {entity}: {names[entity] - found} stand apart"
    print(of, len(true), "true,", len(rows) - len(true), "false rows of", len(reached), "entities with synonyms")
counts = index["names"]["synonyms"]
left_out = sum(part[e] in ("valid", "test") for e in range(len(entities)) if e not in shown)
assert counts["entities_left_out"] == left_out, (counts, left_out)
print("index:", counts)
