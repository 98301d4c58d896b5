"""A checkpoint fine-tuned on folders of examples by plain PyTorch and transformers: the peer of `engraft run scores`.

    python benches/sets.py OUT MODEL [BENCHMARK ...] [--rows base labels base-10pct]

OUT is the output folder of engraft after `run scores`. Of it `benchmark-NAME/` are read, and of `finetune-ROW-NAME-SEED/scores.json` (ROW is `base` unless --rows names others) the
settings (and of `ledger.jsonl`), the pooling and engraft's own scores, so that both sides have the same seeds, rate, warm-up, epochs, batch, weight decay, longest rows, dropout and patience. Rows start from a checkpoint as it is, which MODEL has to be. A row with label embeddings, or
with maps of KAM-BERT, is trained with those here, too (benches/labels.py: the paper's way, from a random beginning; benches/knowledge.py: the maps of engraft's stage). What is done is what most
scripts do: rows padded to the longest of their batch, a look at `dev` after every epoch, an end after as many looks without a better one as engraft has patience for, the best
model's scores on `test`, by the benchmark's own measure; optimiser, rate and clipping are those of the ledger (benches/tuning.py), and a setting that is not done here is refused.

Where engraft was told to train on or look at no more than some examples (finetune.max_examples), as many are drawn here for `train` and `dev`; the examples of `test` are the very same.

Where it differs: a sentence with tags that is longer than a row is cut here (its other words are O) and has several rows in engraft. Windows of passages end at whole words in
engraft, and at tokens here.
"""

import argparse
import json
import math
import random
import time
from pathlib import Path

import torch
from transformers import AutoTokenizer

import classifier
import knowledge
import labels
import ledger
import spans
import tuning


class Model(classifier.Classifier):
    """An encoder with one linear layer over its pooler's output, its first token, the mean of its tokens, or each of them."""

    def __init__(self, folder, width, of, dropout):
        super().__init__(folder, width, dropout)
        self.of = of

    def forward(self, batch):
        said = self.encoder(**batch)
        if self.of == "learned_pooler":
            return self.linear(self.dropout(said.pooler_output))
        states = said.last_hidden_state
        if self.of == "cls":
            states = states[:, 0]
        if self.of == "mean":
            mask = batch["attention_mask"].unsqueeze(-1).float()
            states = (states * mask).sum(1) / mask.sum(1)
        return self.linear(self.dropout(states))


def encoded(tokenizer, rows, most, maps=None, subwords="first"):
    """Token ids of rows, and of each token the word whose tag it has (tags: by its first subword, its last, or all) or None."""
    if maps:
        return maps.batch(rows), None
    if "tags" in rows[0]["answer"]:
        words = [row["answer"]["tags"]["words"] for row in rows]
        batch = tokenizer(words, is_split_into_words=True, truncation=True, max_length=most, padding=True, return_tensors="pt")
        tagged = []
        for row in range(len(rows)):
            of = batch.word_ids(row)
            beside = {"first": [None, *of[:-1]], "last": [*of[1:], None], "all": [None] * len(of)}[subwords]
            tagged.append([word if word != other else None for word, other in zip(of, beside)])
        return batch, tagged
    if "choice" in rows[0]["answer"]:
        of = [(row["text"], choice) for row in rows for choice in row["answer"]["choice"]["choices"]]
        texts, choices = (list(column) for column in zip(*of))
        return tokenizer(texts, choices, truncation=True, max_length=most, padding=True, return_tensors="pt"), None
    pairs = [row["pair"] for row in rows] if "pair" in rows[0] else None
    texts = [row["text"] for row in rows]
    return tokenizer(texts, pairs, truncation=True, max_length=most, padding=True, return_tensors="pt"), None


def by_row(logits, rows):
    """The outputs of each row's choices."""
    return logits.squeeze(1).split([len(row["answer"]["choice"]["choices"]) for row in rows])


def loss_of(kind, logits, rows, tagged):
    if kind == "choice":
        losses = [-of.log_softmax(0)[row["answer"]["choice"]["right"]] for of, row in zip(by_row(logits, rows), rows)]
        return torch.stack(losses).mean()
    if kind == "one_class":
        return torch.nn.functional.cross_entropy(logits, torch.tensor([row["answer"]["class"] for row in rows]))
    if kind == "score":
        scores = torch.tensor([row["answer"]["score"] for row in rows], dtype=torch.float32)
        return torch.nn.functional.mse_loss(logits.squeeze(1), scores)
    if kind == "any_classes":
        target = torch.zeros_like(logits)
        for place, row in enumerate(rows):
            target[place, row["answer"]["classes"]] = 1.0
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, target)
    target = torch.full(logits.shape[:2], -100)
    for place, (row, words) in enumerate(zip(rows, tagged)):
        for token, word in enumerate(words):
            if word is not None:
                target[place, token] = row["answer"]["tags"]["tags"][word]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


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


def f1(hits, said, true):
    return 2 * hits / (said + true) if said + true else 0.0


def measured(index, rows, said):
    kind, measure = index["kind"], index["measure"]
    if kind == "tags":
        hits = all_said = all_true = 0
        for row, tags in zip(rows, said):
            found, true = entities(tags, index["classes"]), entities(row["answer"]["tags"]["tags"], index["classes"])
            hits, all_said, all_true = hits + len(found & true), all_said + len(found), all_true + len(true)
        return f1(hits, all_said, all_true)
    if kind == "score":
        assert measure == "pearson", f"no {measure} here"
        true = [row["answer"]["score"] for row in rows]
        x, y = (torch.tensor(of, dtype=torch.float64) for of in (true, said))
        x, y = x - x.mean(), y - y.mean()
        return float((x * y).sum() / math.sqrt(float((x * x).sum() * (y * y).sum()) or 1.0))
    if kind == "any_classes":
        assert measure == "example_f1", f"no {measure} here"
        precision = recall = 0.0
        for row, classes in zip(rows, said):
            true = set(row["answer"]["classes"])
            both = len(true & classes)
            none = not true and not classes
            precision += 1.0 if none else both / len(classes) if classes else 0.0
            recall += 1.0 if none else both / len(true) if true else 0.0
        precision, recall = precision / len(rows), recall / len(rows)
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    true = [row["answer"]["choice"]["right"] if kind == "choice" else row["answer"]["class"] for row in rows]
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
    kept = [c for c in range(len(count)) if c != index.get("nothing")]
    hits, cols, sums = [count[c][c] for c in kept], [sum(row[c] for row in count) for c in kept], [sum(count[c]) for c in kept]
    if measure == "micro_f1":
        return f1(sum(hits), sum(cols), sum(sums))
    assert measure == "macro_f1", f"no {measure} here"
    return sum(f1(*of) for of in zip(hits, cols, sums)) / len(kept)


@torch.no_grad()
def answers(model, tokenizer, index, rows, most, maps):
    model.eval()
    said = [None] * len(rows)
    order = sorted(range(len(rows)), key=lambda at: len(rows[at]["text"]))
    for start in range(0, len(order), 32):
        places = order[start : start + 32]
        some = [rows[place] for place in places]
        batch, tagged = encoded(tokenizer, some, most, maps, index["subwords"])
        logits = model(batch)
        if index["kind"] == "choice":
            logits = by_row(logits, some)
        for at, place in enumerate(places):
            if index["kind"] == "tags":
                best = logits[at].argmax(-1).tolist()
                tags = [0] * len(some[at]["answer"]["tags"]["words"])
                for token, word in enumerate(tagged[at]):
                    if word is not None:
                        tags[word] = best[token]
                said[place] = tags
            elif index["kind"] == "score":
                said[place] = float(logits[at, 0])
            elif index["kind"] == "any_classes":
                said[place] = set((logits[at] > 0).nonzero().flatten().tolist())
            else:
                said[place] = int(logits[at].argmax())
    return measured(index, rows, said)


def parts(rows, ours, out):
    """As many examples of each part as engraft had; of `test` those whose answers lie in `out`."""
    tested = {json.loads(line)["id"] for line in (out / "test.jsonl").read_text().split("\n") if line}
    of = {part: [row for row in rows if row["part"] == part] for part in ("train", "dev")}
    for part, most in (("train", ours["train"]), ("dev", ours["dev"]["samples"])):
        if len(of[part]) > most:
            of[part] = random.Random(part).sample(of[part], most)
    return of | {"test": [row for row in rows if row["part"] == "test" and row["id"] in tested]}


def model_of(folder, out, args, index, fields):
    """The model that a row is of, its maps if it has some, and how spans are told if it finds some."""
    outputs = json.loads((out / "model" / "outputs.json").read_text())["outputs"]
    pooling, by_label, by_maps = outputs["pooling"], outputs.get("labels"), outputs.get("knowledge")
    task = json.loads((out / "model" / "task.json").read_text())
    args.tokens, told, dropout = task["max_tokens"], task["tasks"][0].get("spans"), fields["finetune.dropout"]
    width = 2 if told else max(1, len(index["classes"]))
    assert told or index["kind"] == "tags" or pooling in ("learned_pooler", "mean", "cls"), f"{out}: no pooling {pooling} here"
    if by_label:
        begin = fields["attention.labels.begin"]
        assert index["kind"] == "one_class" and (by_label["mode"], begin, pooling) == ("paper", "random", "learned_pooler"), f"{out}: of label embeddings the paper's alone, from a random beginning, are trained here, for one class"
        return labels.Model(args.model, width, dropout, by_label["lambda"]), None, None
    if by_maps:
        assert index["kind"] in ("one_class", "score", "any_classes") and pooling == "learned_pooler", f"{out}: with maps, classes and scores are trained here, by the pooler's output"
        maps = knowledge.Maps(folder.with_name(folder.name.replace("benchmark-", "maps-", 1)), task["knowledge"])
        return knowledge.Model(args.model, width, dropout, by_maps), maps, None
    return Model(args.model, width, "tokens" if told or index["kind"] == "tags" else pooling, dropout), None, told


def run(folder, args, ours, out):
    """The score of a row that starts from the checkpoint, and the seconds that it took."""
    return trained(folder, args, ours, out, ledger.from_checkpoint(args.out, out.name))


def trained(folder, args, ours, out, fields):
    """The score of a model that begins with `args.model`, trained as `fields` have it."""
    seed, settings = ours["seed"], ours["settings"]
    tuning.refuse_what_is_not_done_here(fields, out.name)
    index = json.loads((folder / "index.json").read_text()) | {"subwords": fields["finetune.subwords"]}
    rows = [json.loads(line) for line in (folder / "examples.jsonl").read_text().split("\n") if line]
    rows = [row | {"line": line} for line, row in enumerate(rows)]
    of = parts(rows, ours, out)
    torch.manual_seed(seed)
    chance = random.Random(seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model, maps, told = model_of(folder, out, args, index, fields)
    features = {row["id"]: spans.windows(tokenizer, row, args.tokens, told) for of_part in of.values() for row in of_part} if told else {}
    if told:
        has = lambda row: any(window["ends"] != (0, 0) for window in features[row["id"]])
        of["train"] = [row for row in of["train"] if has(row) or not row["answer"]["span"]["accepted"]]
    score_of = lambda part: spans.answers(model, of[part], features, told, index["measure"]) if told else answers(model, tokenizer, index, of[part], args.tokens, maps)
    training = tuning.Training(model, fields, settings, settings["epochs"] * math.ceil(len(of["train"]) / settings["batch"]))
    best, began = tuning.Best(fields), time.perf_counter()
    for _ in range(settings["epochs"]):
        model.train()
        chance.shuffle(of["train"])
        for start in range(0, len(of["train"]), settings["batch"]):
            some = of["train"][start : start + settings["batch"]]
            if told:
                lost = spans.loss(model, [window for row in some for window in spans.drawn(features[row["id"]], chance, fields["finetune.spans.negatives"])])
            else:
                batch, tagged = encoded(tokenizer, some, args.tokens, maps, index["subwords"])
                lost = loss_of(index["kind"], model(batch), some, tagged) + (model.label_loss() if isinstance(model, labels.Model) else 0.0)
            training.step(lost)
        if best.is_enough(score_of("dev"), model):
            break
    model.load_state_dict(best.kept)
    return score_of("test"), time.perf_counter() - began


def interval(scores):
    """The mean, and where the mean over all seeds lies (95 %, Student's t)."""
    mean, count = sum(scores) / len(scores), len(scores)
    if count < 2:
        return f"{mean:.1f}"
    t = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}[count]
    half = t * math.sqrt(sum((score - mean) ** 2 for score in scores) / (count - 1) / count)
    return f"{mean:.1f} [{mean - half:.1f}, {mean + half:.1f}]"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("benchmarks", nargs="*")
    parser.add_argument("--rows", nargs="+", default=["base"], help="rows of engraft's table, as their stages call them")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    names = args.benchmarks or sorted(path.name[len("benchmark-") :] for path in args.out.glob("benchmark-*") if (path / "index.json").exists())
    print("| benchmark | row | engraft | seeds | PyTorch | seeds | seconds a seed |\n|---|---|--:|---|--:|---|--:|")
    for name, row in [(name, row) for name in names for row in args.rows]:
        places = sorted(args.out.glob(f"finetune-{row}-{name}-[0-9]*/scores.json"))
        ours = [json.loads(path.read_text()) for path in places]
        assert ours, f"{args.out}: no finetune-{row}-{name}-SEED; run `engraft run scores` first"
        found = [run(args.out / f"benchmark-{name}", args, of, path.parent) for of, path in zip(ours, places)]
        columns = []
        for scores in ([100 * of["test"]["value"] for of in ours], [100 * score for score, _ in found]):
            columns += [interval(scores), ", ".join(f"{score:.1f}" for score in scores)]
        seconds = sum(of for _, of in found) / len(found)
        print(f"| {name} | {row} | {' | '.join(columns)} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
