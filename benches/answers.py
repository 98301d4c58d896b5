"""Link prediction by vectors in plain PyTorch and transformers: the peer of `engraft run rank --preset simkgc`.

    python benches/answers.py DATA [--out OUT] [--train] [--threads N] [--seed N]

DATA has `kg-bert/data/umls` and the encoder `minilm`. OUT is the output folder of engraft after the command above. A triple with a blank for its subject or its object is one row,
an entity's name another; a row's vector is the mean of its tokens', a score the cosine of both. Ranks are filtered, ties at the mean of their places.

Without --train the weights are those that engraft trained (OUT/align/model), so that both score the same: told are the time of either, the largest difference of a score, and how
many ranks differ; and, where engraft has classified triples (`triple_classification` in rank.json), AUROC and accuracy of the same true and false ones beside engraft's (benches/false_triples.py). With --train the encoder is trained here first, by the settings of engraft's ledger and the same loss: a softmax over the cosines with all names of a batch and with
that of the triple's other end, but for names that a shown triple has there as well (SimKGC's `models.py`: in-batch and self-negatives), on its own draws.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import ledger
import torch
from rank import Graph, classify, compared, told, updates
from transformers import AutoModel, AutoTokenizer


class Answers(Graph):
    """A graph as questions and names."""

    def __init__(self, folder, tokenizer, kinds):
        super().__init__(folder, tokenizer)
        # Whether relations have a segment of their own (shards.layout.token_types).
        self.kinds = kinds

    def question(self, triple, side):
        columns = [self.ids[triple[0]], self.relation_ids[triple[1]], self.ids[triple[2]]]
        columns[side] = [self.mask]
        return self.row(*columns, middle=int(self.kinds))

    def name(self, entity):
        ids = [self.cls, *self.ids[entity], self.sep]
        return ids, [0] * len(ids)


def vectors(model, graph, rows):
    batch = graph.padded(rows)
    hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).float()
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


def put(triple, side, entity):
    other = list(triple)
    other[side] = entity
    return tuple(other)


def loss(model, graph, asked, scale):
    """That of questions, each a triple and the side that is asked for."""
    names = []  # of which question, and whose name
    for at, (triple, side) in enumerate(asked):
        names.append((at, triple[side]))
        end = triple[2 - side]
        if put(triple, side, end) not in graph.shown:
            names.append((at, end))
    cosines = vectors(model, graph, [graph.question(*of) for of in asked]) @ vectors(model, graph, [graph.name(name) for _, name in names]).T
    right = torch.tensor([next(place for place, (of, _) in enumerate(names) if of == at) for at in range(len(asked))])
    out = torch.tensor(
        [[place != right[at] and put(triple, side, name) in graph.shown for place, (_, name) in enumerate(names)] for at, (triple, side) in enumerate(asked)]
    )
    return torch.nn.functional.cross_entropy((cosines * scale).masked_fill(out, -1e30), right)


def train(model, graph, how, rng):
    asked = [(triple, side) for triple in graph.parts["train"] for side in (0, 2)]
    batches = -(-len(asked) // how["align.batch"])
    optimiser, rate = updates(model, how["align.learning_rate"], batches * how["align.epochs"], how["align.warmup_steps"])
    model.train()
    for epoch in range(how["align.epochs"]):
        rng.shuffle(asked)
        lost, started = 0.0, time.perf_counter()
        for batch in range(batches):
            some = asked[len(asked) * batch // batches : len(asked) * (batch + 1) // batches]
            one = loss(model, graph, some, how["align.answers.scale"])
            optimiser.zero_grad()
            one.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            rate.step()
            lost += one.item()
        print(json.dumps({"epoch": epoch + 1, "loss": round(lost / batches, 4), "s": round(time.perf_counter() - started, 1)}), file=sys.stderr, flush=True)


@torch.no_grad()
def ranks(model, graph, triples):
    model.eval()
    names = vectors(model, graph, [graph.name(entity) for entity in graph.entities])
    place = {entity: at for at, entity in enumerate(graph.entities)}
    found = {}
    for side, called in [(0, "subject"), (2, "object")]:
        for at in range(0, len(triples), 256):
            some = triples[at : at + 256]
            cosines = vectors(model, graph, [graph.question(triple, side) for triple in some]) @ names.T
            for triple, scores in zip(some, cosines):
                own = scores[place[triple[side]]]
                others = scores[[place[entity] for entity in graph.entities if entity != triple[side] and put(triple, side, entity) not in graph.stated]]
                above, ties = (others > own).sum().item(), (others == own).sum().item()
                found[triple, called] = (above + 1 + ties / 2, own.item(), len(others) + 1)
    return found


@torch.no_grad()
def scores(model, graph, triples):
    """The cosine of each triple with a blank for its object, and that object."""
    model.eval()
    found = []
    for at in range(0, len(triples), 256):
        some = triples[at : at + 256]
        questions, names = vectors(model, graph, [graph.question(triple, 2) for triple in some]), vectors(model, graph, [graph.name(triple[2]) for triple in some])
        found += (questions * names).sum(1).tolist()
    return found


def settings(out):
    """What the stage says that it was made with; settings that this peer does not have are refused."""
    how = ledger.made(out, "align")["described"]["fields"]
    same = [
        ("align.schedule", how.get("align.schedule"), "linear"),
        ("align.pooling", how.get("align.pooling"), "mean"),
        ("align.clip_norm", how.get("align.clip_norm"), 1.0),
        ("align.accumulate", how.get("align.accumulate"), 1),
        ("align.max_steps", how.get("align.max_steps"), None),
        ("align.frozen", how.get("align.frozen"), []),
        ("align.optimiser", [key for key in how if key.startswith("align.optimiser")], []),
        ("align.heads", [key for key in how if key.startswith("align.heads")], []),
        ("dropout", [key for key in how if key.endswith("_dropout")], []),
        ("align.adamw.weight_decay", how.get("align.adamw.weight_decay"), 0.01),
        ("shards.layout.form", how.get("shards.layout.form"), "packed"),
        ("compute.dtype", how.get("compute.dtype"), "f32"),
        ("align.answers.slots", how.get("align.answers.slots"), ["subject", "object"]),
    ]
    for key, found, expected in same:
        assert found == expected, f"{key} is {found!r}, and this peer has {expected!r} alone"
    return how


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(given.seed)
    how = settings(given.out)
    kinds = how["shards.layout.token_types"] == "by_column"
    graph = Answers(given.data / "kg-bert/data/umls", AutoTokenizer.from_pretrained(given.data / "minilm"), kinds)
    asked = graph.parts["test"]
    if given.train:
        model, started = AutoModel.from_pretrained(given.data / "minilm"), time.perf_counter()
        train(model, graph, how, random.Random(given.seed))
        print(json.dumps({"trained_s": round(time.perf_counter() - started, 1)}), flush=True)
        started = time.perf_counter()
        found = ranks(model, graph, asked)
        print(json.dumps({"ranked_s": round(time.perf_counter() - started, 1), **told(found)}), flush=True)
        classify(given.out, "similarity", lambda triples: scores(model, graph, triples))
        return
    model = AutoModel.from_pretrained(given.out / "align/model")
    started = time.perf_counter()
    found = ranks(model, graph, asked)
    took = time.perf_counter() - started
    print(json.dumps({"ranked_s": round(took, 1), **told(found)}))
    print(json.dumps(compared(given.out, found)), flush=True)
    classify(given.out, "similarity", lambda triples: scores(model, graph, triples))


if __name__ == "__main__":
    main()
