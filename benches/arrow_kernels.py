"""Kernels over Arrow beside their peers, in one run: `tokenize` beside Hugging Face `tokenizers`, `word_counts` beside DuckDB and Python's Counter, `tag` beside
spaCy's PhraseMatcher where spaCy is installed.

Usage: arrow_kernels.py TEXTS OUT [--megabytes 64]
This Python needs benches/requirements.txt and the package `engraft` (scripts/wheel.sh). TEXTS is a folder of .txt files, or a Parquet file with a column `text`; lines are
repeated, in another order each time, until there are so many megabytes. OUT is an output folder with `vocabulary` and `triples`. Peers take turns with engraft
in one process, each with all of the machine's cores where it can use them; seconds are those of the wall, medians of three, from an Arrow column
to an Arrow table. What is counted and encoded is compared first. Prints a table in Markdown.
"""

import argparse
import importlib.util
import os
import random
import statistics
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers

import engraft

RUNS = 3
# BERT's words of ASCII text: letters and digits, or one punctuation mark.
WORD = r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]"
COUNTED = f"select word, count(*) as occurrences from (select unnest(regexp_extract_all(lower(text), '{WORD.lower().replace(chr(39), chr(39) * 2)}')) as word from texts) group by word"


def lines_of(source, megabytes):
    """Lines of ASCII, so that all split them alike."""
    if source.is_dir():
        lines = [line for file in sorted(source.glob("*.txt")) for line in file.read_text().splitlines()]
    else:
        lines = pq.read_table(source, columns=["text"])["text"].to_pylist()
    lines = [line for line in lines if line and line.isascii() and line.isprintable()]
    draw, texts, size = random.Random(1), [], 0
    while size < megabytes << 20:
        draw.shuffle(lines)
        for line in lines:
            texts.append(line)
            size += len(line)
            if size >= megabytes << 20:
                break
    return pa.array(texts, pa.string()), size


def with_duckdb(texts):
    connection = duckdb.connect()
    connection.register("texts", pa.table({"text": texts}))
    return connection.sql(COUNTED).to_arrow_table()


def with_counter(texts):
    import re

    find, counts = re.compile(WORD).findall, Counter()
    for text in texts.to_pylist():
        counts.update(find(text.lower()))
    return pa.table({"word": list(counts), "occurrences": list(counts.values())})


def with_tokenizers(tokenizer):
    def encode(texts):
        encoded = tokenizer.encode_batch(texts.to_pylist(), add_special_tokens=False)
        return pa.table({"input_ids": [one.ids for one in encoded], "offsets": [one.offsets for one in encoded]})

    return encode


def encoded_only(tokenizer):
    """What `tokenizers` takes alone, without a table."""
    return lambda texts: tokenizer.encode_batch(texts.to_pylist(), add_special_tokens=False)


def with_spacy(triples):
    import spacy
    from spacy.matcher import PhraseMatcher

    language = spacy.blank("en")
    matcher = PhraseMatcher(language.vocab, attr="LOWER")
    matcher.add("TERM", [language.make_doc(text) for text in pq.read_table(triples / "entities.parquet")["text"].to_pylist()])

    def find(texts):
        found = [(row, *match[1:]) for row, doc in enumerate(language.pipe(texts.to_pylist())) for match in matcher(doc)]
        return pa.table({"row": [row for row, *_ in found], "start": [start for _, start, _ in found]})

    return find


def timed(work, texts):
    began = time.perf_counter()
    work(texts)
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=64)
    given = parser.parse_args()
    texts, size = lines_of(given.texts, given.megabytes)
    ours = engraft.Tokenizer(given.out / "vocabulary")
    theirs = tokenizers.BertWordPieceTokenizer(str(given.out / "vocabulary/vocab.txt"), lowercase=True)
    some = texts.slice(0, 2000)
    assert pa.table(ours.encode(some))["input_ids"].to_pylist() == with_tokenizers(theirs)(some)["input_ids"].to_pylist()
    counted = sorted(pa.table(engraft.word_counts(some)).to_pylist(), key=lambda row: row["word"])
    for peer in (with_duckdb, with_counter):
        assert sorted(peer(some).to_pylist(), key=lambda row: row["word"]) == counted, peer
    kernels = {
        "`tokenize`, ids and offsets": {
            "engraft": lambda texts: pa.table(ours.encode(texts)),
            f"tokenizers {version('tokenizers')}, `encode_batch`, then a table": with_tokenizers(theirs),
            "the same without a table": encoded_only(theirs),
        },
        "`word_counts`": {
            "engraft": lambda texts: pa.table(engraft.word_counts(texts)),
            f"DuckDB {version('duckdb')}, `regexp_extract_all`": with_duckdb,
            "Python's `re` and `Counter`": with_counter,
        },
    }
    tagger = engraft.Tagger(given.out / "triples")
    kernels["`tag`"] = {"engraft": lambda texts: pa.table(tagger.tag(texts))}
    if importlib.util.find_spec("spacy"):
        kernels["`tag`"][f"spaCy {version('spacy')}, `PhraseMatcher`"] = with_spacy(given.out / "triples")
    print("| kernel | by | seconds | MB/s | engraft is faster by |\n|---|---|--:|--:|--:|")
    for kernel, ways in kernels.items():
        seconds = {name: [] for name in ways}
        for _ in range(RUNS):
            for name, work in ways.items():
                seconds[name].append(timed(work, texts))
        median = {name: statistics.median(runs) for name, runs in seconds.items()}
        for name, taken in median.items():
            print(f"| {kernel} | {name} | {taken:.2f} | {size / 1e6 / taken:.1f} | {taken / median['engraft']:.1f} |")
        sys.stdout.flush()
    print(f"\n{len(texts):,} texts, {size / 1e6:.0f} MB; {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}; Python {sys.version.split()[0]}.")


if __name__ == "__main__":
    main()
