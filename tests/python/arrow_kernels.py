"""What the kernels of the package `engraft` promise, on the world of an output folder that has run `shards`.

Usage: arrow_kernels.py OUT CONFIG MAPS CONFIG_OF_MAPS
PYTHONPATH names the package, unless it is installed; CONFIG is the config whose table `[sources]` made OUT/triples. MAPS is an output folder that has run `maps`
on the paragraphs of its world, with the table `[maps]` of CONFIG_OF_MAPS. polars, duckdb and tokenizers are asked where they are installed. Ends with
status 0 if every promise holds.
"""

import hashlib
import importlib.util
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import unicodedata
import warnings
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import engraft

out, config, of_maps, config_of_maps = map(Path, sys.argv[1:5])
TRIPLES, VOCABULARY = out / "triples", out / "vocabulary"
AS_WRITTEN = {
    "min_letters": 1, "max_words": 20, "numbers": "keep", "stop_words": "none", "common_words": [], "plurals": "as_written",
    "inverted": "as_written", "possessives": "keep", "upper_case": 0,
}  # fmt: skip


def rows(batches):
    table = pa.table(batches)
    assert not any("uint" in str(field.type) for field in table.schema), table.schema
    return table.to_pylist()


def optional(name):
    if importlib.util.find_spec(name) is None:
        print(f"{name} is not installed: what it takes and gives is not tried")
        return None
    return importlib.import_module(name)


def read(name):
    return pq.read_table(TRIPLES / name).to_pylist()


def corpus():
    """Sentences of the world, entities side by side, and what readers stumble over; some rows have no text."""
    lines = [line for file in sorted((out / "world/text").glob("*.txt")) for line in file.read_text().splitlines() if line]
    names = [entity["text"] for entity in read("entities.parquet")]
    glued = [f"Ménière {one}, {two.upper()}; 5\u00b5g ({one}s)" for one, two in zip(names, names[1:])]
    odd = ["", " ", "\n", "é" * 300, "a" * 200, "[UNK] [CLS]", "naïve – “quoted” \U0001f600 中文", "x\u0000y\u200bz \u00a0e\u0301", "I\u0307STANBUL ẞ"]
    texts = [text for triple in zip(lines[:400], glued * 9, strict=False) for text in (*triple, None)]
    return texts + odd


def words(text, case="uncased"):
    """BERT's basic tokenizer, with the place of each word, for text without zero-width characters and combining marks."""
    found, word = [], None
    for place, character in enumerate(text):
        plain = character
        if case == "uncased":
            plain = "".join(part for part in unicodedata.normalize("NFD", character) if unicodedata.category(part) != "Mn").lower()
        kind = unicodedata.category(character)
        if character.isspace():
            word = None
        elif character in "\0\ufffd" or kind[0] == "C":
            continue
        elif (character.isascii() and not character.isalnum()) or kind[0] == "P" or 0x4E00 <= ord(character) <= 0x9FFF:
            found.append([plain, place, place + 1])
            word = None
        elif word is None:
            word = [plain, place, place + 1]
            found.append(word)
        else:
            word[0], word[2] = word[0] + plain, place + 1
    return found


def pieces(word, vocabulary):
    """WordPiece: the longest entry first."""
    ids, places, start = [], [], 0
    while start < len(word) <= 100:
        fits = (end for end in range(len(word), start, -1) if ("##" if start else "") + word[start:end] in vocabulary)
        end = next(fits, None)
        if end is None:
            break
        ids.append(vocabulary[("##" if start else "") + word[start:end]])
        places.append((start, end))
        start = end
    return (ids, places) if start == len(word) else ([vocabulary["[UNK]"]], [(0, len(word))])


def is_simple(text):
    return not any(unicodedata.category(character) in ("Mn", "Cf", "Cc") or character == "İ" for character in text)


def shapes(texts):
    """The same texts in whatever memory libraries keep them."""
    plain = pa.array(texts, pa.string())
    padded = pa.array(["not this", None, *texts, "nor this"], pa.large_string())
    table = pa.table({"number": pa.array(range(len(texts))), "text": plain})
    yield "list", texts, {}
    yield "tuple", tuple(texts), {}
    yield "array", plain, {}
    yield "large", plain.cast(pa.large_string()), {}
    yield "view", plain.cast(pa.string_view()), {}
    yield "dictionary", plain.dictionary_encode(), {}
    yield "sliced", padded.slice(2, len(texts)), {}
    yield "sliced dictionary", padded.dictionary_encode().slice(2, len(texts)), {}
    for size in (1, 7, 1000):
        chunks = [plain.slice(start, size) for start in range(0, len(texts), size)]
        yield f"chunks of {size}", pa.chunked_array([plain.slice(0, 0), *chunks, plain.slice(0, 0)]), {}
    yield "table", table, {"column": "text"}
    yield "batch", table.to_batches()[0].slice(0), {"column": "text"}
    reader = pa.RecordBatchReader.from_batches(table.schema, (batch for batch in table.to_batches(max_chunksize=13)))
    yield "reader", reader, {"column": "text"}
    yield "one column", table.select(["text"]), {}
    mask = pa.array([text is None for text in texts])
    hidden = pa.StructArray.from_arrays([pa.array(["hidden" if text is None else text for text in texts])], ["text"], mask=mask)
    yield "null rows", hidden, {}
    if polars := optional("polars"):
        series = polars.Series("text", texts)
        yield "polars series", series, {}
        yield "polars categories", series.cast(polars.Categorical), {}
        yield "polars frame", polars.DataFrame({"text": series, "n": range(len(texts))}), {"column": "text"}
    if duckdb := optional("duckdb"):
        yield "duckdb", duckdb.sql("select text from table_of_texts", connection=duckdb.connect().register("table_of_texts", table)), {}


def counts_are_those_of_plain_python(texts):
    simple = [text for text in texts if text is not None and is_simple(text)]
    for case in ("uncased", "cased"):
        found = [(row["word"], row["occurrences"]) for row in rows(engraft.word_counts(simple, case=case))]
        expected = Counter(word for text in simple for word, *_ in words(text, case))
        assert found == sorted(expected.items(), key=lambda item: (-item[1], item[0].encode())), case
    # Additive: parts summed are the whole.
    total = Counter()
    for start in range(0, len(texts), 100):
        total.update({row["word"]: row["occurrences"] for row in rows(engraft.word_counts(texts[start : start + 100]))})
    assert total == {row["word"]: row["occurrences"] for row in rows(engraft.word_counts(texts))}
    assert rows(engraft.word_counts([])) == [] == rows(engraft.word_counts([None])) == rows(engraft.word_counts(pa.nulls(3)))


def tokens_are_those_of_wordpiece(texts):
    vocabulary = {token: id for id, token in enumerate((VOCABULARY / "vocab.txt").read_text().split("\n"))}
    tokenizer = engraft.Tokenizer(VOCABULARY)
    assert len(tokenizer) == len(vocabulary) - 1 and tokenizer.token(0) == "[PAD]" and tokenizer.token(10**6) is None
    found = rows(tokenizer.encode(texts, offsets="both"))
    assert [row["row"] for row in found] == list(range(len(texts)))
    for text, row in zip(texts, found):
        if text is None:
            assert set(row.values()) == {row["row"], None}, row
            continue
        starts = list(zip(row["starts"], row["ends"]))
        raw = text.encode()
        assert [text[start:end] for start, end in starts] == [raw[start:end].decode() for start, end in zip(row["byte_starts"], row["byte_ends"])]
        if is_simple(text):
            expected = [(id, (begin + start, begin + end)) for word, begin, _ in words(text) for id, (start, end) in zip(*pieces(word, vocabulary))]
            assert list(zip(row["input_ids"], starts)) == expected, text
    if peer := optional("tokenizers"):
        bert = peer.BertWordPieceTokenizer(str(VOCABULARY / "vocab.txt"), lowercase=True)
        # What looks like a special token is text like any other to engraft.
        theirs = [text for text in texts if text is not None and "[" not in text]
        encoded = bert.encode_batch(theirs, add_special_tokens=False)
        ours = rows(tokenizer.encode(theirs))
        assert [row["input_ids"] for row in ours] == [encoding.ids for encoding in encoded]
        simple = [at for at, text in enumerate(theirs) if is_simple(text)]
        assert all(list(zip(ours[at]["starts"], ours[at]["ends"])) == encoded[at].offsets for at in simple)
    cut = rows(engraft.tokenize(texts, VOCABULARY, max_tokens=3, offsets=None))
    assert [row["input_ids"] for row in cut] == [row["input_ids"] and row["input_ids"][:3] for row in found]
    assert list(cut[0]) == ["row", "input_ids"] and engraft.tokenize(texts[:1], tokenizer, offsets="bytes").columns[2:] == ["byte_starts", "byte_ends"]
    assert [row["row"] for row in rows(tokenizer.encode(texts[:3], first_row=7))] == [7, 8, 9]
    cased = rows(engraft.tokenize(["Fever"], out / "shards/tokenizer" / "vocab.txt"))
    assert cased[0]["input_ids"] == rows(tokenizer.encode(["fever"]))[0]["input_ids"]


MODIFIERS = ["negated", "uncertain", "historical", "hypothetical", "other_person"]


def mentions_are_those_of_a_search(texts):
    entities = read("entities.parquet")
    named = [(entity["text"], id) for id, entity in enumerate(entities)]
    named += [(term["text"], term["entity"]) for term in read("terms.parquet") if term["kind"] != "definition"]
    known = {}
    for text, id in named:
        known.setdefault(tuple(word for word, *_ in words(text)), set()).add(id)
    known.pop((), None)
    longest = max(map(len, known))
    tagger = engraft.Tagger(TRIPLES, abbreviations="plain", context="none", candidates=1_000, **AS_WRITTEN)
    assert tagger.report["terms"] == len(known) == len(tagger)
    simple = [text if text is not None and is_simple(text) else None for text in texts]
    expected = []
    for row, text in enumerate(simple):
        split, at, mention = words(text or ""), 0, 0
        while at < len(split):
            ends = (end for end in range(min(len(split), at + longest), at, -1) if tuple(word for word, *_ in split[at:end]) in known)
            end = next(ends, None)
            if end is not None:
                start, stop = split[at][1], split[end - 1][2]
                name = tuple(word for word, *_ in split[at:end])
                # Those first whose preferred name it is.
                ids = sorted(known[name], key=lambda id: (tuple(word for word, *_ in words(entities[id]["text"])) != name, id))
                for candidate, id in enumerate(ids):
                    entity = entities[id]
                    expected.append({
                        "row": row, "mention": mention, "candidate": candidate, "start": start, "end": stop, "byte_start": len(text[:start].encode()),
                        "byte_end": len(text[:stop].encode()), "text": text[start:stop], "how": "name", "entity": entity["key"],
                        "name": entity["text"], "types": entity["types"], "score": 1.0, **dict.fromkeys(MODIFIERS, False),
                    })  # fmt: skip
                mention += 1
            at = end or at + 1
    found = rows(tagger.tag(simple))
    assert found == expected and len(found) > 500, (len(found), len(expected))
    typed = next(type["name"] for entity in entities for type in entity["types"])
    chosen = rows(engraft.tag(simple, TRIPLES, types={"only": [typed]}, ambiguous={"first": 1}))
    assert chosen and all(typed in [type["name"] for type in row["types"]] for row in chosen)
    assert len({(row["row"], row["mention"]) for row in chosen}) == len(chosen)
    # What `engraft tag` finds beside names: abbreviations, spellings that are near, what sentences say.
    name = next(entity["text"] for entity in entities if entity["text"].isalpha() and len(entity["text"]) > 9)
    said = rows(engraft.tag([f"No {name} (XQZ)? {name[0]}{name} {name}x."], TRIPLES, near={"threshold": 0.5}))
    assert [(row["text"], row["how"]) for row in said if row["candidate"] == 0][0] == (name, "name"), said
    assert said[0]["negated"] and {"near"} <= {row["how"] for row in said} and all(0.5 <= row["score"] <= 1 for row in said), said


def fold(text):
    return " ".join(unicodedata.normalize("NFC", text).split()).lower()


def negatives_are_stated_by_no_triple():
    stated = pq.read_table(TRIPLES / "triples.parquet").select(["subject", "relation", "object"])
    entities, relations = read("entities.parquet"), read("relations.parquet")
    keys = [
        {"subject": entities[row["subject"]]["key"], "relation": relations[row["relation"]]["key"], "object": entities[row["object"]]["key"]}
        for row in stated.to_pylist()
    ]
    drawer = engraft.Negatives(TRIPLES, per=3, seed=5)
    found = rows(drawer.draw(stated))
    assert found == rows(engraft.negatives(pa.Table.from_pylist(keys), triples=TRIPLES, per=3, seed=5))
    symmetric = {relation["key"] for relation in relations if relation["symmetric"]}
    names = {entity["key"]: entity["text"] for entity in entities}
    texts = {key: fold(text) for key, text in names.items()}
    known = {(texts[row["subject"]], row["relation"], texts[row["object"]]) for row in keys}
    known |= {(other, relation, one) for one, relation, other in known if relation in symmetric}
    said = [(texts[row["subject"]], row["relation"], texts[row["object"]]) for row in found]
    assert not known & set(said) and len(found) == 3 * len(keys)
    assert all(len(set(said[at : at + 3])) == 3 for at in range(0, len(said), 3))
    for row in found:
        source = keys[row["row"]]
        changed = [column for column in ("subject", "relation", "object") if row[column] != source[column]]
        assert changed == [row["replaced"]] and row["subject_text"] == names[row["subject"]]
    # The draw is of the row's number, whatever it comes with.
    parts = [rows(drawer.draw(stated.slice(start, 37), first_row=start)) for start in range(0, len(keys), 37)]
    assert [row for part in parts for row in part] == found
    assert rows(drawer.draw(pa.RecordBatchReader.from_batches(stated.schema, stated.to_batches(max_chunksize=11)))) == found
    later, other = rows(drawer.draw(stated, epoch=1)), rows(engraft.negatives(stated, triples=TRIPLES, per=3, seed=6))
    assert found != later != other != found
    report = drawer.draw(stated).report
    assert sum(report["kept"].values()) == len(found) and report["proposed"] == len(found) + sum(report[why] for why in ("unchanged", "known", "held", "repeated"))
    # What cannot be had is told.
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        few = engraft.negatives(stated.slice(0, 1), triples=TRIPLES, per=10_000, slots=["relation"], max_draws=200)
    assert len(few) == few.report["kept"]["relation"] < len(relations) and f"{few.report['gave_up']} of 10000" in str(told[0].message)


def triples_are_those_of_the_stage():
    def located(value):
        if isinstance(value, dict):
            return {key: located(of) for key, of in value.items()}
        return str(out / "world" / value.removeprefix("world:")) if isinstance(value, str) and value.startswith("world:") else value

    sources = located(tomllib.loads(config.read_text())["sources"])
    batches = engraft.triples(sources)
    entities, relations = read("entities.parquet"), read("relations.parquet")
    expected = [
        {
            **{name: (relations if name == "relation" else entities)[row[name]]["key"] for name in ("subject", "relation", "object")},
            **{f"{name}_text": (relations if name == "relation" else entities)[row[name]]["text"] for name in ("subject", "relation", "object")},
            "origins": row["origins"],
        }
        for row in read("triples.parquet")
    ]
    assert rows(batches) == expected == rows(batches) and len(batches) == len(expected)
    funnel = json.loads((TRIPLES / "funnel.json").read_text())
    assert batches.report["merged"] == funnel["merged"] and len(batches.report["read"]) == len(funnel["read"])
    one = engraft.triples("hsdn", path=Path(sources["hsdn"]["path"]), min_tfidf=20.0)
    assert 0 < len(one) < len(engraft.triples("hsdn", path=sources["hsdn"]["path"])) and {row["relation"] for row in rows(one)} == {"cooccurs_with_symptom"}


def paragraphs(folder):
    """The documents of text files as the format `text = "paragraph"` has them."""
    for file in sorted(folder.glob("*.txt")):
        text = "\n".join(line.strip() for line in file.read_text().split("\n"))
        yield from filter(None, re.split("\n{2,}", text.strip("\n")))


def maps_are_those_of_the_stage():
    texts = list(paragraphs(of_maps / "world/text"))
    expected = pa.concat_tables(pq.read_table(file) for file in sorted((of_maps / "maps").glob("*.parquet")))
    expected = expected.rename_columns(["row", *expected.column_names[1:]]).to_pylist()
    folders = [of_maps / stage for stage in ("vocabulary", "triples", "counts", "pmi")]
    settings = tomllib.loads(config_of_maps.read_text())["maps"]
    maps = engraft.Maps(*folders, **settings)
    batches = maps.make(texts)
    found = rows(batches)
    assert found == expected and len(found) > 500, (len(found), len(expected))
    told = json.loads((of_maps / "maps/index.json").read_text())["texts"]["train"]
    assert batches.report == told and all(told[what] > 50 for what in ("samples", "term_pairs", "graph_pairs")), told
    # Nulls have no row, and a text's samples do not depend on what comes with it.
    gaps = [text for pair in zip(texts, [None, ""] * len(texts)) for text in pair]
    assert [{**row, "row": row["row"] // 2} for row in rows(maps.make(gaps))] == expected
    table = pa.table({"text": texts})
    parts = [rows(maps.make(table.slice(start, 31), first_row=start)) for start in range(0, len(texts), 31)]
    assert [row for part in parts for row in part] == expected
    chunked = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7))
    assert rows(maps.make(chunked, column="text")) == expected == rows(pickle.loads(pickle.dumps(maps)).make(texts))
    assert pa.schema(batches).field("words").type == pa.list_(pa.field("item", pa.int32(), nullable=False))
    # Less is known with fewer folders.
    whole = rows(engraft.maps(table, folders[0], unit="document", entities="none", phrases="none", terms="none", column="text"))
    assert [row["row"] for row in whole] == list(range(len(texts))) and not any(row["chunk"] or any(row["entities"]) or row["term_first"] for row in whole)
    tokens = rows(engraft.tokenize(texts, folders[0], offsets=None))
    assert all(row["input_ids"][1:-1] == ids["input_ids"][: row["real"] - 2] for row, ids in zip(whole, tokens))
    assert rows(maps.make([])) == [] == rows(maps.make([None, "", " \n"]))


def refusals():
    table = pa.table({"a": ["x"], "b": ["y"]})
    spent = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    spent.read_all()
    invalid = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    ids = pa.table({"subject": [10**9], "relation": [0], "object": [0]})
    missing = pa.array([None], pa.string())
    hsdn = out / "world/hsdn/Combined-Input.tsv"
    nothing = {"entities": "none", "phrases": "none", "terms": "none"}

    def cased(**settings):
        with tempfile.TemporaryDirectory() as folder:
            vocabulary = Path(folder) / "vocab.txt"
            vocabulary.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nFever\n")
            return engraft.Maps(vocabulary, case="cased", **settings)

    def fails():
        yield table.to_batches()[0]
        raise RuntimeError("the network is down")

    for kind, said, work in [
        (TypeError, "put it into a list", lambda: engraft.word_counts("text")),
        (TypeError, "texts[1] is of type int", lambda: engraft.word_counts(["text", 1])),
        (TypeError, "of type int: expected a list", lambda: engraft.word_counts(1)),
        (TypeError, "Int64: expected strings", lambda: engraft.word_counts(pa.array([1]))),
        (TypeError, "Binary: expected strings", lambda: engraft.word_counts(pa.array([b"a"]))),
        (ValueError, 'expected column=NAME, one of "a", "b"', lambda: engraft.word_counts(table)),
        (ValueError, 'no column "c": it has "a", "b"', lambda: engraft.word_counts(table, column="c")),
        (ValueError, "leave `column` out", lambda: engraft.word_counts(table["a"], column="a")),
        (ValueError, "damaged", lambda: engraft.word_counts(invalid)),
        (ValueError, "the network is down", lambda: engraft.word_counts(pa.RecordBatchReader.from_batches(table.schema, fails()), column="a")),
        (ValueError, '"uncased" or "cased"', lambda: engraft.word_counts([], case="upper")),
        (OSError, "none of", lambda: engraft.Tokenizer(TRIPLES)),
        (OSError, "cannot read the vocabulary", lambda: engraft.Tokenizer(out / "nothing.txt")),
        (ValueError, '"characters", "bytes", "both" or None', lambda: engraft.tokenize([], VOCABULARY, offsets="words")),
        (ValueError, "at least 1", lambda: engraft.tokenize([], VOCABULARY, max_tokens=0)),
        (ValueError, "first_row=-1", lambda: engraft.Tokenizer(VOCABULARY).encode([], first_row=-1)),
        (ValueError, "unknown field `shortest`, expected one of `min_letters`", lambda: engraft.Tagger(TRIPLES, shortest=3)),
        (ValueError, "max_words is 0", lambda: engraft.Tagger(TRIPLES, max_words=0)),
        (ValueError, "near.threshold is 2", lambda: engraft.Tagger(TRIPLES, near={"threshold": 2})),
        (ValueError, 'context=1: expected "english"', lambda: engraft.Tagger(TRIPLES, context=1)),
        (OSError, "nowhere.tsv", lambda: engraft.Tagger(TRIPLES, context=out / "nowhere.tsv")),
        (OSError, "entities.parquet", lambda: engraft.Tagger(out / "nowhere")),
        (ValueError, "unknown field `size`, expected one of `unit`", lambda: engraft.Maps(VOCABULARY, size={"rows": 1})),
        (ValueError, "limits.tokens is 3, expected at least 4", lambda: engraft.Maps(VOCABULARY, limits={"tokens": 3})),
        (ValueError, "entities.dictionary.max_words is 0", lambda: engraft.Maps(VOCABULARY, entities={"dictionary": {"max_words": 0}})),
        (ValueError, "nothing is marked in a column of texts", lambda: engraft.Maps(VOCABULARY, TRIPLES, entities="marked")),
        (ValueError, 'give its folder as triples, or set entities = "none"', lambda: engraft.Maps(VOCABULARY)),
        (ValueError, 'give its folder as triples, or set graph = "none"', lambda: engraft.Maps(VOCABULARY, **nothing, graph="adjacent")),
        (ValueError, 'give its folder as counts, or set phrases = "none"', lambda: engraft.Maps(VOCABULARY, TRIPLES)),
        (ValueError, 'give its folder as pmi, or set terms = "none"', lambda: engraft.Maps(VOCABULARY, TRIPLES, phrases="none")),
        (ValueError, "leave it out", lambda: engraft.Maps(VOCABULARY, TRIPLES, **nothing)),
        (ValueError, "are Uncased, but those of the vocabulary are Cased", lambda: cased(counts=of_maps / "counts", **nothing | {"phrases": {"neighbours": {}}})),
        (ValueError, "are Uncased, but those of the vocabulary are Cased", lambda: cased(pmi=of_maps / "pmi", **nothing | {"terms": "relevance"})),
        (OSError, "entities.parquet", lambda: engraft.Maps(VOCABULARY, out / "nowhere", phrases="none", terms="none")),
        (OSError, "nowhere", lambda: engraft.Maps(VOCABULARY, pmi=out / "nowhere", **nothing | {"terms": "relevance"})),
        (ValueError, "case=", lambda: engraft.Maps(VOCABULARY, case="upper", **nothing)),
        (ValueError, "expected one of `sampler`, `slots`, `same`, `max_draws`", lambda: engraft.Negatives(TRIPLES, filter="none")),
        (ValueError, "per=0", lambda: engraft.Negatives(TRIPLES, per=0)),
        (ValueError, "none twice", lambda: engraft.Negatives(TRIPLES, slots=[])),
        (TypeError, "expected a table", lambda: engraft.negatives(["a"], triples=TRIPLES)),
        (ValueError, 'no column "subject"', lambda: engraft.negatives(table, triples=TRIPLES)),
        (ValueError, "row 0, column subject: 1000000000 is no id", lambda: engraft.negatives(ids, triples=TRIPLES)),
        (ValueError, "the graph has no entity", lambda: engraft.negatives(ids.set_column(0, "subject", [["x"]]), triples=TRIPLES)),
        (ValueError, "null, expected the key of an entity", lambda: engraft.negatives(ids.set_column(0, "subject", [missing]), triples=TRIPLES)),
        (ValueError, "hsdn.pth: unknown field `pth`, expected one of `path`", lambda: engraft.triples("hsdn", pth="x")),
        (ValueError, "expected one of `rotmensch`", lambda: engraft.triples("dhsn", path="x")),
        (ValueError, "kgx.mine", lambda: engraft.triples("kgx", nodes="x")),
        (ValueError, "is a URL", lambda: engraft.triples("hsdn", path="https://example.org/a.tsv")),
        (ValueError, "path is empty", lambda: engraft.triples("hsdn", path="")),
        (OSError, "cannot open it", lambda: engraft.triples("hsdn", path=out / "nothing.tsv")),
        (OSError, "line 1", lambda: engraft.triples("rotmensch", path=hsdn)),
        (ValueError, "below_min_tfidf", lambda: engraft.triples("hsdn", path=hsdn, min_tfidf=1e9)),
        (ValueError, "expected one of `inverses`", lambda: engraft.triples("hsdn", path=hsdn, canon={"inverse": "keep"})),
        (TypeError, "beside a dictionary", lambda: engraft.triples({"hsdn": {"path": hsdn}}, min_tfidf=1.0)),
    ]:  # fmt: skip
        try:
            done = work()
        except kind as error:
            assert said in str(error), (said, error)
        else:
            raise AssertionError(f"{said}: nothing was refused: {done}")


def kernels(given, **column):
    """What all kernels make of texts, as one digest for each."""
    made = {
        "counts": engraft.word_counts(given, **column),
        "tokens": engraft.tokenize(given, VOCABULARY, offsets="both", **column),
        "mentions": engraft.tag(given, TRIPLES, **column),
        "maps": engraft.maps(given, VOCABULARY, TRIPLES, phrases="none", terms="none", graph="adjacent", **column),
    }
    return {name: hashlib.sha256(json.dumps(rows(batches)).encode()).hexdigest() for name, batches in made.items()}


def what_is_read_twice_is_the_same_memory(texts):
    places = lambda table: [buffer.address for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer]
    for batches in (engraft.tokenize(texts, VOCABULARY), engraft.Tagger(TRIPLES, min_letters=4).tag(texts)):
        first, second = pa.table(batches), pa.table(batches)
        assert places(first) == places(second) != [], batches


def in_child(given, found):
    found.put(kernels(given))


def nothing_depends_on_chunks_threads_or_processes(texts):
    expected = kernels(texts)
    for name, given, column in shapes(texts):
        if "reader" not in name:
            assert kernels(given, **column) == expected, name
        else:
            assert rows(engraft.word_counts(given, **column)) == rows(engraft.word_counts(texts)), name
    for threads in ("1", "5"):
        again = [sys.executable, *sys.argv, "--digests"]
        ran = subprocess.run(again, env=os.environ | {"RAYON_NUM_THREADS": threads}, capture_output=True, text=True, check=True)
        assert json.loads(ran.stdout.splitlines()[-1]) == expected, threads
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=in_child, args=(texts, queue))
    child.start()
    assert queue.get(timeout=120) == expected
    child.join()
    for of, work in [
        (engraft.Tokenizer(VOCABULARY, case="uncased"), lambda of: of.encode(texts)),
        (engraft.Tagger(TRIPLES, min_letters=4), lambda of: of.tag(texts)),
        (engraft.Negatives(TRIPLES, per=2, seed=3), lambda of: of.draw(pq.read_table(TRIPLES / "triples.parquet"))),
    ]:
        assert rows(work(pickle.loads(pickle.dumps(of)))) == rows(work(of)), of


def python_goes_on_meanwhile(texts):
    """Another thread of Python gets its turn all the while a kernel works: had it kept the lock, most tenths of the time would have none."""
    turns, over = [], threading.Event()

    def count():
        while not over.is_set():
            turns.append(time.perf_counter())
            time.sleep(0)

    triples = pq.read_table(TRIPLES / "triples.parquet")
    tokenizer, tagger = engraft.Tokenizer(VOCABULARY, case="uncased"), engraft.Tagger(TRIPLES, min_letters=4)
    maps, negatives = engraft.Maps(VOCABULARY, TRIPLES, phrases="none", terms="none"), engraft.Negatives(TRIPLES, per=5, seed=3)
    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    for name, work in {
        "counts": lambda table: engraft.word_counts(table, column="text"),
        "tokens": lambda table: tokenizer.encode(table, column="text"),
        "mentions": lambda table: tagger.tag(table, column="text"),
        "maps": lambda table: maps.make(table, column="text"),
        "negatives": negatives.draw,
    }.items():
        # Until it takes long enough to be looked at.
        for many in (8, 64, 512):
            table = pa.concat_tables([triples if name == "negatives" else pa.table({"text": texts})] * many)
            began = time.perf_counter()
            work(table)
            took = time.perf_counter() - began
            if took > 0.2:
                break
        tenths = {int(10 * (turn - began) / took) for turn in list(turns) if began < turn < began + took}
        assert len(tenths) > 5, f"{name}: turns in {sorted(tenths)} of ten in {took:.3f} s"
    over.set()
    thread.join()


def consumers_take_batches(texts):
    batches = engraft.tag(texts, TRIPLES)
    expected = rows(batches)
    assert pa.RecordBatchReader.from_stream(batches).read_all().to_pylist() == expected
    assert pa.schema(batches) == pa.table(batches).schema and batches.columns == pa.table(batches).column_names
    assert len(batches) == len(expected) and str(len(expected)) in repr(batches) and batches.report is None
    if polars := optional("polars"):
        assert polars.DataFrame(batches).to_dicts() == expected
    if duckdb := optional("duckdb"):
        assert duckdb.sql("select count(*), sum(byte_end - byte_start) from batches").fetchall()[0] == (
            len(expected), sum(row["byte_end"] - row["byte_start"] for row in expected),
        )  # fmt: skip
    # What comes out may go in again.
    assert rows(engraft.word_counts(batches, column="text")) == rows(engraft.word_counts([row["text"] for row in expected]))


TEXTS = corpus()
if "--digests" in sys.argv:
    print(json.dumps(kernels(TEXTS)))
    sys.exit()
counts_are_those_of_plain_python(TEXTS)
tokens_are_those_of_wordpiece(TEXTS)
mentions_are_those_of_a_search(TEXTS)
negatives_are_stated_by_no_triple()
triples_are_those_of_the_stage()
maps_are_those_of_the_stage()
refusals()
nothing_depends_on_chunks_threads_or_processes(TEXTS)
consumers_take_batches(TEXTS)
what_is_read_twice_is_the_same_memory(TEXTS)
python_goes_on_meanwhile(TEXTS)
print("ok")
