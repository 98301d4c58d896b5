"""Link prediction by plain PyTorch and transformers: the peer of `engraft run rank --preset kg-bert`.

    python benches/rank.py DATA [--out OUT] [--relations] [--train [--donors] [--state FILE]] [--threads N] [--triples N]

DATA has `kg-bert/data/umls` and the encoder `minilm`. OUT is the output folder of engraft after the command above. What is done is what KG-BERT's
`run_bert_link_prediction.py` does, but for the score, which is the difference of both logits and not that of true alone: each held-out triple's subject and object are replaced by every entity, what the graph states is left out, one pass scores
each triple, rows are padded to the longest of their batch, and a batch is one question's candidates.

Without --train the weights are those that engraft trained (OUT/retrain/model), so that both score the same: told are the time of either, the largest difference of a
score, and how many ranks differ. Where engraft has classified triples as well (`triple_classification` in rank.json), the same true and false ones are scored here (benches/false_triples.py), thresholds
are chosen on `valid`, and AUROC and accuracy told beside engraft's; --triples leaves none of them out. With --train the encoder is trained here first, on the same budget: 5 epochs, a rate of 5e-5 after a warm-up of a tenth, 32 rows a
batch, 5 corrupted triples each, in which any entity stands as often as another, and all rows are shuffled, as in KG-BERT.
OUT's true and false triples are told apart by this model, too, if OUT has them.
With --donors what is put in comes from another shown triple (engraft's sampler `uniform`) and a batch is five triples with their corrupted ones, 30 rows, as in engraft. With --state the training is kept there after each epoch, and goes on from there.

With --relations the relation between a triple's subject and object is asked for, as `run_bert_relation_prediction.py` does: one pass for each pair of entities, with a blank
between them, whose score of a relation is its log probability; 20 epochs. OUT is then the output folder of the config in docs/results.md.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

import false_triples


def lines(path):
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class Graph:
    def __init__(self, folder, tokenizer):
        self.texts = {key: text for key, text in lines(folder / "entity2text.txt")}
        self.relations = {key: text for key, text in lines(folder / "relation2text.txt")}
        self.parts = {part: [tuple(row[:3]) for row in lines(folder / f"{part}.tsv")] for part in ["train", "dev", "test"]}
        self.entities = list(self.texts)
        self.shown = set(self.parts["train"])
        self.stated = {triple for triples in self.parts.values() for triple in triples}
        encode = lambda text: tokenizer.encode(text, add_special_tokens=False)
        self.ids = {key: encode(text) for key, text in self.texts.items()}
        self.relation_ids = {key: encode(text) for key, text in self.relations.items()}
        self.cls, self.sep, self.pad, self.mask = tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id, tokenizer.mask_token_id

    def batch(self, triples):
        return self.rows((self.ids[head], self.relation_ids[relation], self.ids[tail]) for head, relation, tail in triples)

    def questions(self, triples):
        """The same with one blank in the place of the relation, as engraft's rows have it; KG-BERT's have nothing there."""
        return self.rows((self.ids[head], [self.mask], self.ids[tail]) for head, _, tail in triples)

    def row(self, one, two, three, middle=1):
        """The tokens of three columns, and their segments: that of the one in the middle is `middle`."""
        ids = [self.cls, *one, self.sep, *two, self.sep, *three, self.sep]
        return ids, [0] * (len(one) + 2) + [middle] * (len(two) + 1) + [0] * (len(three) + 1)

    def rows(self, columns):
        return self.padded([self.row(*of) for of in columns])

    def padded(self, rows):
        width = max(len(ids) for ids, _ in rows)
        pad = lambda row, fill: row + [fill] * (width - len(row))
        return {
            "input_ids": torch.tensor([pad(ids, self.pad) for ids, _ in rows]),
            "token_type_ids": torch.tensor([pad(types, 0) for _, types in rows]),
            "attention_mask": torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]),
        }

    def corrupted(self, triple, rng, donors):
        side = 0 if rng.random() <= 0.5 else 2
        found = []
        while len(found) < 5:
            other = list(triple)
            other[side] = rng.choice(self.parts["train"])[side] if donors else rng.choice(self.entities)
            if other[side] != triple[side] and tuple(other) not in self.shown:
                found.append(tuple(other))
        return found


class Model(torch.nn.Module):
    """An encoder with a linear layer over its pooler's output: false and true, or the relations."""

    def __init__(self, folder, classes):
        super().__init__()
        self.encoder = AutoModel.from_pretrained(folder)
        self.dropout = torch.nn.Dropout(0.1)
        self.linear = torch.nn.Linear(self.encoder.config.hidden_size, classes)
        torch.nn.init.normal_(self.linear.weight, std=self.encoder.config.initializer_range)
        torch.nn.init.zeros_(self.linear.bias)

    def forward(self, batch):
        return self.linear(self.dropout(self.encoder(**batch).pooler_output))


def truths(graph, rng, donors):
    """Shown triples, each with its corrupted ones, and which are true."""
    return [[(triple, 1)] + [(other, 0) for other in graph.corrupted(triple, rng, donors)] for triple in graph.parts["train"]]


def updates(model, peak, steps, warm):
    """AdamW, which decays neither biases nor norms, and its rate: up to `peak` in a line, and down to nothing in another."""
    decays = lambda name: not (name.endswith("bias") or "LayerNorm" in name)
    named = list(model.named_parameters())
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for n, p in named if decays(n)], "weight_decay": 0.01},
            {"params": [p for n, p in named if not decays(n)], "weight_decay": 0.0},
        ],
        lr=peak,
    )
    return optimiser, torch.optim.lr_scheduler.LambdaLR(optimiser, lambda s: (s + 1) / warm if s < warm else (steps - s) / (steps - warm))


def train(model, batch, samples, epochs, rng, state=None, of=None):
    """Samples are lists of rows that stay together; a batch is as many of them as come to 32 rows at most. `of` says which training `state` is of."""
    size, rows = 32 // len(samples[0]), sum(len(sample) for sample in samples)
    steps = -(-len(samples) // size) * epochs
    optimiser, rate = updates(model, 5e-5, steps, steps // 10)
    parts = {"model": model, "optimiser": optimiser, "rate": rate}
    begun = 0
    if state and state.exists():
        kept = torch.load(state, weights_only=False)
        if kept.get("of") != of:
            sys.exit(f"{state}: the state of another training, {kept.get('of')}, and not of {of}: name another file, or remove it")
        for name, part in parts.items():
            part.load_state_dict(kept[name])
        rng.setstate(kept["rng"])
        torch.set_rng_state(kept["torch"])
        samples[:], begun = kept["samples"], kept["epoch"]
    model.train()
    for epoch in range(begun, epochs):
        rng.shuffle(samples)
        lost, started = 0.0, time.perf_counter()
        for at in range(0, len(samples), size):
            some = [row for sample in samples[at : at + size] for row in sample]
            logits = model(batch([triple for triple, _ in some]))
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor([answer for _, answer in some]))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            rate.step()
            lost += loss.item() * len(some)
        told = {"epoch": epoch + 1, "of": epochs, "loss": round(lost / rows, 4), "s": round(time.perf_counter() - started, 1)}
        print(json.dumps(told), file=sys.stderr, flush=True)
        if state:
            kept = {name: part.state_dict() for name, part in parts.items()}
            made = state.with_suffix(".new")
            torch.save({**kept, "rng": rng.getstate(), "torch": torch.get_rng_state(), "samples": samples, "epoch": epoch + 1, "of": of}, made)
            made.rename(state)


@torch.no_grad()
def ranks(model, graph, triples):
    """Of each triple and side the answer's filtered rank, with ties at the mean of their places, and its score."""
    model.eval()
    found = {}
    for triple in triples:
        for side, name in [(0, "subject"), (2, "object")]:
            candidates = [triple]
            for entity in graph.entities:
                other = list(triple)
                other[side] = entity
                if entity != triple[side] and tuple(other) not in graph.stated:
                    candidates.append(tuple(other))
            logits = model(graph.batch(candidates))
            scores = logits[:, 1] - logits[:, 0]
            above, ties = (scores[1:] > scores[0]).sum().item(), (scores[1:] == scores[0]).sum().item()
            found[triple, name] = (above + 1 + ties / 2, scores[0].item(), len(candidates))
    return found


@torch.no_grad()
def ranks_of_relations(model, graph, triples):
    """The same of each triple's relation among those that the graph does not state of its subject and object."""
    model.eval()
    found, numbers = {}, list(graph.relations)
    for triple in triples:
        head, relation, tail = triple
        scores = torch.log_softmax(model(graph.questions([triple]))[0], 0)
        own = scores[numbers.index(relation)]
        others = torch.stack([scores[at] for at, other in enumerate(numbers) if (head, other, tail) not in graph.stated])
        above, ties = (others > own).sum().item(), (others == own).sum().item()
        found[triple, "relation"] = (above + 1 + ties / 2, own.item(), len(others) + 1)
    return found


@torch.no_grad()
def scores(model, graph, triples):
    """What the output of true and false says of each triple: its log odds."""
    model.eval()
    found = []
    for start in range(0, len(triples), 128):
        logits = model(graph.batch(triples[start : start + 128]))
        found += (logits[:, 1] - logits[:, 0]).tolist()
    return found


@torch.no_grad()
def scores_of_relations(model, graph, triples):
    """What the output of relations says of each triple: the log probability of its own."""
    model.eval()
    found, numbers = [], {relation: at for at, relation in enumerate(graph.relations)}
    for start in range(0, len(triples), 128):
        some = triples[start : start + 128]
        said = torch.log_softmax(model(graph.questions(some)), 1)
        found += said[torch.arange(len(some)), torch.tensor([numbers[relation] for _, relation, _ in some])].tolist()
    return found


def told(ranks):
    places = [rank for rank, _, _ in ranks.values()]
    hits = lambda most: sum(place <= most for place in places) / len(places)
    return {
        "ranks": len(places),
        "mrr": sum(1 / place for place in places) / len(places),
        "mr": sum(places) / len(places),
        "hits_1": hits(1),
        "hits_3": hits(3),
        "hits_10": hits(10),
    }


def names(out):
    """The keys of engraft's entities and relations, in its order, without the name of their vocabulary."""
    import pyarrow.parquet as pq

    bare = lambda key: key.rsplit(":", 1)[-1]
    return [[bare(key) for key in pq.read_table(out / f"triples/{name}.parquet").column("key").to_pylist()] for name in ("entities", "relations")]


def compared(out, found, file="ranks.parquet"):
    """How many of engraft's ranks differ from those `found`, by triple and side, and by how much its scores do at most."""
    import pyarrow.parquet as pq

    keys, relations = names(out)
    triples = pq.read_table(out / "triples/triples.parquet").to_pylist()
    differ, largest, count = 0, 0.0, 0
    for row in pq.read_table(out / "rank" / file).to_pylist():
        of = triples[row["triple"]]
        asked = (keys[of["subject"]], relations[of["relation"]], keys[of["object"]]), row.get("side", "relation")
        if asked in found:
            rank, score, candidates = found[asked]
            assert candidates == row["candidates"], (asked, candidates, row)
            count += 1
            differ += rank != row["rank"]
            largest = max(largest, abs(score - row["score"]))
    assert count == len(found), f"engraft asked {count} of these {len(found)} questions: is OUT its folder?"
    return {"compared": count, "ranks_that_differ": differ, "largest_difference_of_a_score": largest}


def classify(out, by, score):
    """Tells how well scores tell true triples from false ones, if engraft has told it."""
    if (out / "rank/rank.json").exists():
        # Whatever is not done here must not cost what was found before.
        try:
            classified = false_triples.beside(out, names(out), by, score)
        except AssertionError as why:
            classified = f"not done: {why}"
        if classified:
            print(json.dumps({"triple_classification": classified}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--relations", action="store_true")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--donors", action="store_true", help="corrupted triples as engraft's sampler uniform has them")
    parser.add_argument("--state", type=Path, help="where --train keeps what it has trained")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--triples", type=int, help="score the first so many only")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.state and not given.train:
        parser.error("--state keeps a training: it goes with --train")
    if given.donors and (not given.train or given.relations):
        parser.error("--donors is about corrupted triples: it goes with --train, without --relations")
    torch.set_num_threads(given.threads)
    tokenizer = AutoTokenizer.from_pretrained(given.data / "minilm")
    graph = Graph(given.data / "kg-bert/data/umls", tokenizer)
    asked = graph.parts["test"][: given.triples]
    batch, rank, score = (graph.questions, ranks_of_relations, scores_of_relations) if given.relations else (graph.batch, ranks, scores)
    by = "relation" if given.relations else "triplet"
    classes = len(graph.relations) if given.relations else 2
    torch.manual_seed(given.seed)
    if given.train:
        of = {"relations": given.relations, "donors": given.donors, "seed": given.seed}
        rng, model, started = random.Random(given.seed), Model(given.data / "minilm", classes), time.perf_counter()
        if given.relations:
            numbers = list(graph.relations)
            train(model, batch, [[(triple, numbers.index(triple[1]))] for triple in graph.parts["train"]], 20, rng, given.state, of)
        else:
            samples = truths(graph, rng, given.donors)
            train(model, batch, samples if given.donors else [[row] for sample in samples for row in sample], 5, rng, given.state, of)
        print(json.dumps({"trained_s": round(time.perf_counter() - started, 1)}), flush=True)
        started = time.perf_counter()
        found = rank(model, graph, asked)
        print(json.dumps({"ranked_s": round(time.perf_counter() - started, 1), **told(found)}), flush=True)
        classify(given.out, by, lambda triples: score(model, graph, triples))
        return
    from safetensors.torch import load_file

    if given.relations:
        # In the order of the classes.
        graph.relations = {key: graph.relations[key] for key in names(given.out)[1]}
    model = Model(given.out / "retrain/model", classes)
    outputs = load_file(given.out / "retrain/model/outputs.safetensors")
    model.linear.load_state_dict({name: outputs[f"{by}.{name}"] for name in ["weight", "bias"]})
    started = time.perf_counter()
    found = rank(model, graph, asked)
    took = time.perf_counter() - started
    print(json.dumps({"ranked_s": round(took, 1), **told(found)}))
    print(json.dumps(compared(given.out, found, "relation_ranks.parquet" if given.relations else "ranks.parquet")), flush=True)
    classify(given.out, by, lambda triples: score(model, graph, triples))


if __name__ == "__main__":
    main()
