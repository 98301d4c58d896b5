"""What answers are worth: the measures of benchmarks as engraft defines them (`auroc` and the others of docs/config.md), and what the scores of several seeds say of all seeds."""

import itertools
import math

import torch

# Student's t at 97.5 %, by the number of seeds, which is one more than the degrees of freedom.
STUDENT = {2: 12.7062, 3: 4.3027, 4: 3.1824, 5: 2.7764, 6: 2.5706, 7: 2.4469, 8: 2.3646, 9: 2.3060, 10: 2.2622}


def interval(scores):
    """The mean, and where the mean over all seeds lies (95 %, Student's t)."""
    mean, count = sum(scores) / len(scores), len(scores)
    if count not in STUDENT:
        return f"{mean:.1f}" if count < 2 else f"{mean:.1f} (no interval of {count} seeds here)"
    half = STUDENT[count] * math.sqrt(sum((score - mean) ** 2 for score in scores) / (count - 1) / count)
    return f"{mean:.1f} [{mean - half:.1f}, {mean + half:.1f}]"


def f1(hits, said, true):
    return 2 * hits / (said + true) if said + true else 0.0


def entities(tags, names):
    """Spans by conlleval's rules."""
    found, start, kind = set(), None, None
    for at, tag in enumerate([names[tag] for tag in tags] + ["O"]):
        goes_on = tag.startswith("I-") and kind == tag[2:]
        if kind is not None and not goes_on:
            found.add((start, at, kind))
            kind = None
        if tag != "O" and not goes_on:
            start, kind = at, tag[2:]
    return found


def entity_f1(index, rows, said):
    hits = all_said = all_true = 0
    for row, tags in zip(rows, said):
        found, true = entities(tags, index["classes"]), entities(row["answer"]["tags"]["tags"], index["classes"])
        hits, all_said, all_true = hits + len(found & true), all_said + len(found), all_true + len(true)
    return f1(hits, all_said, all_true)


def mid_ranks(values):
    """Places from 1 on; equal values share the mean of theirs."""
    order, ranks, start = sorted(range(len(values)), key=values.__getitem__), [0.0] * len(values), 0
    for _, tied in itertools.groupby(order, key=values.__getitem__):
        tied = list(tied)
        for at in tied:
            ranks[at] = start + (len(tied) + 1) / 2
        start += len(tied)
    return ranks


def pearson(true, said):
    """0 where one side is constant."""
    if len(set(true)) < 2 or len(set(said)) < 2:
        return 0.0
    x, y = (torch.tensor(of, dtype=torch.float64) for of in (true, said))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / math.sqrt(float((x * x).sum() * (y * y).sum()) or 1.0))


def correlation(index, rows, said):
    true, measure = [row["answer"]["score"] for row in rows], index["measure"]
    assert measure in ("pearson", "spearman"), f"no {measure} of scores here"
    return pearson(true, said) if measure == "pearson" else pearson(mid_ranks(true), mid_ranks(said))


def auroc(scores, positive):
    """How often what is positive scores higher than what is not, ties counted half (the statistic of Mann and Whitney)."""
    hits, ranks = sum(positive), mid_ranks(scores)
    others = len(scores) - hits
    assert hits and others, "AUROC is undefined: all examples are of one class"
    return (sum(rank for rank, of in zip(ranks, positive) if of) - hits * (hits + 1) / 2) / (hits * others)


def auroc_of_one(logits, true):
    """By the margin of class 1, if there are two classes; of more the mean over pairs of those that occur, one against the other and the other way round, by their shares (Hand and Till 2001)."""
    if len(logits[0]) == 2:
        return auroc([other - one for one, other in logits], [of == 1 for of in true])
    shares = torch.tensor(logits, dtype=torch.float64).softmax(1).tolist()

    def area(one, other):
        some = [(share[one], of == one) for share, of in zip(shares, true) if of in (one, other)]
        return auroc(*zip(*some))

    areas = [(area(*pair) + area(*reversed(pair))) / 2 for pair in itertools.combinations(sorted(set(true)), 2)]
    assert areas, "AUROC is undefined: all examples are of one class"
    return sum(areas) / len(areas)


def one_class(index, rows, logits):
    """Of choices `logits` are those of a row's own, of which there may be any number."""
    kind, measure = index["kind"], index["measure"]
    true = [row["answer"]["choice"]["right"] if kind == "choice" else row["answer"]["class"] for row in rows]
    if measure == "auroc":
        return auroc_of_one(logits, true)
    said = [max(range(len(of)), key=of.__getitem__) for of in logits]
    if measure == "accuracy":
        return sum(a == b for a, b in zip(true, said)) / len(true)
    count = [[0] * len(index["classes"]) for _ in index["classes"]]
    for a, b in zip(true, said):
        count[a][b] += 1
    if measure == "matthews":
        rows_sum, cols = [sum(row) for row in count], [sum(col) for col in zip(*count)]
        total, right = len(true), sum(count[c][c] for c in range(len(count)))
        under = math.sqrt((total**2 - sum(c * c for c in cols)) * (total**2 - sum(r * r for r in rows_sum)))
        return (right * total - sum(r * c for r, c in zip(rows_sum, cols))) / under if under else 0.0
    return over_classes(index, [(count[c][c], sum(row[c] for row in count), sum(count[c])) for c in range(len(count))])


def over_classes(index, counts):
    """F1 over classes, of each of which `counts` has the hits, how often it is said, and how often true."""
    measure, kept = index["measure"], [of for c, of in enumerate(counts) if c != index.get("nothing")]
    if measure == "micro_f1":
        return f1(*(sum(of) for of in zip(*kept)))
    assert measure == "macro_f1", f"no {measure} of classes here"
    return sum(f1(*of) for of in kept) / len(kept)


def any_classes(index, rows, logits):
    true = [set(row["answer"]["classes"]) for row in rows]
    if index["measure"] == "auroc":
        # What no example has, or all have, is left out.
        columns = [([of[c] for of in logits], [c in of for of in true]) for c in range(len(index["classes"]))]
        areas = [auroc(*column) for column in columns if len(set(column[1])) == 2]
        assert areas, "AUROC is undefined: no class is of some examples and not of others"
        return sum(areas) / len(areas)
    said = [{c for c, logit in enumerate(of) if logit > 0} for of in logits]
    if index["measure"] == "example_f1":
        return example_f1(true, said, {index.get("nothing")})
    place = lambda c, sets: {at for at, of in enumerate(sets) if c in of}
    by_class = [(place(c, said), place(c, true)) for c in range(len(index["classes"]))]
    return over_classes(index, [(len(a & b), len(a), len(b)) for a, b in by_class])


def example_f1(true, said, nothing):
    """F1 of the means over examples of precision and recall (BLUE)."""
    precision = recall = 0.0
    for of, classes in zip(true, said):
        of, classes = of - nothing, classes - nothing
        both, none = len(of & classes), not of and not classes
        precision += 1.0 if none else both / len(classes) if classes else 0.0
        recall += 1.0 if none else both / len(of) if of else 0.0
    precision, recall = precision / len(true), recall / len(true)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


# What a row said, of the lists of numbers that engraft writes of it.
OF_ROWS = {"score": lambda of: of[0][0], "any_classes": lambda of: of[0], "one_class": lambda of: of[0], "choice": lambda of: [score for (score,) in of]}
BY_KIND = {"tags": entity_f1, "score": correlation, "any_classes": any_classes, "one_class": one_class, "choice": one_class}


def measured(index, rows, said):
    """By the benchmark's own measure; `said` are a number or the outputs of each row, or, of tags, its words' classes."""
    return BY_KIND[index["kind"]](index, rows, said)
