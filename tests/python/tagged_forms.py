"""Whether spaCy, the library `bioc` and a reader of brat's lines find in what `engraft tag` wrote what its lines of JSON say.

Usage: tagged_forms.py FOLDER
FOLDER holds m.jsonl, m.spacy, m.xml and the folder m of brat's files, as `engraft tag` has written them of the same texts. Ends with status 0 if they say the same.
"""

import json
import sys
from pathlib import Path

import bioc
import spacy
from spacy.tokens import Doc

folder = Path(sys.argv[1])
lines = [json.loads(line) for line in (folder / "m.jsonl").read_text(encoding="utf-8").splitlines()]
assert sum(len(line["mentions"]) for line in lines) > 3

vocabulary = spacy.blank("en").vocab
written = [json.loads(line) for line in (folder / "m.spacy").read_text(encoding="utf-8").splitlines()]
assert [{key: of[key] for key in line} for of, line in zip(written, lines, strict=True)] == lines
for of, line in zip(written, lines):
    doc = Doc(vocabulary).from_json(of, validate=True)
    assert doc.text == line["text"]
    assert [(of.start_char, of.end_char, of.label_) for of in doc.ents] == [(of["start"], of["end"], of["types"][0]["name"]) for of in line["mentions"]]
    spans = list(doc.spans["engraft"])
    assert [(of.text, of.kb_id_) for of in spans] == [(of["text"], of["entity"]) for of in line["mentions"]]

documents = bioc.load(folder / "m.xml").documents
assert len(documents) == len(lines)
for document, line in zip(documents, lines):
    (passage,) = document.passages
    assert (document.id, passage.text, passage.infons["file"]) == (line["id"], line["text"], line["file"])
    found = []
    for of in passage.annotations:
        start, known = of.total_span.offset, of.infons
        assert passage.text[start : of.total_span.end] == of.text
        keys, scores = ([known[own], *filter(None, known.get(others, "").split("|"))] for own, others in (("identifier", "candidates"), ("score", "candidate_scores")))
        found.append({"start": start, "end": of.total_span.end, "text": of.text, "type": known["type"], "byte_start": int(known["byte_start"]), "byte_end": int(known["byte_end"]), "name": known["name"], "how": known["how"]}
                     | {"candidates": list(zip(keys, map(float, scores))), "modifiers": [*filter(None, known.get("modifiers", "").split("|"))]})
    expected = [{key: of[key] for key in ("start", "end", "text", "byte_start", "byte_end", "name", "how", "modifiers")} | {"type": of["types"][0]["name"], "candidates": [(c["entity"], c["score"]) for c in of["candidates"]]} for of in line["mentions"]]
    assert found == expected, (found, expected)

for line in lines:
    (note,) = [path for path in (folder / "m").glob("*.ann") if path.stem == line["id"].removesuffix(".txt")]
    text = note.with_suffix(".txt").read_bytes().decode()
    assert text == line["text"]
    rows = [row.split("\t") for row in note.read_text(encoding="utf-8").splitlines()]
    mentions = {row[0]: row for row in rows if row[0].startswith("T")}
    assert len(mentions) == len(line["mentions"])
    for number, of in enumerate(line["mentions"], 1):
        _, place, shown = mentions[f"T{number}"]
        pieces = [tuple(map(int, piece.split())) for piece in place.split(" ", 1)[1].split(";")]
        assert (pieces[0][0], pieces[-1][1]) == (of["start"], of["end"])
        assert " ".join(text[start:end] for start, end in pieces) == shown
        own = [row for row in rows if len(row) > 1 and f" T{number} " in f"{row[1]} "]
        references = [row[1].split()[2] for row in own if row[0].startswith("N")]
        assert references == [of["entity"], *(c["entity"] for c in of["candidates"][1:])]
        (match,) = [dict(pair.split("=") for pair in row[2].split()) for row in own if row[1] == f"Match T{number}"]
        assert match["bytes"] == f"{of['byte_start']}-{of['byte_end']}" and match["how"] == of["how"]
        assert [float(score) for score in match["score"].split("|")] == [c["score"] for c in of["candidates"]]
        assert [row[1].split()[0].lower() for row in own if row[0].startswith("A")] == of["modifiers"], own
print(len(lines), "texts")
