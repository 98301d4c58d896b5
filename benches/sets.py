"""A checkpoint fine-tuned on folders of examples by plain PyTorch and transformers: the peer of `engraft run scores`.

    python benches/sets.py OUT MODEL [BENCHMARK ...] [--rows base labels base-10pct]

OUT is the output folder of engraft after `run scores`. Of it `benchmark-NAME/` are read, and of `finetune-ROW-NAME-SEED/scores.json` (ROW is `base` unless --rows names others) the
settings (and of `ledger.jsonl`), the pooling and engraft's own scores, so that both sides have the same seeds, rate, warm-up, epochs, batch, weight decay, longest rows, dropout and patience. Rows start from a checkpoint as it is, which MODEL has to be. A row with label embeddings, or
with maps of KAM-BERT, is trained with those here, too (benches/labels.py: the paper's way, from a random beginning; benches/knowledge.py: the maps of engraft's stage). What is done is what most
scripts do: rows padded to the longest of their batch, a look at `dev` after every epoch, an end after as many looks without a better one as engraft has patience for, the best
model's scores on `test`, by the benchmark's own measure (benches/measures.py); optimiser, rate and clipping are those of the ledger (benches/tuning.py), and a setting that is not done here is refused.

Without BENCHMARK all are trained that OUT has. A benchmark that engraft trains nothing on (`trained_on`, as MNLI's mismatched test) is asked of the models that are trained here on the
one that it names, once for both. A row that a benchmark does not have (label embeddings are of classes) is left out with a word; a row that none of them has, or a BENCHMARK that has none of the rows, ends the script.

Where engraft was told to train on or look at no more than some examples (finetune.max_examples), they are the very same here (benches/drawn.py), and so are masked words (benches/cloze.py), which have no peer by maps or labels.

Where it differs: a sentence with tags that is longer than a row is cut here (its other words are O) and has several rows in engraft. Windows of passages end at whole words in
engraft, and at tokens here.
"""

import argparse
import json
import math
import random
import sys
import time
from pathlib import Path

import torch
from transformers import AutoTokenizer

import classifier
import cloze
import knowledge
import labels
import ledger
import measures
import spans
import tuning
from drawn import looked_at


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
            else:
                said[place] = logits[at].tolist() if index["kind"] != "score" else float(logits[at, 0])
    return measures.measured(index, rows, said)


def tested(rows, out):
    """The examples of `test` whose answers lie in `out`, and these, by id."""
    said = {line["id"]: line["outputs"] for line in ledger.lines(out / "test.jsonl")}
    return [row for row in rows if row["part"] == "test" and row["id"] in said], said


def parts(rows, fields, folder):
    """The very examples of each part that engraft looked at."""
    return {part: looked_at([row for row in rows if row["part"] == part], fields, folder, part) for part in ("train", "dev", "test")}


def read(folder, fields, classes=None):
    """What is asked of a benchmark, and its examples; by the numbers of `classes`, those that its models have learnt, where they have learnt them elsewhere."""
    index = json.loads((folder / "index.json").read_text()) | {"subwords": fields["finetune.subwords"]}
    rows = [row | {"line": line} for line, row in enumerate(ledger.lines(folder / "examples.jsonl"))]
    return (index, rows) if classes is None else (renumbered(index, rows, classes), rows)


def renumbered(index, rows, classes):
    """Gives the classes of examples other numbers."""
    numbers = [classes.index(name) for name in index["classes"]]
    for answer in (row["answer"] for row in rows):
        if "class" in answer:
            answer["class"] = numbers[answer["class"]]
        elif "classes" in answer:
            answer["classes"] = sorted(numbers[c] for c in answer["classes"])
        elif "tags" in answer:
            answer["tags"]["tags"] = [numbers[c] for c in answer["tags"]["tags"]]
    return index | {"classes": classes} | ({"nothing": numbers[index["nothing"]]} if "nothing" in index else {})


def maps_of(folder, out):
    """The maps of a benchmark that a model attends by, if it does."""
    told = json.loads((out / "model" / "task.json").read_text()).get("knowledge")
    return told and knowledge.Maps(folder.with_name(folder.name.replace("benchmark-", "maps-", 1)), told)


def model_of(out, args, index, fields):
    """The model that a row is of, and how spans are told if it finds some."""
    outputs = json.loads((out / "model" / "outputs.json").read_text())["outputs"]
    pooling, by_label, by_maps = outputs["pooling"], outputs.get("labels"), outputs.get("knowledge")
    task = json.loads((out / "model" / "task.json").read_text())
    args.tokens, told, dropout = task["max_tokens"], task["tasks"][0].get("spans"), fields["finetune.dropout"]
    width = 2 if told else max(1, len(index["classes"]))
    if index["kind"] == "masked_words":
        assert not by_label and not by_maps, f"{out}: masked words are learnt here by plain attention alone"
        return cloze.Model(args.model, dropout), None
    assert told or index["kind"] == "tags" or pooling in ("learned_pooler", "mean", "cls"), f"{out}: no pooling {pooling} here"
    if by_label:
        begin = fields["attention.labels.begin"]
        assert index["kind"] == "one_class" and (by_label["mode"], begin, pooling) == ("paper", "random", "learned_pooler"), f"{out}: of label embeddings the paper's alone, from a random beginning, are trained here, for one class"
        return labels.Model(args.model, width, dropout, by_label["lambda"]), None
    if by_maps:
        assert index["kind"] in ("one_class", "score", "any_classes") and pooling == "learned_pooler", f"{out}: with maps, classes and scores are trained here, by the pooler's output"
        return knowledge.Model(args.model, width, dropout, by_maps), None
    return Model(args.model, width, "tokens" if told or index["kind"] == "tags" else pooling, dropout), told


class Rows:
    """Classes, scores, choices or tags of the rows of a benchmark."""

    def __init__(self, tokenizer, index, most, maps):
        self.tokenizer, self.index, self.most, self.maps = tokenizer, index, most, maps

    def usable(self, rows):
        return rows

    def loss(self, model, rows, epoch):
        batch, tagged = encoded(self.tokenizer, rows, self.most, self.maps, self.index["subwords"])
        lost = loss_of(self.index["kind"], model(batch), rows, tagged)
        return lost + (model.label_loss() if isinstance(model, labels.Model) else 0.0)

    def score(self, model, rows):
        return answers(model, self.tokenizer, self.index, rows, self.most, self.maps)

    def refuse_others(self, out, rows, said):
        """Asserts that what engraft's stage said of `test` is worth here what engraft says that it is. Tags are said of tokens, and not measured here."""
        if self.index["kind"] not in measures.OF_ROWS:
            return
        said = [measures.OF_ROWS[self.index["kind"]](said[row["id"]]) for row in rows]
        here, there = measures.measured(self.index, rows, said), json.loads((out / "scores.json").read_text())["test"]["value"]
        assert abs(here - there) < 1e-9, f"{out.name}: its answers have {self.index['measure']} {here} here, and {there} there"


class Questions:
    """Answers that stand in passages, of which each question has some windows."""

    def __init__(self, tokenizer, index, most, told, rows, negatives, chance):
        self.measure, self.told, self.negatives, self.chance = index["measure"], told, negatives, chance
        self.windows = {row["id"]: spans.windows(tokenizer, row, most, told) for row in rows}

    def usable(self, rows):
        """To learn from, those whose answer a window has, and those without one."""
        has = lambda row: any(window["ends"] != (0, 0) for window in self.windows[row["id"]])
        return [row for row in rows if row["part"] != "train" or has(row) or not row["answer"]["span"]["accepted"]]

    def loss(self, model, rows, epoch):
        return spans.loss(model, [window for row in rows for window in spans.drawn(self.windows[row["id"]], self.chance, self.negatives)])

    def score(self, model, rows):
        return spans.answers(model, rows, self.windows, self.told, self.measure)

    def refuse_others(self, out, rows, said):
        """engraft's answers are of its own windows, which end elsewhere."""


def trained(folder, args, ours, out, fields, others=()):
    """Scores on `test` of a model that begins with `args.model`, trained as `fields` have it: of its own set and of `others`, each a folder and engraft's stage; and the seconds that the first took."""
    seed, settings = ours["seed"], ours["settings"]
    tuning.refuse_what_is_not_done_here(fields, out.name)
    index, rows = read(folder, fields)
    of = parts(rows, fields, folder)
    torch.manual_seed(seed)
    chance = random.Random(seed)
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model, told = model_of(out, args, index, fields)

    def task(folder, index, rows):
        """What is asked of a benchmark's rows."""
        if index["kind"] == "masked_words":
            return cloze.Words(tokenizer, args.tokens, folder.name.removeprefix("benchmark-"), seed)
        if told:
            # Settings of spans that are as they are by default stand in no ledger.
            return Questions(tokenizer, index, args.tokens, told, rows, fields.get("finetune.spans.negatives", 2), chance)
        return Rows(tokenizer, index, args.tokens, maps_of(folder, out))

    own = task(folder, index, [row for some in of.values() for row in some])
    of = {part: own.usable(some) for part, some in of.items()}
    test, said = tested(rows, out)
    assert of["test"] == test, f"{out.name}: of test other examples than those that engraft looked at"
    own.refuse_others(out, test, said)
    training = tuning.Training(model, fields, settings, settings["epochs"] * math.ceil(len(of["train"]) / settings["batch"]))
    best, began = tuning.Best(fields), time.perf_counter()
    for epoch in range(settings["epochs"]):
        model.train()
        chance.shuffle(of["train"])
        for start in range(0, len(of["train"]), settings["batch"]):
            training.step(own.loss(model, of["train"][start : start + settings["batch"]], epoch))
        if best.is_enough(own.score(model, of["dev"]), model):
            break
    model.load_state_dict(best.kept)
    scores, seconds = [own.score(model, of["test"])], time.perf_counter() - began
    for other, stage in others:
        asked, rows = read(other, fields, index["classes"])
        test, said = tested(rows, stage)
        on = task(other, asked, test)
        on.refuse_others(stage, test, said)
        scores.append(on.score(model, test))
    return scores, seconds


def stages(out, row, name):
    """engraft's fine-tunings of a row on a benchmark, by seed."""
    before = f"finetune-{row}-{name}-"
    found = [path.parent for path in out.glob(f"{before}[0-9]*/scores.json") if path.parent.name[len(before) :].isdigit()]
    return {int(stage.name[len(before) :]): stage for stage in sorted(found, key=lambda stage: int(stage.name[len(before) :]))}


def left_out(name, why):
    print(f"{name} is left out: {why}", file=sys.stderr, flush=True)


def asked(args):
    """The stages of each cell that is asked for, by benchmark and row; what has none, or no peer, is left out with a word."""
    names = args.benchmarks or sorted(path.parent.name.removeprefix("benchmark-") for path in args.out.glob("benchmark-*/index.json"))
    cells = {(name, row): stages(args.out, row, name) for name in names for row in args.rows}
    for name in args.benchmarks:
        assert any(cells[name, row] for row in args.rows), f"{args.out}: no finetune-{args.rows[0]}-{name}-SEED; run `engraft run scores` first"
    for row in args.rows:
        assert any(cells[name, row] for name in names), f"{args.out}: no finetune-{row}-NAME-SEED; run `engraft run scores` first"
    for name, row in (cell for cell, found in cells.items() if not found):
        left_out(f"{name}, {row}", f"engraft has no finetune-{row}-{name}-SEED")
    return {cell: found for cell, found in cells.items() if found}


def by_model(out, cells):
    """The benchmarks that are asked of models, its own first, by the benchmark that these are trained on and by row."""
    found = {}
    for (name, row), of in cells.items():
        fields = ledger.made(out, next(iter(of.values())).name)["described"]["fields"]
        found.setdefault((fields.get("benchmark.trained_on", name), row), []).append(name)
    return {(on, row): sorted(names, key=lambda name: name != on) for (on, row), names in found.items()}


def scored(args, on, row, of):
    """Of each benchmark the scores of engraft and of PyTorch, one for each seed, and the seconds that the training of a seed took; `of` has the stages of each, by seed."""
    folder = lambda name: args.out / f"benchmark-{name}"
    own, found, seconds = stages(args.out, row, on), {name: ([], []) for name in of}, []
    for seed in sorted({seed for stages_of in of.values() for seed in stages_of}):
        others = [name for name in of if name != on and seed in of[name]]
        assert seed in own, f"{args.out}: no finetune-{row}-{on}-{seed}, whose model {' and '.join(of)} are asked of; run `engraft run scores` first"
        ours = json.loads((own[seed] / "scores.json").read_text())
        fields = ledger.from_checkpoint(args.out, own[seed].name)
        theirs, took = trained(folder(on), args, ours, own[seed], fields, [(folder(name), of[name][seed]) for name in others])
        for name, score in zip([on, *others], theirs):
            if seed in of.get(name, ()):
                found[name][0].append(json.loads((of[name][seed] / "scores.json").read_text())["test"]["value"])
                found[name][1].append(score)
        seconds.append(took)
    return found, sum(seconds) / len(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("benchmarks", nargs="*")
    parser.add_argument("--rows", nargs="+", default=["base"], help="rows of engraft's table, as their stages call them")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    cells = asked(args)
    print("| benchmark | row | engraft | seeds | PyTorch | seeds | seconds a seed |\n|---|---|--:|---|--:|---|--:|", flush=True)
    for (on, row), names in by_model(args.out, cells).items():
        found, seconds = scored(args, on, row, {name: cells[name, row] for name in names})
        for name, both in found.items():
            columns = []
            for scores in ([100 * score for score in scores] for scores in both):
                columns += [measures.interval(scores), ", ".join(f"{score:.1f}" for score in scores)]
            took = f"{seconds:.0f}" if name == on else f"the model of {on}"
            print(f"| {name} | {row} | {' | '.join(columns)} | {took} |", flush=True)


if __name__ == "__main__":
    main()
