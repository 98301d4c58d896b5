"""Counts ranks and their means again, from the scores of all candidates: another implementation of stage `rank`."""

import json
import math
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

out = Path(sys.argv[1])
scores = json.loads((out / "rank/rank.json").read_text())
rows = pq.read_table(out / "triples/triples.parquet").to_pylist()
triples = [(row["subject"], row["relation"], row["object"]) for row in rows]
known = set(triples)
slots = {"subject": 0, "relation": 1, "object": 2}

table = pq.read_table(out / "triples/relations.parquet").to_pylist()
numbers = {row["key"]: row["id"] for row in table}
stated = set(triples)
for subject, relation, object_ in triples:
    row = table[relation]
    turned = [relation] if row["symmetric"] else []
    turned += [] if row["inverse"] is None else [numbers.get(row["inverse"], row["inverse"])]
    stated |= {(object_, other, subject) for other in turned}

candidates = defaultdict(list)
for row in pq.read_table(out / "rank/candidates.parquet").to_pylist():
    candidates[row["triple"], row["side"]].append(row)


def ranked(file):
    """Of each question the filtered and the raw rank, both checked."""
    found = {}
    for row in pq.read_table(out / "rank" / file).to_pylist():
        triple, side = triples[row["triple"]], row["side"]
        of = candidates[row["triple"], side]
        assert [c["score"] for c in of] == sorted((c["score"] for c in of), reverse=True), "the best first"
        assert len({c["candidate"] for c in of}) == len(of), "each candidate once"
        own = [c for c in of if c["candidate"] == triple[slots[side]]]
        assert len(own) == 1 and own[0]["score"] == row["score"] and own[0]["stated"], row
        for c in of:
            other = list(triple)
            other[slots[side]] = c["candidate"]
            assert c["stated"] == (tuple(other) in stated), "what the table has is stated, or its inverse, and nothing else"
        others = [c for c in of if c is not own[0]]
        for kind, some in [("", [c for c in others if not c["stated"]]), ("raw_", others)]:
            above = sum(c["score"] > row["score"] for c in some)
            ties = sum(c["score"] == row["score"] for c in some)
            expected = (above + 1 + above + ties + 1) / 2
            assert (row[kind + "rank"], row[kind + "ties"], row[kind + "candidates"]) == (expected, ties, len(some) + 1), row
        found[row["triple"], side] = row
    return found


def means(rows, kind):
    ranks = [row[kind + "rank"] for row in rows]
    expected = math.fsum((row[kind + "candidates"] + 1) / 2 for row in rows) / len(rows)
    mr = math.fsum(ranks) / len(ranks)
    return {
        "ranks": len(ranks),
        "mrr": math.fsum(1 / rank for rank in ranks) / len(ranks),
        "mr": mr,
        "hits_1": sum(rank <= 1 for rank in ranks) / len(ranks),
        "hits_3": sum(rank <= 3 for rank in ranks) / len(ranks),
        "hits_10": sum(rank <= 10 for rank in ranks) / len(ranks),
        "adjusted_mean_rank_index": 1 - (mr - 1) / (expected - 1) if expected > 1 else None,
    }


def check(said, rows):
    rows = list(rows)
    for name, kind in [("filtered", ""), ("raw", "raw_")]:
        assert said[name] == means(rows, kind), (name, said[name], means(rows, kind))


entities = ranked("ranks.parquet")
assert len(entities) == 2 * scores["triples"]
check(scores, entities.values())
if scores["given_away"]:
    check(scores["not_given_away"], (row for row in entities.values() if row["given_away"] is None))
for side, said in scores["sides"].items():
    check(said, (row for (_, of), row in entities.items() if of == side))
keys = pq.read_table(out / "triples/relations.parquet").column("key").to_pylist()
for relation, said in scores["relations"].items():
    check(said, (row for (triple, _), row in entities.items() if keys[triples[triple][1]] == relation))
# Bordes et al. 2013: many from a mean of 1.5 on.
kinds = {}
for relation in {triple[1] for triple in known}:
    of = [triple for triple in known if triple[1] == relation]
    many = [len(of) / len({triple[end] for triple in of}) >= 1.5 for end in (0, 2)]
    kinds[relation] = {(False, False): "1-1", (True, False): "1-N", (False, True): "N-1", (True, True): "N-N"}[tuple(many)]
for kind, sides in scores["categories"].items():
    for side, said in sides.items():
        of = ((triple, row) for (triple, asked), row in entities.items() if asked == side)
        check(said, (row for triple, row in of if kinds[triples[triple][1]] == kind))
leaks = {row["held"] for row in pq.read_table(out / "split/leaks.parquet").to_pylist()}
for (triple, _), row in entities.items():
    assert (triple in leaks) == (row["given_away"] not in (None, "suspected")), row
assert sum(scores["given_away"].values()) == len({row["triple"] for row in entities.values() if row["given_away"]})
relations = ranked("relation_ranks.parquet")
assert len(relations) == scores["triples"]
check(scores["relation_prediction"], relations.values())
print("counted again:", len(entities) + len(relations), "ranks")

# PyKEEN's own ranks and means, where it is installed.
try:
    import numpy
    import torch
    from pykeen.evaluation.ranks import Ranks
    from pykeen.metrics import ranking as pykeen
except ImportError:
    sys.exit()
for kind, said in [("", scores["filtered"]), ("raw_", scores["raw"])]:
    places, sizes = [], []
    for (triple, side), row in entities.items():
        of = candidates[triple, side]
        answer = triples[triple][slots[side]]
        others = [c["score"] for c in of if kind or not c["stated"] or c["candidate"] == answer]
        found = Ranks.from_scores(torch.tensor([[row["score"]]]), torch.tensor([others]))
        assert found.realistic.item() == row[kind + "rank"], row
        places.append(found.realistic.item())
        sizes.append(found.number_of_options.item())
    places, sizes = numpy.asarray(places, dtype=float), numpy.asarray(sizes)
    theirs = {
        "mrr": pykeen.InverseHarmonicMeanRank()(places),
        "mr": pykeen.ArithmeticMeanRank()(places),
        "hits_1": pykeen.HitsAtK(1)(places),
        "hits_3": pykeen.HitsAtK(3)(places),
        "hits_10": pykeen.HitsAtK(10)(places),
        "adjusted_mean_rank_index": pykeen.AdjustedArithmeticMeanRankIndex()(places, sizes),
    }
    # Their sums are in another order.
    far = {name: (value, said[name]) for name, value in theirs.items() if abs(value - said[name]) > 1e-14 * max(1, abs(value))}
    assert not far, far
print("as PyKEEN has it")
