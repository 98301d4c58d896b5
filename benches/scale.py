"""What corpora and graphs far larger than those measured would cost, from the rates in docs/benchmarks.md, and a simulated run of 1,000 parts on workers that fail.

Usage: scale.py [--write FILE | --check FILE]
Prints tables in Markdown. --write puts them between their marks in FILE (docs/scale.md); --check ends with an error if FILE has others. Nothing is measured: rates
are read from docs/benchmarks.md, and the script fails if one is no longer found. Everything supposed beyond that is in `SUPPOSED` and in the first table. Random numbers come from fixed seeds. Python's standard library is enough.
"""

import argparse
import heapq
import math
import random
import re
import sys
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BENCHMARKS = ROOT / "docs/benchmarks.md"
HOUR = 3600.0
MIB = 2.0**20


# Rates, as docs/benchmarks.md has them.


def number(cell):
    """The first number of a cell."""
    found = re.search(r"-?[\d,]*\.?\d+", cell)
    return float(found[0].replace(",", "")) if found else None


class Benchmarks:
    """Sections by heading; the rows of their tables as columns by name."""

    def __init__(self, text):
        self.sections = {}
        rows = head = lines = None
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("## "):
                rows, lines = [], []
                self.sections[line[3:]] = (rows, lines)
                head = None
            elif rows is None:
                continue
            elif not line.startswith("|"):
                head = None
                lines.append(line)
            elif head is None:
                # Columns without a name have their number, so that none hides another.
                head = [cell or str(at) for at, cell in enumerate(cells)]
            elif not set(line) <= set("|-: "):
                rows.append(dict(zip(head, cells)))

    def section(self, heading):
        for title, found in self.sections.items():
            if title.startswith(heading):
                return found
        sys.exit(f"docs/benchmarks.md: no section begins with {heading!r}; benches/scale.py reads rates there")

    def rate(self, heading, column, **where):
        """The number in `column` of the first row whose cells begin as `where` says; `row` is the first column."""
        for row in self.section(heading)[0]:
            first = next(iter(row.values()), "")
            fits = (first if name == "row" else row.get(name, "") for name in where)
            if column in row and all(cell.startswith(start) for cell, start in zip(fits, where.values())):
                if (found := number(row[column])) is not None:
                    return found
        sys.exit(f"docs/benchmarks.md, {heading!r}: no row {where} with a number in column {column!r}; benches/scale.py reads it")

    def cell(self, heading, column, row):
        """The text in `column` of the first row that begins so."""
        for cells in self.section(heading)[0]:
            if column in cells and next(iter(cells.values()), "").startswith(row):
                return cells[column]
        sys.exit(f"docs/benchmarks.md, {heading!r}: no row {row!r} with a column {column!r}; benches/scale.py reads it")

    def said(self, heading, pattern):
        """The number that a sentence of the section has where `pattern` has a group."""
        if found := re.search(pattern, " ".join(self.section(heading)[1])):
            return number(found[1])
        sys.exit(f"docs/benchmarks.md, {heading!r}: no sentence has {pattern!r}; benches/scale.py reads it")


bench = Benchmarks(BENCHMARKS.read_text(encoding="utf-8"))
STAGES, MAPS, STREAMS, LARGE = "Stages one by one", "Corpus statistics and maps", "Streams of shards", "Large texts and graphs"
IN_PARTS = "Counts in parts beside the whole"
KG, MODEL = "A Metathesaurus", "Model: training steps"


def of_stage(row, column="per second of one core"):
    return bench.rate(STAGES, column, row=row)


def of_corpus(row, column="whole"):
    return bench.rate(STAGES, column, row=row)


# Of large texts and graphs.


@dataclass(frozen=True)
class Measured:
    """A stage by itself, with one thread."""

    name: str
    input: int
    unit: str
    #: Of the processor.
    seconds: float
    peak_mib: int
    #: Bytes of the artifact.
    written: int

    @property
    def rate(self):
        return self.input / self.seconds

    @property
    def bytes(self):
        """Written, for each of the input."""
        return self.written / self.input


def of_large(row):
    """A row of the stages of large texts and graphs."""
    name, unit = bench.cell(LARGE, "stage", row=row), bench.cell(LARGE, "unit", row=row)
    value = lambda column: bench.rate(LARGE, column, row=row)
    return Measured(name, int(value("input")), unit, value("processor seconds"), int(value("peak MiB")), int(value("written, MB") * 1e6))


MEASURED = {
    "mentions": of_large("`mentions`, a part"),
    "mentions, joined": of_large("`mentions`, joined"),
    "masked_lm": of_large("`masked_lm`, a part"),
    "masked_lm, joined": of_large("`shards` of `masked_lm`, 10 parts"),
    "tagging": of_large("`tagging`, a part"),
    "tagging, joined": of_large("`shards` of `tagging`, 78 parts"),
    "triples": of_large("`triples`, the Metathesaurus"),
    "split": of_large("`split`, its triples"),
    "names": of_large("`vocabulary`, its names"),
    "shards": of_large("`shards`, its triples"),
}


@dataclass(frozen=True)
class Parted:
    """A corpus counted whole and in 64 parts: seconds, distinct words, pairs and bytes of the whole, and of the parts together."""

    #: By two threads, on the clock.
    whole: float
    parts: float
    #: What joining the parts takes.
    joined: float
    #: Parts and join by as many threads as the cores have that are projected, but on two: on the clock, and of the processor.
    by_many: tuple
    words: tuple
    pairs: tuple
    written: tuple

    def on(self, cores):
        """Seconds of parts and of join on so many cores: what one thread does alone stays as it is (Amdahl); time in which both cores wait counts twice."""
        for clock, processor in self.by_many:
            alone = max(0.0, 2 * clock - processor)
            yield alone + (processor - alone) / cores


def of_parted(text):
    """A row of the texts that were counted whole and in parts."""
    value = lambda column, threads="2": bench.rate(IN_PARTS, column, row=text, threads=threads)
    return Parted(
        *(value(f"{what}, s") for what in ("whole", "64 parts", "joined")),
        tuple(tuple(value(f"{what}, {of}", "16") for of in ("s", "processor s")) for what in ("64 parts", "joined")),
        *((int(value(f"{what}: whole")), int(value(f"{what}: parts"))) for what in ("words", "pairs", "bytes")),
    )


PARTED = {text: of_parted(text) for text in ("27 MB", "309 MB")}


# What is supposed.

SUPPOSED = {
    "words of PubMed": (10e9, "10 G", "About twice the 4.5 G that Lee et al. 2020 (BioBERT) give for its abstracts"),
    "words of PubMed Central": (30e9, "30 G", "About twice the 13.5 G that the same paper gives for its full texts"),
    "exponent of distinct words, published": (0.5, "0.5", "Heaps' law: Manning, Raghavan and Schütze 2008, section 5.1.1"),
    "exponent of pairs, published": (0.8, "0.8", "Pennington, Socher and Manning 2014 (GloVe), section 3.2"),
    "cores of a worker": (16, "16", "Chosen; each core runs a part of its own with one thread"),
    "network of a worker, GB/s": (1.25, "1.25", "Chosen: 10 Gbit/s, shared by its cores; the depot has no limit"),
    "a part's time varies by": (0.15, "15 % either way", "Not measured: parts end at borders of files"),
    "slow workers": (0.05, "5 %, a third as fast", "Not measured: stragglers as in Dean and Ghemawat 2004 (MapReduce), section 3.6"),
    "until a lost worker is noticed, s": (60.0, "1 minute", "Not measured"),
    "until a lost worker is replaced, s": (300.0, "5 minutes", "Not measured"),
}


def supposed(name):
    return SUPPOSED[name][0]


CORES = int(supposed("cores of a worker"))


class Corpus:
    """A corpus of so many words, from that of configs/kam-maps.toml."""

    def __init__(self, words):
        self.words = words
        times = words / of_corpus("words and punctuation")
        self.samples = words / of_corpus("words and punctuation marks a sentence")
        self.bytes = words * of_corpus("bytes of text a word or punctuation")
        self.subwords = self.bytes * MEASURED["masked_lm"].input / MEASURED["mentions"].input
        self.distinct = [of_corpus("distinct words") * times**power for power in growth("distinct words")]
        self.pairs = [of_corpus("pairs") * times**power for power in growth("pairs")]
        # The tables of pairs and of adjacent pairs.
        both = 1 + of_corpus("adjacent pairs") / of_corpus("pairs")
        self.rows = [pairs * both for pairs in self.pairs]
        self.scored = [of_corpus("words with scores") * times**power for power in growth("distinct words")]

    @property
    def packed(self):
        return self.bytes * of_corpus("text, by gzip")


def growth(what):
    """The power of the corpus's size that something grows with: as measured between a shard and the whole, and as published."""
    column = next(name for name in bench.section(STAGES)[0][0] if name.startswith("mean of"))
    times = of_corpus("words and punctuation") / of_corpus("words and punctuation", column)
    least = log(of_corpus(what) / of_corpus(what, column), times)
    return least, supposed(f"exponent of {what}, published")


def log(value, base):
    return math.log(value) / math.log(base)


PART_BYTES = 256 * MIB
PARTS = 1000
#: From the code: a word of the lexicon (its end and count, 16 bytes, a place in the hash table, 6, how many sentences have it, 8) and its letters, about 10.
LEXICON = 40
#: From the code: a number of four bytes for each word of each part, while parts are merged.
NUMBER = 4
#: From the code: while scores are computed, the best 100 pairs of a word in a heap (room for 128, 16 bytes each), then at most twice as many entries of the matrix,
#: 8 bytes each, in memory twice while the file is made.
BEST, ENTRIES = 128 * 16, 200 * 8
#: From the code: pairs in memory take 16 bytes and a quarter of the limit, then become a run; so many runs can be open before all are merged into one.
RUN_SHARE, RUNS = 16 * 4, 47


@dataclass
class Merge:
    """What joining the parts of a corpus costs."""

    pairs: list
    counts_seconds: list
    #: Bytes of words held, of which the limit must be four times as much, and the limit with which no run is merged twice.
    words: list
    memory: list
    maps_seconds: float
    #: What a part has.
    part: Corpus


def merge(corpus):
    parts = corpus.bytes / PART_BYTES
    part = Corpus(corpus.words / parts)
    pairs = [rows * parts for rows in part.rows]
    seconds = [rows / of_stage("`counts`, joined") for rows in pairs]
    words = [distinct * LEXICON + mine * parts * NUMBER for distinct, mine in zip(corpus.distinct, part.distinct)]
    memory = [max(4 * held, rows * RUN_SHARE / RUNS) for held, rows in zip(words, pairs)]
    again = corpus.samples / of_stage("`maps`, joined")
    return Merge(pairs, seconds, words, memory, again, part)


MAP_RATE = bench.rate(MAPS, "engraft", row="samples made and written")
MAP_BYTES = bench.rate(MAPS, "engraft", row="bytes a sample")
PAIR_BYTES = of_stage("`counts`", "written, MB") * 1e6 / (of_corpus("pairs") + of_corpus("adjacent pairs"))


# Numbers as people read them.


def plain(value):
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g}"


def many(value):
    """A number, or from one to another."""
    low, high = (value, value) if not isinstance(value, (list, tuple)) else value
    one, other = plain(low), plain(high)
    if one == other:
        return one
    (low, unit), (high, last) = ((*text.split(), "")[:2] for text in (one, other))
    return f"{low} to {high} {last}".strip() if unit == last else f"{one} to {other}"


def size(value):
    return many(value) + "B" if many(value)[-1] in "kMGT" else many(value) + " B"


def hours(seconds):
    low, high = seconds if isinstance(seconds, (list, tuple)) else (seconds, seconds)
    texts = [f"{value / HOUR:,.0f}" if value >= 20 * HOUR else f"{value / HOUR:.2g}" for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def table(head, rows, left=(0,)):
    rule = "|" + "|".join("---" if column in left else "--:" for column in range(len(head))) + "|"
    return "\n".join("| " + " | ".join(row) + " |" if row else rule for row in (head, None, *rows))


# The tables.

PUBMED, PMC = Corpus(supposed("words of PubMed")), Corpus(supposed("words of PubMed Central"))


def assumptions():
    measured = f"measured: benchmarks.md, *{STAGES}*"
    powers = growth("distinct words")[0], growth("pairs")[0]
    rows = [
        ["words a sentence, punctuation marks included", f"{of_corpus('words and punctuation marks a sentence'):g}", measured],
        ["bytes of text a word, punctuation marks included", f"{of_corpus('bytes of text a word or punctuation'):.2f}", measured],
        ["text packed by gzip, of its size", f"{of_corpus('text, by gzip'):.2f}", measured],
        ["exponent of distinct words: they grow with the corpus to this power", f"{powers[0]:.2f}", "measured there, between an eighth of the corpus and the whole"],
        ["exponent of pairs", f"{powers[1]:.2f}", "measured there"],
    ]
    rows += [[name, text, source] for name, (_, text, source) in SUPPOSED.items()]
    return table(["", "value", "source"], rows, left=(0, 2))


def corpora():
    columns = [PUBMED, PMC]
    rows = [
        ["words", *(many(one.words) for one in columns)],
        ["plain text", *(size(one.bytes) for one in columns)],
        ["packed by gzip", *(size(one.packed) for one in columns)],
        ["sentences, each a sample of maps", *(many(one.samples) for one in columns)],
        ["parts of 256 MiB of plain text", *(f"{one.bytes / PART_BYTES:,.0f}" for one in columns)],
        ["distinct words", *(many(one.distinct) for one in columns)],
        ["pairs", *(many(one.pairs) for one in columns)],
        ["words with scores", *(many(one.scored) for one in columns)],
    ]
    return table(["", "PubMed", "PubMed Central"], rows)


def amount(corpus, stage):
    """What a corpus has of a stage's input."""
    return {"bytes of text": corpus.bytes, "subwords": corpus.subwords}[MEASURED[stage].unit]


# Bytes that `shards` keeps of each row of text while it makes them: where its document is, and whether it has anything to ask for.
OF_A_ROW = 17


def held(corpus, task):
    """Bytes of memory in which `shards` makes rows of a corpus's passages: a block of them, and what it keeps of every row."""
    of = MEASURED[f"{task}, joined"]
    rows = bench.said(LARGE, rf"`{task}` ([\d,]+)") / of.input
    return of.peak_mib * MIB + OF_A_ROW * rows * amount(corpus, task)


def of_texts(corpus, stage, task=None):
    """Input, rate, core-hours, memory and bytes written of a stage on texts."""
    of, much = MEASURED[stage], amount(corpus, stage)
    of_text = of.unit == "bytes of text"
    return (size(much) if of_text else f"{many(much)} {of.unit}", f"{(size if of_text else many)(of.rate)}/s", hours(much / of.rate),
            size(held(corpus, task)) if task else f"{of.peak_mib:,} MiB", size(much * of.bytes))


def texts():
    rows = []
    counting = of_stage("`counts`")
    for name, corpus in (("PubMed", PUBMED), ("PubMed Central", PMC)):
        joined = merge(corpus)
        parts = corpus.bytes / PART_BYTES
        per_pair = of_stage("`pmi`")
        reading = bench.rate(MAPS, "engraft", row="samples read and checked")
        expanding = bench.rate(MAPS, "engraft", row="samples expanded")
        maps = corpus.samples * MAP_BYTES
        best = corpus.scored[1] * (BEST + 2 * ENTRIES)
        vocabulary = size(of_stage("`vocabulary`", "written, MB") * 1e6)
        rows += [
            [name, "`counts`, parts", f"{many(corpus.words)} words", f"{many(counting)}/s", hours(corpus.words / counting), "limit of 2 GiB",
             size([rows * parts * PAIR_BYTES for rows in joined.part.rows]), "parts"],
            ["", "`counts`, joined", f"{many(joined.pairs)} pairs", f"{many(of_stage('`counts`, joined'))}/s", hours(joined.counts_seconds),
             "limit of " + size(joined.memory), size([rows * PAIR_BYTES for rows in corpus.rows]), "one machine"],
            ["", "`pmi`", f"{many(corpus.pairs)} pairs", f"{many(per_pair)}/s", hours([pairs / per_pair for pairs in corpus.pairs]), "up to " + size(best),
             "up to " + size(corpus.scored[1] * ENTRIES) + " (matrix)", "one machine"],
            ["", "`maps`, parts", f"{many(corpus.samples)} samples", f"{many(MAP_RATE)}/s", hours(corpus.samples / MAP_RATE),
             f"{of_stage('`maps`', 'peak MiB'):,.0f} MiB and the matrix", size(maps), "parts"],
            ["", "`maps`, joined", f"{many(corpus.samples)} samples", f"{many(corpus.samples / joined.maps_seconds)}/s", hours(joined.maps_seconds), "", size(maps),
             "one machine"],
            ["", "maps read and expanded, an epoch", f"{many(corpus.samples)} samples", f"{many(1 / (1 / reading + 1 / expanding))}/s",
             hours(corpus.samples * (1 / reading + 1 / expanding)), "", "", "where it trains"],
            ["", "`vocabulary`, if trained on all of it", size(corpus.bytes), f"{size(of_stage('`vocabulary`'))}/s", hours(corpus.bytes / of_stage("`vocabulary`")), "",
             vocabulary, "one machine"],
            ["", "`mentions`, parts", *of_texts(corpus, "mentions"), "parts"],
            ["", "`mentions`, joined", *of_texts(corpus, "mentions, joined"), "one machine"],
        ]
        for task in ("masked_lm", "tagging"):
            rows += [
                ["", f"`{task}`, parts", *of_texts(corpus, task), "parts"],
                ["", f"`shards` of `{task}`", *of_texts(corpus, f"{task}, joined", task), "one machine"],
            ]
    return table(["", "stage", "input", "rate of a core", "core-hours", "memory", "written", "where"], rows, left=(0, 1, 7))


def graph():
    umls = {"row": "engraft", "MRREL rows": "20 M"}
    rrf = bench.said(KG, r"([\d.]+) GB") * 1e9
    seconds = bench.rate(KG, "processor seconds", **umls)
    shards = bench.rate(STREAMS, "rows/s", row="`engraft run shards --jobs 2`") / 2
    row_bytes = bench.rate(STREAMS, "bytes per row", row="`engraft run shards --jobs 2`")
    tokens = bench.rate(STREAMS, "tokens/s", row="`engraft run shards --jobs 2`") / 2 / shards
    tasks = ["subject", "object", "relation", "triplet"]
    rows_of = [bench.rate(STREAMS, "rows", task=task) for task in tasks]
    reading = sum(rows_of) / sum(rows / bench.rate(STREAMS, "engraft", task=task) for rows, task in zip(rows_of, tasks))
    names, made, cut = MEASURED["names"], MEASURED["shards"], MEASURED["split"]
    split_bytes = of_stage("`split`", "written, MB") * 1e6 / of_stage("`split`", "input")
    split, peak = of_stage("`split`"), of_stage("`split`", "peak MiB") * MIB / of_stage("`split`", "input")
    training = bench.rate(MODEL, "tokens/s", **{"two threads": "32 rows of 6 to 64 tokens"}) / 2
    billion = 1e9
    rows = [
        ["20 M relations of UMLS", "`triples`", size(rrf), f"{size(rrf / seconds)}/s", hours(seconds), f"{bench.rate(KG, 'peak MiB', **umls):,.0f} MiB",
         size(MEASURED["triples"].written), "one machine"],
        ["", "`split`", f"{many(cut.input)} triples", f"{many(cut.rate)}/s", hours(cut.seconds), f"{cut.peak_mib:,} MiB", size(cut.written), "one machine"],
        ["", "`vocabulary`, on names", size(names.input), f"{size(names.rate)}/s", hours(names.seconds), f"{names.peak_mib:,} MiB", size(names.written), "one machine"],
        ["", "`shards`", f"{many(made.input)} rows", f"{many(made.rate)}/s", hours(made.seconds), f"{made.peak_mib:,} MiB", size(made.written), "one machine"],
        ["20 M triples, were none dropped", "`split`", "20 M triples", f"{many(cut.rate)} to {many(split)}/s", hours([20e6 / split, 20e6 / cut.rate]), size(20e6 * peak), size(20e6 * split_bytes), "one machine"],
        ["10^9 samples of four tasks", "`shards`", "1 G rows", f"{many(made.rate)} to {many(shards)}/s", hours([billion / shards, billion / made.rate]), "", size([billion * row_bytes, billion * made.bytes]), "one machine"],
        ["", "read once", "1 G rows", f"{many(reading)}/s", hours(billion / reading), "", "", "where it trains"],
        ["", "trained on once (MiniLM, f32)", f"{many(billion * tokens)} tokens", f"{many(training)}/s", hours(billion * tokens / training), "", "", "ranks"],
    ]
    return table(["", "stage", "input", "rate of a core", "core-hours", "memory", "written", "where"], rows, left=(0, 1, 7))


def apart():
    """What one machine does with the largest of the inputs above, and how long a machine by itself takes for all of a corpus."""
    joined = merge(PMC)
    rows = [
        ["counts, joined", "PubMed Central", hours(joined.counts_seconds), "limit of " + size(joined.memory)],
        ["`pmi`", "PubMed Central", hours([pairs / of_stage("`pmi`") for pairs in PMC.pairs]), "up to " + size(PMC.scored[1] * (BEST + 2 * ENTRIES))],
        ["maps, joined", "PubMed Central", hours(joined.maps_seconds), ""],
        ["`mentions`, joined", "PubMed Central", *of_texts(PMC, "mentions, joined")[2:4]],
        ["`shards` of `masked_lm`", "PubMed Central", *of_texts(PMC, "masked_lm, joined", "masked_lm")[2:4]],
        ["`vocabulary`", "all of PubMed Central's text", hours(PMC.bytes / of_stage("`vocabulary`")), ""],
        ["`triples`", "20 M relations", hours(bench.rate(KG, "processor seconds", row="engraft", **{"MRREL rows": "20 M"})),
         f"{bench.rate(KG, 'peak MiB', row='engraft', **{'MRREL rows': '20 M'}):,.0f} MiB"],
        ["`split`", "20 M triples", hours([20e6 / of_stage("`split`"), 20e6 / MEASURED["split"].rate]), size(20e6 * of_stage("`split`", "peak MiB") * MIB / of_stage("`split`", "input"))],
    ]
    uncut = [(one.words / of_stage("`counts`") + one.pairs[1] / of_stage("`pmi`") * CORES + one.samples / MAP_RATE) / CORES for one in (PUBMED, PMC)]
    return (table(["stage", "of", "core-hours", "memory"], rows, left=(0, 1))
            + f"\n\nCounts, scores and maps of the uncut corpus take {hours(uncut[0])} hours for PubMed and {hours(uncut[1])} for PubMed Central on one machine with {CORES} cores, "
            f"supposing that its {CORES} threads count and make maps {CORES} times as fast as one.")


def ways():
    """Parts beside counting the parts alone, and beside counting the whole."""
    rows = []
    for text, of in PARTED.items():
        whole, parts, joined = of.whole, of.parts, of.joined
        counting, joining = of.on(CORES)
        rows.append([
            text, f"{whole:.3g}", f"{parts:.3g}", f"{joined:.3g}", f"{joined / whole:.2f}", f"{(parts + joined) / parts:.2f}", f"{(parts + joined) / whole:.2f}",
            f"{(counting + joining) / counting:.2f} ({counting:.2g} s and {joining:.2g} s)",
            *(f"{many(one)} and {many(other)}" for one, other in (of.words, of.pairs)), f"{of.written[0] / 1e6:,.0f} and {of.written[1] / 1e6:,.0f}",
        ])
    return table(["text", "whole, s", "64 parts, s", "joined, s", "joined, of the whole", "parts and join, of the parts alone", "of the whole", f"of the parts alone, projected to {CORES} cores",
                  "distinct words: whole, parts", "pairs: whole, parts", "written, MB: whole, parts"], rows)


# The simulated run.

NETWORK = supposed("network of a worker, GB/s") * 1e9
SEEDS = range(20)


@dataclass(order=True)
class Event:
    at: float
    order: int
    what: str = field(compare=False)
    worker: int = field(compare=False)
    life: int = field(compare=False, default=0)
    task: int = field(compare=False, default=0)


class Run:
    """Workers that take tasks as long as there are any, fail, and come back with nothing. What is done is in the depot and stays."""

    def __init__(self, workers, failures_an_hour, slow, seed):
        self.chance = random.Random(seed)
        self.now, self.events, self.order = 0.0, [], count()
        self.rate = failures_an_hour / HOUR
        # The last one is a machine apart, which neither fails nor takes parts.
        self.free = [CORES] * (workers + 1)
        self.life = [0] * (workers + 1)
        self.up = [True] * (workers + 1)
        self.slow = [slow and self.chance.random() < supposed("slow workers") for _ in range(workers)]
        self.running = [{} for _ in range(workers + 1)]
        self.useful = self.lost = 0.0
        self.reruns = self.most = self.failures = 0
        for worker in range(workers):
            self.fails_later(worker)

    def push(self, after, what, worker, task=0):
        heapq.heappush(self.events, Event(self.now + after, next(self.order), what, worker, self.life[worker], task))

    def fails_later(self, worker):
        if self.rate:
            self.push(self.chance.expovariate(self.rate), "fail", worker)

    def phase(self, seconds, cores=1, apart=False):
        """Does all tasks, each on so many cores of a worker, or of the machine apart; seconds from its start to its end."""
        start, waiting, tries, left = self.now, list(range(len(seconds)))[::-1], [0] * len(seconds), len(seconds)
        parts = len(seconds) > 1
        spread = supposed("a part's time varies by") if parts else 0.0
        workers = range(len(self.free))[-1:] if apart else range(len(self.free) - 1)
        lasts = [one * self.chance.uniform(1 - spread, 1 + spread) for one in seconds]
        while left:
            for worker in workers:
                while self.up[worker] and waiting and self.free[worker] >= cores:
                    task = waiting.pop()
                    tries[task] += 1
                    self.free[worker] -= cores
                    self.running[worker][task] = self.now
                    # A merge is not given to a slow worker.
                    self.push(lasts[task] * (3 if parts and self.slow[worker] else 1), "done", worker, task)
            event = heapq.heappop(self.events)
            self.now = event.at
            worker = event.worker
            if event.what == "noticed":
                waiting.append(event.task)
            elif event.life != self.life[worker]:
                continue
            elif event.what == "done":
                self.useful += (self.now - self.running[worker].pop(event.task)) * cores
                self.free[worker] += cores
                left -= 1
            elif event.what == "fail":
                self.failures += 1
                for task, since in self.running[worker].items():
                    self.lost += (self.now - since) * cores
                    self.reruns += 1
                    self.push(supposed("until a lost worker is noticed, s"), "noticed", worker, task)
                self.running[worker] = {}
                self.life[worker] += 1
                self.up[worker], self.free[worker] = False, 0
                self.push(supposed("until a lost worker is replaced, s"), "back", worker)
            elif event.what == "back":
                self.up[worker], self.free[worker] = True, CORES
                self.fails_later(worker)
        self.most = max(self.most, *tries)
        return self.now - start


def whole():
    """The corpus of 1,000 parts, and the seconds of a part's and a merge's work with what is fetched and put into the depot."""
    corpus = Corpus(PARTS * PART_BYTES / of_corpus("bytes of text a word or punctuation"))
    joined = merge(corpus)
    part, line = joined.part, NETWORK / CORES
    matrix = corpus.scored[1] * ENTRIES
    maps = part.samples * MAP_BYTES
    counted = part.rows[1] * PAIR_BYTES
    return corpus, {
        "counts": part.words / of_stage("`counts`") + (PART_BYTES + counted) / line,
        "maps": part.samples / MAP_RATE + (PART_BYTES + matrix + maps) / line,
        # All threads of a worker.
        "merge": joined.counts_seconds[1] / CORES + (counted * PARTS + corpus.rows[1] * PAIR_BYTES) / NETWORK,
        # One thread; its worker's network is its own.
        "pmi": corpus.pairs[1] / of_stage("`pmi`") + matrix / NETWORK,
        "join": joined.maps_seconds / CORES + 2 * maps * PARTS / NETWORK,
    }


def simulated(workers, case, seed):
    """Seconds of the parts, of the merges, and the run itself."""
    _, costs = WHOLE
    run = Run(workers, case.failures, case.slow, seed)
    parts = run.phase([costs["counts"]] * PARTS)
    merges = run.phase([costs["merge"]], cores=CORES, apart=case.apart) + run.phase([costs["pmi"]], apart=case.apart)
    parts += run.phase([costs["maps"]] * PARTS)
    merges += run.phase([costs["join"]], cores=CORES, apart=case.apart)
    return parts, merges, run


@dataclass(frozen=True)
class Case:
    name: str
    #: An hour of a worker.
    failures: float = 0.0
    slow: bool = True
    #: Whether merges run on a machine that does not fail.
    apart: bool = False


FAULTS = 1 / 1000


WHOLE = whole()
CASES = [
    Case("none, no slow workers", slow=False),
    Case("none"),
    Case("faults, 1 in 1,000 h", FAULTS),
    Case("and preempted, 1 in 24 h", FAULTS + 1 / 24),
    Case("and preempted, 1 in 1 h", FAULTS + 1),
    Case("the same, merges on a machine that stays", FAULTS + 1, apart=True),
]


def work():
    corpus, costs = WHOLE
    joined = merge(corpus)
    rows = [
        ["counts, each of 1,000 parts", "1", f"{costs['counts']:,.0f}", f"{costs['counts'] * PARTS / HOUR:.1f}"],
        ["counts, joined", f"{CORES}", f"{costs['merge']:,.0f}", f"{costs['merge'] * CORES / HOUR:.1f}"],
        ["pmi", "1", f"{costs['pmi']:,.0f}", f"{costs['pmi'] / HOUR:.1f}"],
        ["maps, each of 1,000 parts", "1", f"{costs['maps']:,.0f}", f"{costs['maps'] * PARTS / HOUR:.1f}"],
        ["maps, joined", f"{CORES}", f"{costs['join']:,.0f}", f"{costs['join'] * CORES / HOUR:.1f}"],
    ]
    return (f"{many(corpus.words)} words, {size(corpus.bytes)} of plain text, {many(corpus.samples)} samples. While counts are joined, {size(joined.words)} of words are held; "
            f"`counts.memory` is supposed to be {size(joined.memory[1])}, so that no run of pairs is merged twice. Transfers are included.\n\n"
            + table(["", "cores", "seconds", "core-hours"], rows))


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def simulation():
    rows, alone = [], simulated(1, CASES[0], 0)[0]
    # A machine by itself makes no parts and joins none.
    base = alone + WHOLE[1]["pmi"]
    for case in CASES:
        for workers in (1, 4, 16, 64):
            runs = [simulated(workers, case, seed) for seed in SEEDS]
            parts, merges = mean(one for one, _, _ in runs), mean(one for _, one, _ in runs)
            useful, lost = mean(run.useful for *_, run in runs), mean(run.lost for *_, run in runs)
            rows.append([
                case.name, f"{workers}", f"{(parts + merges) / HOUR:.2f}", f"{parts / HOUR:.2f}", f"{merges / HOUR:.2f}", f"{base / (parts + merges):.1f}",
                f"{alone / parts:.1f}", f"{(useful + lost) / HOUR:.0f}", f"{lost / HOUR:.2f}", f"{mean(run.failures for *_, run in runs):.1f}",
                f"{mean(run.reruns for *_, run in runs):.1f}", f"{max(run.most for *_, run in runs)}",
            ])
    return table(["interruptions of a worker", "workers", "hours", "of the parts", "of the merges", "speed-up", "of the parts alone", "core-hours", "of which lost", "interruptions", "reruns",
                  "most tries"], rows)


TABLES = {
    "assumptions": assumptions, "corpora": corpora, "texts": texts, "graph": graph, "apart": apart, "ways": ways, "work": work, "simulation": simulation,
}


def filled(text, tables):
    """A document with these tables between their marks."""
    for name, of in tables.items():
        marks = re.compile(rf"(<!-- scale\.py: {name} -->\n)(?:(?!<!--).*\n)*(<!-- end -->)")
        if len(marks.findall(text)) != 1:
            sys.exit(f"expected one pair of marks `<!-- scale.py: {name} -->` and `<!-- end -->`")
        text = marks.sub(lambda found, of=of: found[1] + of + "\n" + found[2], text)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--check", type=Path)
    given = parser.parse_args()
    tables = {name: make() for name, make in TABLES.items()}
    if file := given.write or given.check:
        before = file.read_text(encoding="utf-8")
        after = filled(before, tables)
        if given.write:
            file.write_text(after, encoding="utf-8")
        elif before != after:
            sys.exit(f"{file}: its tables are not those of benches/scale.py: run `just scale --write {file}` and read the difference")
    else:
        print("\n\n".join(tables.values()))


if __name__ == "__main__":
    main()
