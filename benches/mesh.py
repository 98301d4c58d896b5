"""MeSH XML to triples and terms: engraft beside Python's lxml.etree.iterparse, in one run.

Usage: mesh.py BENCH FOLDER [RUNS]
BENCH is the built program `bench`, FOLDER the one with desc.xml and supp.xml (the world at scale 160 makes about 300 MB of
descriptors). Both sides read both files from the page cache and gather the same statements and terms: engraft into its builder
(keys interned, texts tidied), the peer into lists of tuples. They take turns; the best of RUNS (3) counts. What comes out is compared row for row,
outside of the times. Prints a table in Markdown.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lxml import etree

bench, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
descriptors, supplements = folder / "desc.xml", folder / "supp.xml"
out = Path(tempfile.mkdtemp(prefix="engraft-mesh-"))


def ours():
    """Seconds from opening the files to everything being in the builder, as the program measures them."""
    said = subprocess.run([bench, "mesh_triples", out, descriptors, supplements], check=True, capture_output=True, text=True).stdout
    return float(said.split()[0])


LINKS = [(etree.XPath(path + "/DescriptorReferredTo/DescriptorUI/text()"), relation) for path, relation in (
    ("PharmacologicalActionList/PharmacologicalAction", "has_pharmacologic_action"),
    ("SeeRelatedList/SeeRelatedDescriptor", "see_related"),
    ("HeadingMappedToList/HeadingMappedTo", "mapped_to"),
)]


def records(path, tag):
    """Each record's element; it is forgotten, with all before it, when the next is asked for."""
    for _, element in etree.iterparse(str(path), tag=tag):
        yield element
        element.clear()
        while element.getprevious() is not None:
            del element.getparent()[0]


def gather(path, kind, ids, trees, links, terms):
    for record in records(path, f"{kind}Record"):
        ui = record.findtext(f"{kind}UI" if kind == "Descriptor" else f"{kind}RecordUI")
        heading = record.findtext("DescriptorName/String" if kind == "Descriptor" else "SupplementalRecordName/String")
        if kind == "Descriptor":
            ids.add(ui)
        terms.append((ui, "preferred", heading))
        for number in record.iterfind("TreeNumberList/TreeNumber"):
            trees.append((ui, number.text))
        for find, relation in LINKS:
            for target in find(record):
                links.append((ui, relation, target.lstrip("*")))
        for concept in record.iterfind("ConceptList/Concept"):
            if concept.get("PreferredConceptYN") == "Y":
                note = concept.findtext("ScopeNote")
                if note:
                    terms.append((ui, "definition", note))
            for term in concept.iterfind("TermList/Term"):
                if term.get("IsPermutedTermYN") != "Y":
                    text = term.findtext("String")
                    if text != heading:
                        terms.append((ui, "synonym", text))


def theirs():
    start = time.perf_counter()
    ids, trees, links, terms = set(), [], [], []
    gather(descriptors, "Descriptor", ids, trees, links, terms)
    gather(supplements, "Supplemental", ids, trees, links, terms)
    bearer = {number: ui for ui, number in trees}
    triples = [(ui, "isa", bearer[parent]) for ui, number in trees if (parent := number.rpartition(".")[0]) in bearer]
    triples += [link for link in links if link[2] in ids]
    return time.perf_counter() - start, triples, terms


def table(name):
    return [tuple(line.rstrip("\n").split("\t")) for line in open(out / name, encoding="utf-8")]


engraft, peer = [], []
for _ in range(runs):
    engraft.append(ours())
    seconds, triples, terms = theirs()
    peer.append(seconds)

triples = {(f"mesh:{s}", relation, f"mesh:{o}") for s, relation, o in triples if s != o}
used = {key for s, _, o in triples for key in (s, o)}
terms = {(f"mesh:{ui}", kind, " ".join(text.split())) for ui, kind, text in terms if f"mesh:{ui}" in used}
for name, expected in (("triples.tsv", triples), ("terms.tsv", terms)):
    found = table(name)
    assert len(found) == len(set(found)), f"{name}: rows repeat"
    assert set(found) == expected, f"{name}: {sorted(set(found) ^ expected)[:5]}"

mega = (descriptors.stat().st_size + supplements.stat().st_size) / 1e6
print(f"{mega:,.0f} MB, {len(triples):,} triples, {len(terms):,} terms, all equal; {os.cpu_count()} cores, {platform.machine()}, "
      f"lxml {etree.__version__}, best of {runs}\n")
print("| | seconds | MB/s | ratio |\n|---|---|---|---|")
print(f"| engraft | {min(engraft):.2f} | {mega / min(engraft):,.0f} | {min(peer) / min(engraft):.1f} |")
print(f"| lxml.etree.iterparse | {min(peer):.2f} | {mega / min(peer):,.0f} | 1 |")
