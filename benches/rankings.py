"""Ranking models trained and evaluated on passage retrieval by plain PyTorch and transformers: the peer of `engraft run scores` on sets of queries.

    python benches/rankings.py OUT MODEL [BENCHMARK ...]

OUT is the output folder of engraft after `run scores`. Of it `benchmark-NAME/` are read, and of `finetune-base-NAME-SEED/` and `ledger.jsonl` the settings, how many queries were trained on, and
engraft's own scores and model.

First engraft's own model is asked by PyTorch: what the two find for the same weights. Then MODEL is trained here with the same rate, warm-up, epochs, batch, wording and number of negatives, drawn by the same rules. A bi-encoder (mean of
tokens) as Sentence Transformers' MultipleNegativesRankingLoss does it: every passage of a batch is a negative of the queries that it does not answer. A cross-encoder (the pooler's output) by a softmax over a query's own passages,
or each passage by itself. After it the last model is asked; with 0 epochs MODEL as it is.
A benchmark that engraft trains nothing on (`trained_on`) is asked of the model that is trained here on the one that it names, once for both.
"""

import argparse
import itertools
import json
import math
import random
import time
from pathlib import Path

import torch
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

import ledger
from drawn import looked_at
from ledger import lines

WORDINGS = {
    "aspect": lambda query: f"{query['entity']} ; {query['aspect']}",
    "plain": lambda query: f"{query['entity']} {query['aspect']}",
}


class Encoder:
    """The mean of a text's tokens, as long as 1."""

    def __init__(self, folder, most):
        self.model = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.most = most

    def vectors(self, texts):
        batch = self.tokenizer(texts, truncation=True, max_length=self.most, padding=True, return_tensors="pt")
        states = self.model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).float()
        return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1))

    @torch.no_grad()
    def all_vectors(self, texts):
        self.model.eval()
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = torch.empty(len(texts), self.model.config.hidden_size)
        for start in range(0, len(order), 32):
            places = order[start : start + 32]
            found[places] = self.vectors([texts[place] for place in places])
        return found

    def asked(self, queries, passages, wording):
        """What each query says of its candidates."""
        used = sorted({place for query in queries for place in query["candidates"]})
        rows = {place: row for row, place in enumerate(used)}
        of_passages = self.all_vectors([passages[place] for place in used])
        of_queries = self.all_vectors([wording(query) for query in queries])
        return [of_passages[[rows[place] for place in query["candidates"]]] @ vector for query, vector in zip(queries, of_queries)]

    def loss(self, some, shown, texts, args, wording):
        first = [start for start, _ in spans(shown)]
        shown = [place for of in shown for place in of]
        cosines = self.vectors([wording(query) for query in some]) @ self.vectors([texts[place] for place in shown]).T
        # What answers a query, or has the text of an answer, is no negative of it.
        for row, (query, right) in enumerate(zip(some, first)):
            answers = {texts[place] for place in query["relevant"]}
            for at, place in enumerate(shown):
                if at != right and texts[place] in answers:
                    cosines[row, at] = -torch.inf
        return torch.nn.functional.cross_entropy(args.scale * cosines, torch.tensor(first))


class CrossEncoder:
    """A number for a query and a passage, read together."""

    def __init__(self, folder, most, dropout):
        self.model, loaded = AutoModelForSequenceClassification.from_pretrained(folder, num_labels=1, classifier_dropout=dropout, output_loading_info=True)
        self.missing = sorted(loaded["missing_keys"])
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.most = most

    def numbers(self, queries, passages):
        batch = self.tokenizer(queries, passages, truncation="only_second", max_length=self.most, padding=True, return_tensors="pt")
        return self.model(**batch).logits.squeeze(1)

    @torch.no_grad()
    def asked(self, queries, passages, wording):
        self.model.eval()
        pairs = [(wording(query), passages[place]) for query in queries for place in query["candidates"]]
        order, found = sorted(range(len(pairs)), key=lambda at: len(pairs[at][1])), torch.empty(len(pairs))
        for start in range(0, len(order), 32):
            places = order[start : start + 32]
            found[places] = self.numbers(*zip(*(pairs[place] for place in places)))
        return found.split([len(query["candidates"]) for query in queries])

    def loss(self, some, shown, texts, args, wording):
        pairs = [(wording(query), texts[place]) for query, of in zip(some, shown) for place in of]
        said = self.numbers(*zip(*pairs))
        if args.loss == "binary":
            right = torch.cat([torch.arange(stop - start) == 0 for start, stop in spans(shown)]).float()
            return torch.nn.functional.binary_cross_entropy_with_logits(said, right)
        return torch.stack([-said[start:stop].log_softmax(0)[0] for start, stop in spans(shown)]).mean()


def spans(shown):
    """Where each query's passages are among all; the first of them answers."""
    stops = list(itertools.accumulate(len(of) for of in shown))
    return list(zip([0, *stops], stops))


def scores(encoder, folder, wording, asked):
    """Recall at 1 and 5 and the mean reciprocal rank over the queries of `main` that `asked` names by their wording; all if it is empty."""
    queries = [query for query in lines(folder / "queries.jsonl") if query["part"] == "main"]
    queries = [query for query in queries if not asked or WORDINGS["aspect"](query) in asked]
    passages = {passage["passage"]: passage["text"] for passage in lines(folder / "passages.jsonl")}
    at_1 = at_5 = mrr = 0.0
    for query, said in zip(queries, encoder.asked(queries, passages, wording)):
        order = [query["candidates"][at] for at in said.argsort(descending=True, stable=True).tolist()]
        right = set(query["relevant"])
        at_1 += len(right & set(order[:1])) / len(right)
        at_5 += len(right & set(order[:5])) / len(right)
        mrr += 1.0 / (1 + min(order.index(place) for place in right if place in order))
    count = len(queries)
    return {"recall_at_1": at_1 / count, "recall_at_5": at_5 / count, "mrr": mrr / count, "queries": count}


class Negatives:
    """Wrong passages for a query, as engraft draws them: hard ones among its candidates, others of documents that do not answer it, never the very text of an answer."""

    def __init__(self, passages, count, hard):
        self.passages, self.count, self.hard = passages, count, hard

    def draw(self, query, positive, chance):
        right = {self.passages[place]["text"] for place in query["relevant"]}
        own = {self.passages[place]["document"] for place in query["relevant"]}
        wrong = [place for place in query["candidates"] if self.hard and place not in query["relevant"] and self.passages[place]["text"] not in right]
        drawn = chance.sample(wrong, min(self.count, len(wrong)))
        others = (place for place in iter(lambda: chance.randrange(len(self.passages)), None))
        while len(drawn) < self.count:
            place = next(others)
            of = self.passages[place]
            if of["part"] == query["part"] and of["document"] not in own and of["text"] != self.passages[positive]["text"] and place not in drawn:
                drawn.append(place)
        return drawn


def trained(encoder, folder, args, ours, wording):
    """Trains the encoder on the queries of a folder that engraft was trained on."""
    seed, settings, fields = ours["seed"], ours["settings"], args.fields
    queries = [query for query in lines(folder / "queries.jsonl") if query["part"] == "main"]
    queries, chance = looked_at(queries, fields, folder.parent, "train"), random.Random(seed)
    assert len(queries) == ours["train"], f"{folder}: {len(queries)} queries to train on, where engraft had {ours['train']}"
    passages = lines(folder / "passages.jsonl")
    texts = [passage["text"] for passage in passages]
    negatives = Negatives(passages, fields["finetune.ranking.negatives"], fields["finetune.ranking.negatives_from"] == "candidates")
    torch.manual_seed(seed)
    model = encoder.model
    decayed = [p for name, p in model.named_parameters() if not name.endswith("bias") and "LayerNorm" not in name]
    other = [p for name, p in model.named_parameters() if name.endswith("bias") or "LayerNorm" in name]
    decay = fields["finetune.adamw.weight_decay"]
    optimiser = torch.optim.AdamW([{"params": decayed, "weight_decay": decay}, {"params": other, "weight_decay": 0.0}], lr=settings["learning_rate"], fused=True)
    steps = settings["epochs"] * math.ceil(len(queries) / settings["batch"])
    warm = math.floor(settings["warmup"] * steps)
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: (step + 1) / warm if step < warm else (steps - step) / max(1, steps + 1 - warm))
    for _ in range(settings["epochs"]):
        model.train()
        chance.shuffle(queries)
        for start in range(0, len(queries), settings["batch"]):
            some, shown = queries[start : start + settings["batch"]], []
            for query in some:
                positive = chance.choice(query["relevant"])
                shown.append([positive, *negatives.draw(query, positive, chance)])
            encoder.loss(some, shown, texts, args, wording).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            rate.step()
            optimiser.zero_grad()


def maker(args, own):
    """What makes an encoder like engraft's in `own` of a folder."""
    of = json.loads((own / "outputs.json").read_text())["outputs"]
    output, most = of["tasks"][0]["output"], json.loads((own / "task.json").read_text())["max_tokens"]
    if output["kind"] == "embedding":
        assert of["pooling"] == "mean", f"{own}: no bi-encoder of mean-pooled tokens"
        args.scale = output["scale"]
        return lambda folder: Encoder(folder, most)
    assert output["kind"] == "rank" and of["pooling"] == "learned_pooler", f"{own}: no plain cross-encoder of the pooler's output"
    args.loss = output["loss"]
    return lambda folder: CrossEncoder(folder, most, of["dropout"])


def compared(args, name, path, ours, kept):
    """The table's rows of a benchmark and a seed; `kept` has what was trained here, by benchmark and seed."""
    on = ledger.made(args.out, path.parent.name)["described"]["fields"].get("benchmark.trained_on", name)
    stage, test, asked = args.out / f"finetune-base-{on}-{ours['seed']}", ours["test"], {line["id"] for line in lines(path.parent / "test.jsonl")}
    args.fields, own = ledger.from_checkpoint(args.out, stage.name), stage / "model"
    said = args.fields["finetune.ranking.wording"]
    assert said in WORDINGS, f"{stage.name}: no wording {said} here"
    assert test["metric"] == "recall_at_1", f"{path}: measured by {test['metric']}"
    wording, make, folder = WORDINGS[said], maker(args, own), args.out / f"benchmark-{name}/test"
    rows, began = [("engraft", {**test["others"], "recall_at_1": test["value"], "queries": test["samples"]}, "")], time.perf_counter()
    theirs = make(own)
    assert not getattr(theirs, "missing", None), f"{own} lacks {theirs.missing}"
    same = scores(theirs, folder, wording, asked)
    rows.append(("PyTorch, engraft's weights", same, f"{time.perf_counter() - began:.0f}"))
    began = time.perf_counter()
    if (on, ours["seed"]) not in kept:
        # Before the classifier of a cross-encoder is drawn.
        torch.manual_seed(ours["seed"])
        kept[on, ours["seed"]] = make(args.model)
        if ours["settings"]["epochs"]:
            trained(kept[on, ours["seed"]], args.out / f"benchmark-{on}/train", args, ours, wording)
    found = scores(kept[on, ours["seed"]], folder, wording, asked)
    return [*rows, ("PyTorch, its own training", found, f"{time.perf_counter() - began:.0f}")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("benchmarks", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    names = args.benchmarks or sorted(path.name[len("benchmark-") :] for path in args.out.glob("benchmark-*") if (path / "test").is_dir())
    print("| benchmark, seed | by | recall_at_1 | recall_at_5 | mrr | queries | seconds |\n|---|---|--:|--:|--:|--:|--:|")
    kept = {}
    for name in names:
        places = sorted(args.out.glob(f"finetune-base-{name}-[0-9]*/scores.json"))
        assert places, f"{args.out}: no finetune-base-{name}-SEED; run `engraft run scores` first"
        for path in places:
            ours = json.loads(path.read_text())
            for by, of, seconds in compared(args, name, path, ours, kept):
                numbers = " | ".join(f"{100 * of[key]:.2f}" for key in ("recall_at_1", "recall_at_5", "mrr"))
                print(f"| {name}, {ours['seed']} | {by} | {numbers} | {of['queries']} | {seconds} |", flush=True)


if __name__ == "__main__":
    main()
