"""False triples beside true ones, for benches/rank.py and benches/answers.py: the very triples that engraft's stage `rank` classified, drawn again by its rules, and how well scores tell them apart.

A false triple has the subject or the object of another shown triple, and is none that the graph states. What is put in is a function of a seed and of places (`base::rng::RngKey`: SplitMix64, and XXH3 of
what is drawn), which is written out here, since no file of engraft has these triples.
"""

import json

import ledger
from measures import auroc

MASK = (1 << 64) - 1
# Samples of a relation, true and false, below which it has no threshold of its own.
LEAST = 10


def rotated(x, by):
    return (x << by | x >> (64 - by)) & MASK


def finalized(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def mixed(x):
    return finalized(x + 0x9E3779B97F4A7C15 & MASK)


class Key:
    """A key of random numbers."""

    def __init__(self, value):
        self.value = value

    def named(self, purpose):
        """XXH3 with a seed, of 4 to 8 bytes."""
        text, seed = purpose.encode(), self.value
        assert 4 <= len(text) <= 8, purpose
        seed ^= int.from_bytes((seed & 0xFFFFFFFF).to_bytes(4, "little"), "big") << 32
        first, last = (int.from_bytes(of, "little") for of in (text[:4], text[-4:]))
        x = (last + (first << 32) & MASK) ^ ((0x1CAD21F72C81017C ^ 0xDB979083E96DD4DE) - seed & MASK)
        x = (x ^ rotated(x, 49) ^ rotated(x, 24)) * 0x9FB21C651E98DF25 & MASK
        x = (x ^ (x >> 35) + len(text)) * 0x9FB21C651E98DF25 & MASK
        return Key(x ^ x >> 28)

    def at(self, index):
        return Key(mixed(self.value ^ mixed(index)))

    def below(self, bound):
        return mixed(self.value) * bound >> 64


def false_one(triple, shown, stated, key):
    """A triple with another subject or object, or nothing where none is false."""
    sides, donors = [0, 2], key.named("donor")
    if key.named("slot").at(1).below(2) == 0:
        sides.reverse()
    for turn, side in enumerate(sides):
        for draw in range(1000):
            donor = shown[donors.at(turn).at(draw).below(len(shown))]
            other = list(triple)
            other[side] = donor[side]
            if tuple(other) not in stated:
                return tuple(other)
    return None


def samples(out, names):
    """Of `test` and `valid` the triples by their keys, and whether each is true; `names` are the keys of entities and of relations, by number."""
    import pyarrow.parquet as pq

    read = lambda name: pq.read_table(out / name).to_pylist()
    how = ledger.made(out, "rank")["described"]["fields"]
    same = [("rank.part", "test"), ("rank.max_triples", None)]
    for key, expected in same:
        assert how.get(key) == expected, f"{key} is {how.get(key)!r}, and true and false triples are counted again with {expected!r} alone"
    texts = [row["text"].lower().split() for row in read("triples/entities.parquet")]
    assert len(set(map(tuple, texts))) == len(texts), "entities of one name are not told apart here"
    assert not any(row["symmetric"] or row["inverse"] is not None or row["inverses"] for row in read("triples/relations.parquet")), "relations that are symmetric or have an inverse are not done here"
    triples = [(row["subject"], row["relation"], row["object"]) for row in read("triples/triples.parquet")]
    parts = {row["triple"]: row["part"] for row in read("split/split.parquet")}
    of = lambda part: [triple for row, triple in enumerate(triples) if parts[row] == part]
    shown, stated, seed = of("train"), set(triples), Key(mixed(how["rank.seed"])).named("rank").named("false")
    found = {}
    for part in ("test", "valid"):
        # As a sampler of shards draws: of epoch 0.
        key = seed.named(part).at(0)
        drawn = (false_one(triple, shown, stated, key.at(place)) for place, triple in enumerate(of(part)))
        truth = [(triple, True) for triple in of(part)] + [(triple, False) for triple in drawn if triple]
        entities, relations = names
        found[part] = [((entities[one], relations[relation], entities[other]), is_true) for (one, relation, other), is_true in truth]
    return found


def threshold(scored):
    """What is at least as high counts as true: midway between two scores, or below all; of equally good places the lowest."""
    scored = sorted(scored)
    scores = sorted({score for score, _ in scored})
    right = best = sum(true for _, true in scored)
    at, place = scores[0] - 1.0, 0
    for number, score in enumerate(scores):
        while place < len(scored) and scored[place][0] == score:
            right += -1 if scored[place][1] else 1
            place += 1
        if right > best:
            best, at = right, (score + scores[number + 1]) / 2 if number + 1 < len(scores) else score + 1.0
    return at


def classified(samples, score):
    """AUROC, and accuracy above thresholds that `valid` chose: of each relation, of one for all; by the sign, for scores that are log odds."""
    scored = {part: list(zip(score([triple for triple, _ in some]), some)) for part, some in samples.items()}
    of_all = threshold([(score, true) for score, (_, true) in scored["valid"]])
    own = {}
    for score, (triple, true) in scored["valid"]:
        own.setdefault(triple[1], []).append((score, true))
    own = {relation: threshold(some) for relation, some in own.items() if len(some) >= LEAST and len({true for _, true in some}) == 2}
    above = lambda limit: sum((score >= limit(triple[1])) == true for score, (triple, true) in scored["test"]) / len(scored["test"])
    scores, truth = zip(*((score, true) for score, (_, true) in scored["test"]))
    return {
        "auroc": auroc(scores, truth),
        "accuracy": above(lambda relation: own.get(relation, of_all)),
        "accuracy_one_threshold": above(lambda _: of_all),
        "accuracy_argmax": above(lambda _: 0.0),
        "threshold": of_all,
    }


def beside(out, names, by, score):
    """What PyTorch's scores make of engraft's true and false triples, beside engraft's own figures; nothing where engraft has classified none. `by` is the output that both ask."""
    said = json.loads((out / "rank/rank.json").read_text())
    ours = said.get("triple_classification")
    if not ours:
        return None
    assert said["by"] == by, f"{out}/rank is by {said['by']}, and here the output {by} is asked"
    assert ours["negatives"] == ours.get("valid_negatives") == "drawn", "false triples that are published, or thresholds without `valid`, are not done here"
    some = samples(out, names)
    assert sum(not true for _, true in some["test"]) == ours["corrupted"], "other false triples than engraft's"
    theirs = classified(some, score)
    kept = [key for key in theirs if ours[key] is not None]
    return {"true": ours["stated"], "false": ours["corrupted"], "engraft": {key: ours[key] for key in kept}, "pytorch": {key: theirs[key] for key in kept}}
