"""Several benchmarks on one encoder by plain PyTorch and transformers: the peer of a recipe of `engraft run scores`.

    python benches/recipes.py OUT MODEL RECIPE

OUT is the output folder of engraft after `run scores`, in which `recipe-RECIPE-SEED/` lie. Of them and of `benchmark-NAME/` the settings, seeds, tasks and engraft's own scores are
read. One step has one batch of one task; the batches of all tasks are shuffled into one order every epoch (MT-BERT, algorithm 1). After each epoch all tasks are scored
on `dev`; the model with the best mean is kept and scored on `test`. Where the recipe has `then`, the refined encoder is fine-tuned on each task with a new layer, as
benches/sets.py does it, beside `finetune-RECIPE-NAME-SEED/`.

Only recipes of the schedule `merged` with AdamW and without tasks of shards have a peer here; what benches/sets.py does otherwise is done otherwise here, too.
"""

import argparse
import copy
import json
import math
import random
import tempfile
import time
from pathlib import Path

import sets
import torch
from transformers import AutoModel, AutoTokenizer


class Heads(torch.nn.Module):
    """An encoder with a linear layer for each task."""

    def __init__(self, folder, indices, pooling, dropout):
        super().__init__()
        self.tasks = torch.nn.ModuleDict()
        encoder = AutoModel.from_pretrained(folder)
        for name, index in indices.items():
            of = "tokens" if index["kind"] == "tags" else pooling
            model = sets.Model(folder, max(1, len(index["classes"])), of, dropout)
            model.encoder = encoder  # the same for all
            self.tasks[name] = model


def joint(args, seed, ours, out):
    """Test scores by task, and the refined encoder."""
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    read = lambda path: json.loads(path.read_text())
    settings = next(iter(ours.values()))["settings"]
    indices = {name: read(args.out / f"benchmark-{name}" / "index.json") for name in ours}
    of, tokens = {}, {}
    said = read(out / "model" / "task.json")
    for task in said["tasks"]:
        name = task["name"]
        tokens[name] = task.get("max_tokens") or said["max_tokens"]
        lines = (args.out / f"benchmark-{name}" / "examples.jsonl").read_text().split("\n")
        rows = [json.loads(line) for line in lines if line]
        of[name] = drawn(rows, ours[name])
    pooling = read(out / "model" / "outputs.json")["outputs"]["pooling"]
    torch.manual_seed(seed)
    chance = random.Random(seed)
    heads = Heads(args.model, indices, pooling, settings["dropout"])
    named = dict(heads.named_parameters())
    plain = lambda name: name.endswith("bias") or "LayerNorm" in name
    groups = [
        {"params": [p for name, p in named.items() if not plain(name)], "weight_decay": 0.01},
        {"params": [p for name, p in named.items() if plain(name)], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=settings["learning_rate"], fused=True)
    batches = sum(math.ceil(len(rows["train"]) / settings["batch"]) for rows in of.values())
    steps = settings["epochs"] * batches
    warm = math.floor(settings["warmup"] * steps)
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: (step + 1) / warm if step < warm else (steps - step) / max(1, steps + 1 - warm))
    best, kept = -math.inf, None
    for _ in range(settings["epochs"]):
        heads.train()
        order = []
        for name, rows in of.items():
            chance.shuffle(rows["train"])
            order += [(name, rows["train"][start : start + settings["batch"]]) for start in range(0, len(rows["train"]), settings["batch"])]
        chance.shuffle(order)
        for name, some in order:
            batch, firsts = sets.encoded(tokenizer, some, tokens[name])
            sets.loss_of(indices[name]["kind"], heads.tasks[name](batch), some, firsts).backward()
            torch.nn.utils.clip_grad_norm_(heads.parameters(), 1.0)
            optimiser.step()
            rate.step()
            optimiser.zero_grad()
        score = sum(sets.answers(heads.tasks[name], tokenizer, indices[name], of[name]["dev"], tokens[name]) for name in of) / len(of)
        if score > best:
            best, kept = score, copy.deepcopy(heads.state_dict())
    heads.load_state_dict(kept)
    tested = {name: sets.answers(heads.tasks[name], tokenizer, indices[name], of[name]["test"], tokens[name]) for name in of}
    return tested, next(iter(heads.tasks.values())).encoder


def drawn(rows, ours):
    """As many examples of each part as engraft had."""
    of = {part: [row for row in rows if row["part"] == part] for part in ("train", "dev", "test")}
    for part, most in (("train", ours["train"]), ("dev", ours["dev"]["samples"]), ("test", ours["test"]["samples"])):
        if len(of[part]) > most:
            of[part] = random.Random(part).sample(of[part], most)
    return of


def alone(args, name, seed, encoder):
    """The refined encoder fine-tuned on one task."""
    out = args.out / f"finetune-{args.recipe}-{name}-{seed}"
    ours = json.loads((out / "scores.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        encoder.save_pretrained(folder)
        AutoTokenizer.from_pretrained(args.model).save_pretrained(folder)
        score, _ = sets.run(args.out / f"benchmark-{name}", argparse.Namespace(model=folder, patience=args.patience), ours, out)
    return ours["test"]["value"], score


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out", type=Path)
    options.add_argument("model")
    options.add_argument("recipe")
    options.add_argument("--patience", type=int, default=3)
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    outs = sorted(args.out.glob(f"recipe-{args.recipe}-[0-9]*"), key=lambda out: int(out.name.rsplit("-", 1)[1]))
    assert outs, f"{args.out} has no recipe-{args.recipe}-SEED: run `engraft run scores`"
    found, began = {}, time.perf_counter()
    for out in outs:
        seed = int(out.name.rsplit("-", 1)[1])
        ours = json.loads((out / "scores.json").read_text())
        tested, encoder = joint(args, seed, ours, out)
        for name, score in tested.items():
            found.setdefault((name, "refined"), []).append((ours[name]["test"]["value"], score))
            if (args.out / f"finetune-{args.recipe}-{name}-{seed}" / "scores.json").exists():
                found.setdefault((name, "refined, then alone"), []).append(alone(args, name, seed, encoder))
    print("| benchmark | how | engraft | seeds | PyTorch | seeds |\n|---|---|--:|---|--:|---|")
    for (name, how), pairs in sorted(found.items()):
        cells = []
        for scores in zip(*pairs):
            scores = [100 * score for score in scores]
            cells += [sets.interval(scores), ", ".join(f"{score:.1f}" for score in scores)]
        print(f"| {name} | {how} | {' | '.join(cells)} |")
    print(f"\n{(time.perf_counter() - began) / len(outs):.0f} seconds a seed, {args.threads} threads")


if __name__ == "__main__":
    main()
