"""Mentions with ids: `engraft tag` beside spaCy, QuickUMLS and scispaCy on BC5CDR and the NCBI Disease Corpus, and what sentences say of mentions beside
medspaCy and negspaCy.

Usage: mentions.py ENGRAFT DATA --peers PYTHON [--negex FILE] [--keep FOLDER]
ENGRAFT is the program; DATA has mesh/data/terms.tsv, mesh/data/tree-numbers.tsv, bc5cdr/ (The BioCreative V CDR corpus) and, if it is to be tried, ncbi-disease/ (`engraft fetch ncbi-disease`). The
dictionary is, for all sides, the headings of MeSH that are diseases (trees C, F03) or, for BC5CDR, chemicals (D), inverted ones also put right, and what the training and development parts of the
corpus call their concepts; the texts are its test part, titles with abstracts. A mention counts as found when both its ends and its concept are those of the corpus (of several concepts, one of them).
FILE is Annotations-1-120.txt of NegEx's test set (github.com/chapmanbe/negex): sentences of clinical reports, each with a concept that is negated or not; concepts are given to all
sides. Its triggers were revised after looking at what they missed there.
PYTHON has spacy 3.7, scispacy, quickumls, quickumls-simstring, medspacy and negspacy (Python 3.10; what is missing is left out and said), and NLTK_DATA its stop words.
Peers tag with one thread; engraft, too (--jobs 1). Times are of the wall, without building; prints Markdown.
"""

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from runs import timed


def pubtator(file):
    """Texts of a corpus, and their mentions: start, end, text, concepts (`OMIM:1` is `OMIM_1`)."""
    documents = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"(\d+)\|([ta])\|(.*)", line):
            documents.setdefault(found[1], ["", "", []])["ta".index(found[2])] = found[3]
        elif len(fields := line.split("\t")) >= 6 and fields[1].isdigit():
            concepts = [concept.removeprefix("MESH:").replace(":", "_") for concept in re.split(r"[|+]", fields[5].strip())]
            documents[fields[0]][2].append((int(fields[1]), int(fields[2]), fields[3], concepts))
    return [(f"{title} {abstract}", mentions) for title, abstract, mentions in documents.values()]


def dictionary(data, trees_of, annotated):
    """Names and the concepts that they are of: MeSH's in some trees, and those of annotated texts."""
    trees = (line.split("\t") for line in (data / "mesh/data/tree-numbers.tsv").read_text().splitlines()[1:])
    wanted = {concept for concept, _, tree in trees if tree.startswith(trees_of)}
    rows = {}
    for line in (data / "mesh/data/terms.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        concept, name = line.split("\t")
        if concept in wanted:
            rows[name, concept] = None
            if name.count(", ") == 1:
                rows[" ".join(reversed(name.split(", "))), concept] = None
    for file in annotated:
        for _, mentions in pubtator(file):
            rows.update(((name, of[0]), None) for _, _, name, of in mentions if len(of) == 1 and of[0] != "-1")
    return list(rows)


def ontology(rows, file):
    """The dictionary as an ontology, which engraft reads."""
    names = {}
    for name, concept in rows:
        names.setdefault(concept, []).append(name)
    quoted = lambda name: name.replace("\\", "\\\\").replace('"', '\\"')
    plain = lambda name: re.sub(r"([\\{}!])", r"\\\1", name)
    with file.open("w", encoding="utf-8") as out:
        out.write("format-version: 1.2\nontology: x\n\n[Term]\nid: X:0\nname: zzz root\n")
        for concept, (name, *others) in names.items():
            out.write(f"\n[Term]\nid: X:{concept}\nname: {plain(name)}\nis_a: X:0\n")
            out.writelines(f'synonym: "{quoted(other)}" EXACT []\n' for other in others)


def engraft(program, work, name, settings):
    """What engraft finds in texts: mentions by line, and seconds."""
    config = work / f"{name}.toml"
    config.write_text(f'version = 5\n[sources.obo]\npath = "{name}.obo"\n')
    command = [program, "tag", "--config", config, "--data", work, "--out", work / f"{name}-out", "--jobs", "1", *settings]
    texts = work / f"{name}.txt"
    ran = subprocess.run(command, stdin=texts.open(), capture_output=True, text=True, check=True)
    speed = float(re.search(r"([0-9.,]+) MB/s", ran.stderr)[1].replace(",", ""))
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    found = [
        [(one["start"], one["end"], one["entity"].removeprefix("x:").upper(), "negated" in one["modifiers"]) for one in row["mentions"]]
        for row in rows
    ]
    return found, texts.stat().st_size / 1e6 / speed


def score(found, gold):
    """Precision, recall and F1 of places with concepts."""
    right = sum((start, end) in of and concept in of[start, end] for one, of in zip(found, gold) for start, end, concept in {m[:3] for m in one})
    precision, recall = right / max(1, sum(len({m[:3] for m in one}) for one in found)), right / sum(map(len, gold))
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def peer(kind, terms, texts):
    """What a peer's process does: prints mentions by line and seconds as JSON."""
    import spacy

    rows = [line.rstrip("\n").split("\t") for line in terms.open(encoding="utf-8")]
    lines = texts.read_text(encoding="utf-8").splitlines()
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    if kind == "spacy":
        from spacy.matcher import PhraseMatcher
        from spacy.util import filter_spans

        matcher = PhraseMatcher(nlp.vocab, attr="LOWER")
        for name, concept in rows:
            matcher.add(concept, [nlp.tokenizer(name)])

        def tag(line):
            document = nlp(line)
            spans = filter_spans(matcher(document, as_spans=True))
            return [(span.start_char, span.end_char, span.label_) for span in spans]

        version = f"spaCy {spacy.__version__} `PhraseMatcher`"
    elif kind.startswith("quickumls"):
        from quickumls.core import QuickUMLS
        from quickumls.install import parse_and_encode_ngrams

        folder = Path(tempfile.mkdtemp(prefix="quickumls-"))
        (folder / "language.flag").write_text("ENG")
        (folder / "database_backend.flag").write_text("unqlite")
        if kind == "quickumls-lower":
            (folder / "lowercase.flag").touch()
        lower = str.lower if kind == "quickumls-lower" else str
        names = ((lower(name), concept, ["T000"], 1) for name, concept in rows)
        parse_and_encode_ngrams(names, str(folder / "umls-simstring.db"), str(folder / "cui-semtypes.db"), "unqlite")
        matcher = QuickUMLS(str(folder), accepted_semtypes=None, spacy_component=True)
        matcher.nlp = nlp

        def tag(line):
            groups = matcher._match(nlp(line), best_match=True)
            return [(group[0]["start"], group[0]["end"], group[0]["cui"]) for group in groups]

        version = f"QuickUMLS {importlib.metadata.version('quickumls')}, Jaccard >= 0.7" + (", lower case" if kind == "quickumls-lower" else "")
    else:
        return link(rows, lines, texts)
    start = time.perf_counter()
    found = [tag(line) for line in lines]
    return {"found": found, "seconds": time.perf_counter() - start, "version": version}


def link(rows, lines, texts):
    """scispaCy's candidates for the corpus's own spans, the best one of each; its index with the settings that build in seconds (M 20, efConstruction 200)."""
    import contextlib

    from scispacy import candidate_generation as candidates
    from scispacy.linking_utils import KnowledgeBase

    real = candidates.nmslib

    class Index:
        def __init__(self, of):
            self.__dict__["of"] = of

        def __getattr__(self, name):
            return getattr(self.of, name)

        def createIndex(self, settings, print_progress=False):
            self.of.createIndex({**settings, "M": 20, "efConstruction": 200, "indexThreadQty": 1})

    class Library:
        def __getattr__(self, name):
            return (lambda **of: Index(real.init(**of))) if name == "init" else getattr(real, name)

    candidates.nmslib = Library()
    folder = Path(tempfile.mkdtemp(prefix="scispacy-"))
    names = {}
    for name, concept in rows:
        names.setdefault(concept, []).append(name)
    concepts = ({"concept_id": concept, "canonical_name": of[0], "aliases": of[1:]} for concept, of in names.items())
    (folder / "kb.jsonl").write_text("".join(json.dumps(concept) + "\n" for concept in concepts))
    with contextlib.redirect_stdout(sys.stderr):
        base = KnowledgeBase(str(folder / "kb.jsonl"))
        aliases, vectors, index = candidates.create_tfidf_ann_index(str(folder), base)
        generator = candidates.CandidateGenerator(ann_index=index, tfidf_vectorizer=vectors, ann_concept_aliases_list=aliases, kb=base)
    spans = [(n, *span) for n, of in enumerate(json.loads(texts.with_suffix(".spans").read_text())) for span in of]
    start = time.perf_counter()
    offered = generator([lines[n][start:end] for n, start, end in spans], 30)
    found = [[] for _ in lines]
    for (n, first, last), all_of in zip(spans, offered):
        scored = [(max(one.similarities), one.concept_id) for one in all_of if max(one.similarities) >= 0.7]
        if scored:
            found[n].append((first, last, max(scored)[1]))
    version = f"scispaCy {importlib.metadata.version('scispacy')}'s linker, the corpus's spans given"
    return {"found": found, "seconds": time.perf_counter() - start, "version": version}


def context_peer(kind, rows):
    """Which of the mentions a peer takes for negated."""
    import spacy
    from spacy.tokens import Span

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    if kind == "negspacy":
        from negspacy.negation import Negex
        from negspacy.termsets import termset

        component = Negex(nlp, "negex", termset("en_clinical").get_patterns(), [], "negex", [])
        is_negated = lambda entity: entity._.negex
    else:
        from medspacy.context import ConText

        component = ConText(nlp)
        is_negated = lambda entity: entity._.is_negated
    start, said = time.perf_counter(), []
    for sentence, first, last in rows:
        document = nlp(sentence)
        span = document.char_span(first, last, alignment_mode="expand")
        document.ents = [Span(document, span.start, span.end, label="X")]
        said.append(bool(is_negated(component(document).ents[0])))
    name = {"negspacy": "negspacy", "medspacy": "medspacy"}[kind]
    return {"said": said, "seconds": time.perf_counter() - start, "version": f"{name} {importlib.metadata.version(name)}"}


def asked(python, *arguments):
    """What the process of a peer answers; none where it is not installed."""
    ran = subprocess.run([python, __file__, *map(str, arguments)], capture_output=True, text=True, env=dict(os.environ, OMP_NUM_THREADS="1"))
    if ran.returncode:
        print(f"{arguments[1]} is left out: {ran.stderr.strip().splitlines()[-1]}\n")
        return None
    return json.loads(ran.stdout.splitlines()[-1])


def negex(file):
    """Sentences, where their concepts stand, and whether they are negated."""
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
        fields = [field.strip().strip('"') for field in line.rstrip("\r").split("\t")]
        if len(fields) < 4 or not fields[0].isdigit() or not fields[1]:
            continue
        at = fields[2].find(fields[1].upper())
        if at >= 0:
            rows.append((fields[2], at, at + len(fields[1]), fields[3] == "Negated"))
    return rows


def agreement(said, gold):
    right = sum(one and other for one, other in zip(said, gold))
    precision, recall = right / max(1, sum(said)), right / sum(gold)
    return precision, recall, 2 * precision * recall / (precision + recall)


def contexts(given, work):
    rows = negex(given.negex)
    gold = [negated for *_, negated in rows]
    concepts = sorted({sentence[start:end].lower() for sentence, start, end, _ in rows})
    ontology([(concept, f"N{number}") for number, concept in enumerate(concepts)], work / "negex.obo")
    (work / "negex.txt").write_text("".join(sentence + "\n" for sentence, *_ in rows), encoding="utf-8")
    every = ["min_letters=1", "max_words=60", 'stop_words="none"', "common_words=[]", 'numbers="keep"', 'plurals="as_written"', "upper_case=1"]
    found, seconds = engraft(given.engraft, work, "negex", [part for one in every for part in ("--set", f"tag.dictionary.{one}")])
    said = [any(m[0] < end and start < m[1] and m[3] for m in one) for one, (_, start, end, _) in zip(found, rows)]
    (work / "rows.json").write_text(json.dumps([row[:3] for row in rows]))
    print(f"\nNegated or not: NegEx's test set, {len(rows):,} sentences, {sum(gold):,} negated.\n")
    print("| | precision | recall | F1 | seconds |\n|---|--:|--:|--:|--:|")
    table = [("engraft", said, seconds)]
    for kind in ("medspacy", "negspacy"):
        if answer := asked(given.peers, "--context", kind, work / "rows.json"):
            table.append((answer["version"], answer["said"], answer["seconds"]))
    for name, said, seconds in table:
        print(f"| {name} | " + " | ".join(f"{number:.3f}" for number in agreement(said, gold)) + f" | {seconds:.2f} |")


def tagged(given, work, corpus, trees, files):
    """The table of a corpus, whose last file is its test part."""
    name = files[-1].stem.split("_")[0].lower()
    rows, documents = dictionary(given.data, trees, files[:-1]), pubtator(files[-1])
    ontology(rows, work / f"{name}.obo")
    terms, texts = work / f"{name}.tsv", work / f"{name}.txt"
    terms.write_text("".join(f"{of}\t{concept}\n" for of, concept in rows), encoding="utf-8")
    texts.write_text("".join(text + "\n" for text, _ in documents), encoding="utf-8")
    gold = [{} for _ in documents]
    for found, (_, mentions) in zip(gold, documents):
        for start, end, _, concepts in mentions:
            if concepts != ["-1"]:
                found.setdefault((start, end), set()).update(concepts)
    (work / f"{name}.spans").write_text(json.dumps([sorted(of) for of in gold]))
    megabytes = texts.stat().st_size / 1e6
    print(f"{corpus}'s test part: {len(documents)} abstracts, {megabytes:.2f} MB, {sum(map(len, gold)):,} mentions with a concept; {len(rows):,} names.\n")
    print("| | precision | recall | F1 | MB/s | of it |\n|---|--:|--:|--:|--:|--:|")
    table = []
    for of, settings in [
        ("engraft", []),
        ("engraft, abbreviations plain", ["--set", 'tag.abbreviations="plain"']),
        ("engraft, near >= 0.8", ["--set", "tag.near.threshold=0.8"]),
        ("engraft, near >= 0.7", ["--set", "tag.near.threshold=0.7"]),
    ]:
        table.append((of, *engraft(given.engraft, work, name, settings)))
    for kind in ("spacy", "quickumls", "quickumls-lower", "scispacy"):
        if answer := asked(given.peers, "--peer", kind, terms, texts):
            table.append((answer["version"], [[tuple(one) for one in of] for of in answer["found"]], answer["seconds"]))
    for of, found, seconds in table:
        numbers = " | ".join(f"{number:.3f}" for number in score(found, gold))
        print(f"| {of} | {numbers} | {megabytes / seconds:.2f} | {table[0][2] / seconds:.4f} |")


def memory(given, work):
    """What tagging takes of memory, of a corpus's test part once and many times over."""
    once = (work / "cdr.txt").read_bytes()
    print("\n| text, MB | peak MiB of `engraft tag` |\n|--:|--:|")
    for times in (1, 20, 200, 800):
        texts = work / "many.txt"
        # Piece by piece: a child's peak begins with what its parent holds.
        with texts.open("wb") as many:
            for _ in range(times):
                many.write(once)
        command = [given.engraft, "tag", "--config", work / "cdr.toml", "--data", work, "--out", work / "cdr-out", "--jobs", "1"]
        with texts.open() as many:
            _, peak, _ = timed(*command, stdin=many, stdout=subprocess.DEVNULL)
        print(f"| {len(once) * times / 1e6:.2f} | {peak:.0f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engraft", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--negex", type=Path)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    work = given.keep or Path(tempfile.mkdtemp(prefix="engraft-mentions-"))
    work.mkdir(parents=True, exist_ok=True)
    given.engraft = given.engraft.resolve()
    cdr = next((given.data / "bc5cdr").rglob("CDR_TestSet.PubTator.txt")).parent
    tagged(given, work, "BC5CDR", ("C", "D", "F03"), [cdr / f"CDR_{part}Set.PubTator.txt" for part in ("Training", "Development", "Test")])
    ncbi = given.data / "ncbi-disease"
    if ncbi.is_dir():
        print()
        tagged(given, work, "The NCBI Disease Corpus", ("C", "F03"), [ncbi / f"NCBI{part}set_corpus.txt" for part in ("train", "develop", "test")])
    if given.negex:
        contexts(given, work)
    memory(given, work)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        print(json.dumps(peer(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
    elif sys.argv[1:2] == ["--context"]:
        print(json.dumps(context_peer(sys.argv[2], json.loads(Path(sys.argv[3]).read_text()))))
    else:
        main()
