"""Link prediction by vectors in plain PyTorch and transformers: the peer of `engraft run rank --preset simkgc`.

    python benches/answers.py DATA [--out OUT] [--train] [--threads N] [--seed N]

DATA has `kg-bert/data/umls` and the encoder `minilm`. OUT is the output folder of engraft after the command above. A triple with a blank for its subject or its object is one row,
an entity's name another; a row's vector is the mean of its tokens', a score the cosine of both. Ranks are filtered, ties at the mean of their places.

Without --train the weights are those that engraft trained (OUT/align/model), so that both score the same: told are the time of either, the largest difference of a score, and how
many ranks differ. With --train the encoder is trained here first, by the settings of engraft's ledger and the same loss: a softmax over the cosines with all names of a batch and with
that of the triple's other end, but for names that a shown triple has there as well (SimKGC's `models.py`: in-batch and self-negatives), on its own draws.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import torch
from rank import Graph, told
from transformers import AutoModel, AutoTokenizer


class Answers(Graph):
    """A graph as questions and names."""

    def __init__(self, folder, tokenizer, kinds):
        super().__init__(folder, tokenizer)
        # Whether relations have a segment of their own (shards.layout.token_types).
        self.kinds = kinds

    def padded(self, rows):
        width = max(len(ids) for ids, _ in rows)
        pad = lambda row, fill: row + [fill] * (width - len(row))
        return {
            "input_ids": torch.tensor([pad(ids, self.pad) for ids, _ in rows]),
            "token_type_ids": torch.tensor([pad(types, 0) for _, types in rows]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]),
        }

    def question(self, triple, side):
        columns = [self.ids[triple[0]], self.relation_ids[triple[1]], self.ids[triple[2]]]
        columns[side] = [self.mask]
        one, two, three = columns
        ids = [self.cls, *one, self.sep, *two, self.sep, *three, self.sep]
        middle = 1 if self.kinds else 0
        return ids, [0] * (len(one) + 2) + [middle] * (len(two) + 1) + [0] * (len(three) + 1)

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
    steps, warm = batches * how["align.epochs"], how["align.warmup_steps"]
    decays = lambda name: not (name.endswith("bias") or "LayerNorm" in name)
    named = list(model.named_parameters())
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for n, p in named if decays(n)], "weight_decay": 0.01},
            {"params": [p for n, p in named if not decays(n)], "weight_decay": 0.0},
        ],
        lr=how["align.learning_rate"],
    )
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda s: (s + 1) / warm if s < warm else (steps - s) / (steps - warm))
    model.train()
    for epoch in range(how["align.epochs"]):
        rng.shuffle(asked)
        lost, started = 0.0, time.perf_counter()
        for batch in range(batches):
            some = asked[len(asked) * batch // batches : len(asked) * (batch + 1) // batches]
            one = loss(model, graph, some, how["align.answers"]["scale"])
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


def settings(out):
    """What the stage says that it was made with; settings that this peer does not have are refused."""
    stages = [json.loads(line) for line in (out / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    how = next(line for line in reversed(stages) if line["stage"] == "align")["described"]["fields"]
    whole = {key: how.get(key) for key in ["align.batch", "align.epochs", "align.warmup_steps", "align.learning_rate"]}
    nested = lambda table: {key.removeprefix(f"{table}."): value for key, value in how.items() if key.startswith(f"{table}.")}
    answers = how.get("align.answers") or nested("align.answers")
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
        ("align.answers.slots", answers["slots"], ["subject", "object"]),
    ]
    for key, found, expected in same:
        assert found == expected, f"{key} is {found!r}, and this peer has {expected!r} alone"
    types = how.get("shards.layout.token_types") or nested("shards.layout").get("token_types")
    return {**whole, "align.answers": answers}, types == "by_column"


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
    how, kinds = settings(given.out)
    graph = Answers(given.data / "kg-bert/data/umls", AutoTokenizer.from_pretrained(given.data / "minilm"), kinds)
    asked = graph.parts["test"]
    if given.train:
        model, started = AutoModel.from_pretrained(given.data / "minilm"), time.perf_counter()
        train(model, graph, how, random.Random(given.seed))
        print(json.dumps({"trained_s": round(time.perf_counter() - started, 1)}), flush=True)
        started = time.perf_counter()
        found = ranks(model, graph, asked)
        print(json.dumps({"ranked_s": round(time.perf_counter() - started, 1), **told(found)}))
        return
    import pyarrow.parquet as pq

    model = AutoModel.from_pretrained(given.out / "align/model")
    started = time.perf_counter()
    found = ranks(model, graph, asked)
    took = time.perf_counter() - started
    bare = lambda key: key.rsplit(":", 1)[-1]
    keys, relations = ([bare(key) for key in pq.read_table(given.out / f"triples/{name}.parquet").column("key").to_pylist()] for name in ("entities", "relations"))
    triples = pq.read_table(given.out / "triples/triples.parquet").to_pylist()
    differ, largest, compared = 0, 0.0, 0
    for row in pq.read_table(given.out / "rank/ranks.parquet").to_pylist():
        of = triples[row["triple"]]
        triple = (keys[of["subject"]], relations[of["relation"]], keys[of["object"]])
        rank, score, candidates = found[triple, row["side"]]
        assert candidates == row["candidates"], (triple, candidates, row)
        compared += 1
        differ += rank != row["rank"]
        largest = max(largest, abs(score - row["score"]))
    assert compared, "engraft asked for none of these triples: is OUT its folder?"
    print(json.dumps({"ranked_s": round(took, 1), **told(found)}))
    print(json.dumps({"compared": compared, "ranks_that_differ": differ, "largest_difference_of_a_score": largest}))


if __name__ == "__main__":
    main()
