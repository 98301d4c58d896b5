"""Dictionary tagging beside spaCy's PhraseMatcher, in one run.

Usage: tag.py BENCH DATA [--terms N] [--megabytes M] [--keep FOLDER]
BENCH is the built program `bench`, DATA a folder with mesh/data/terms.tsv and medquad/. The terms are the headings of MeSH, inverted ones
put right, and invented combinations of their words, seeded, up to N (1,000,000): realistic in length and vocabulary, with few
names that occur. The text is the answers of MedQuAD, the first M megabytes of it for spaCy, whose pace does not depend on how much it is.
Both sides split the text, on one thread, and look for the same terms in any case; spaCy with `PhraseMatcher(attr="LOWER")` on documents of
`spacy.blank("en")`, both its terms and its texts. engraft gives leftmost-longest mentions; spaCy all matches, which is less
work than filtering them, and filtered only to compare. Splitters differ ("2mg", "non-small", "'s"), so a few mentions differ;
the script tells how many. Times are seconds of the processor, so that other work on the machine does not count, the least of several.
Prints a table in Markdown.
"""

import argparse
import importlib.metadata
import json
import platform
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

RUNS = 3


def headings(data):
    """MeSH headings as a text has them."""
    lines = (data / "mesh/data/terms.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [" ".join(reversed(line.split("\t")[1].split(", "))) for line in lines]


def invented(names, count):
    """`names` and combinations of their beginnings and ends, none twice."""
    chance = random.Random(1)
    words = [name.split() for name in names]
    found = dict.fromkeys(names)
    while len(found) < count:
        one, other = chance.choice(words), chance.choice(words)
        term = [*one[: chance.randint(1, len(one))], *other[-chance.randint(1, len(other)) :]]
        if len(term) <= 8:
            found[" ".join(term)] = None
    return list(found)[:count]


def answers(data):
    """The answers of MedQuAD, white space made single."""
    for file in sorted((data / "medquad").glob("*/*.xml")):
        for answer in ET.parse(file).iter("Answer"):
            if text := re.sub(r"\s+", " ", answer.text or "").strip():
                yield text


def first(lines, size):
    """As many lines as `size` bytes hold."""
    for line in lines:
        size -= len(line.encode()) + 1
        if size < 0:
            return
        yield line


def spacy_peer(terms, text, out):
    """What the peer's process does."""
    import spacy
    from spacy.matcher import PhraseMatcher
    from spacy.util import filter_spans

    lines = text.read_text(encoding="utf-8").splitlines()
    nlp = spacy.blank("en")
    start = time.process_time()
    matcher = PhraseMatcher(nlp.vocab, attr="LOWER")
    listed = terms.read_text(encoding="utf-8").splitlines()
    # Part after part, so that not all documents are in memory at once.
    for part in range(0, len(listed), 10_000):
        matcher.add("TERM", list(nlp.tokenizer.pipe(listed[part : part + 10_000])))
    build = time.process_time() - start
    seconds = []
    for _ in range(RUNS):
        start = time.process_time()
        tokens = matches = 0
        for line in lines:
            doc = nlp.tokenizer(line)
            tokens += len(doc)
            matches += len(matcher(doc))
        seconds.append(time.process_time() - start)
    mentions = 0
    with out.open("w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            for span in filter_spans(matcher(nlp.tokenizer(line), as_spans=True)):
                begin, end = (len(line[:at].encode()) for at in (span.start_char, span.end_char))
                file.write(f"{number}\t{begin}\t{end}\n")
                mentions += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = text.stat().st_size
    print(json.dumps({
        "build_seconds": build, "megabytes_per_second": size / 1e6 / min(seconds), "tokens": tokens, "matches": matches,
        "mentions": mentions, "peak": peak,
    }))


def measure(command):
    """What a process says in its last line, and its peak in MiB as the system tells it."""
    import os

    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE)
    output = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{command} failed with {child.returncode}")
    return {"peak": usage.ru_maxrss / 1024, **json.loads(output.splitlines()[-1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--terms", type=int, default=1_000_000)
    parser.add_argument("--megabytes", type=float, default=3)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    work = given.keep or Path(tempfile.mkdtemp(prefix="engraft-tag-"))
    work.mkdir(parents=True, exist_ok=True)
    terms, text, part = work / "terms.txt", work / "text.txt", work / "part.txt"
    names = headings(given.data)
    terms.write_text("".join(f"{term}\n" for term in invented(names, given.terms)), encoding="utf-8")
    lines = list(answers(given.data))
    text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    part.write_text("".join(f"{line}\n" for line in first(lines, int(given.megabytes * 1e6))), encoding="utf-8")

    ours = max((measure([given.bench.resolve(), "tag", terms, text]) for _ in range(RUNS)), key=lambda run: run["megabytes_per_second"])
    found = measure([given.bench.resolve(), "tag", terms, part, work / "ours.tsv"])
    peer = measure([sys.executable, __file__, "--spacy", terms, part, work / "spacy.tsv"])
    one, other = ({tuple(line.split("\t")) for line in (work / name).read_text().splitlines()} for name in ("ours.tsv", "spacy.tsv"))

    print(f"{given.terms:,} terms, {len(names):,} of them headings of MeSH; MedQuAD, {len(lines):,} answers, {text.stat().st_size / 1e6:.1f} MB (spaCy: "
          f"{part.stat().st_size / 1e6:.1f} MB); {platform.processor() or platform.machine()}, one thread; spaCy {importlib.metadata.version('spacy')}")
    print(f"On the part: {len(one):,} mentions by engraft, {len(other):,} by spaCy after `filter_spans` (of {peer['matches']:,} matches), "
          f"{len(one & other):,} the same; engraft tags it at {found['megabytes_per_second']:.0f} MB/s\n")
    print("| | engraft | spaCy `PhraseMatcher` | ratio |\n|---|--:|--:|--:|")
    for what, key, turned, digits in (
        ("text, MB/s", "megabytes_per_second", False, 1), ("build, seconds", "build_seconds", True, 1), ("peak, MiB", "peak", True, 0),
    ):
        ratio = peer[key] / ours[key] if turned else ours[key] / peer[key]
        print(f"| {what} | {ours[key]:,.{digits}f} | {peer[key]:,.{digits}f} | {ratio:.1f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--spacy"]:
        spacy_peer(*map(Path, sys.argv[2:5]))
    else:
        main()
