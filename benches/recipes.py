"""Several benchmarks on one encoder by plain PyTorch and transformers: the peer of a recipe of `engraft run scores`.

    python benches/recipes.py OUT MODEL RECIPE [--seeds 1 2 3]

OUT is the output folder of engraft after `run scores`, in which `recipe-RECIPE-SEED/` lie. Of them and of `benchmark-NAME/` the settings, seeds, tasks and engraft's own scores are
read. One step has one batch of one task; the batches of all tasks are shuffled into one order every epoch (schedule `merged`: MT-BERT, algorithm 1), or tasks take turns until the one
with the most batches is done (`round_robin`, as the paper has it: MT-Clinical BERT, algorithm 1). After each epoch all tasks are scored on `dev`; the model with the best mean is kept and
scored on `test`. Where the recipe has `then`, the refined encoder is fine-tuned on each task with a new layer, as benches/sets.py does it, beside `finetune-RECIPE-NAME-SEED/`.
Optimiser, rate and clipping are those of the ledger (benches/tuning.py). --seeds runs some seeds alone; a seed's scores are printed to stderr once it is done, as a line of JSON.

Other schedules, quirks of reference codes, weights of tasks, tasks of shards, attention by maps or labels, spans, masked words and rankings have no peer here and are refused; what benches/sets.py does
otherwise is done otherwise here, too.
"""

import argparse
import json
import math
import random
import sys
import tempfile
import time
from pathlib import Path

import ledger
import measures
import sets
import torch
import tuning
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


def index_of(folder):
    """What is asked of a task, of a kind that is done here."""
    path = folder / "index.json"
    assert path.exists(), f"{folder.name}: rankings are not done here"
    index = json.loads(path.read_text())
    assert index["kind"] in ("one_class", "any_classes", "score", "tags", "choice"), f"{folder.name}: {index['kind']} is not done here"
    return index


def schedule(fields, stage):
    """How the tasks of a recipe take turns, and how large a task's batches are."""
    others = [key for key in fields if key.startswith(("recipe.quirks.", "recipe.weights.", "recipe.shards", "attention.", "knowledge."))]
    assert not others, f"{stage}: {', '.join(others)}: not done here"
    turns = fields["recipe.schedule"] if "recipe.schedule" in fields else {"round_robin": fields.get("recipe.schedule.round_robin")}
    assert turns in ("merged", {"round_robin": "paper"}), f"{stage}: the schedule {turns} is not done here"
    return turns, lambda name: fields.get(f"recipe.batch_of.{name}", fields["recipe.batch"])


def order(turns, rows, batch_of, chance):
    """The batches of an epoch."""
    of = {}
    for name, some in rows.items():
        chance.shuffle(some)
        of[name] = [(name, some[start : start + batch_of(name)]) for start in range(0, len(some), batch_of(name))]
    if turns == "merged":
        batches = [batch for some in of.values() for batch in some]
        chance.shuffle(batches)
        return batches
    return [some[turn % len(some)] for turn in range(max(map(len, of.values()))) for some in of.values()]


def joint(args, seed, ours, out):
    """Test scores by task, and the refined encoder."""
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    read = lambda path: json.loads(path.read_text())
    settings, fields = next(iter(ours.values()))["settings"], ledger.from_checkpoint(args.out, out.name)
    tuning.refuse_what_is_not_done_here(fields, out.name)
    turns, batch_of = schedule(fields, out.name)
    subwords = {"subwords": fields["finetune.subwords"]}
    indices = {name: index_of(args.out / f"benchmark-{name}") | subwords for name in ours}
    of, tokens = {}, {}
    said = read(out / "model" / "task.json")
    for task in said["tasks"]:
        name = task["name"]
        tokens[name] = task.get("max_tokens") or said["max_tokens"]
        folder = args.out / f"benchmark-{name}"
        of[name] = sets.parts(ledger.lines(folder / "examples.jsonl"), fields, folder)
    pooling = read(out / "model" / "outputs.json")["outputs"]["pooling"]
    torch.manual_seed(seed)
    chance = random.Random(seed)
    heads = Heads(args.model, indices, pooling, settings["dropout"])
    train = {name: rows["train"] for name, rows in of.items()}
    steps = settings["epochs"] * len(order(turns, train, batch_of, chance))
    training, best = tuning.Training(heads, fields, settings, steps), tuning.Best(fields)
    answers = lambda name, part: sets.answers(heads.tasks[name], tokenizer, indices[name], of[name][part], tokens[name], None)
    for _ in range(settings["epochs"]):
        heads.train()
        for name, some in order(turns, train, batch_of, chance):
            batch, tagged = sets.encoded(tokenizer, some, tokens[name], None, fields["finetune.subwords"])
            training.step(sets.loss_of(indices[name]["kind"], heads.tasks[name](batch), some, tagged))
        if best.is_enough(sum(answers(name, "dev") for name in of) / len(of), heads):
            break
    heads.load_state_dict(best.kept)
    return {name: answers(name, "test") for name in of}, next(iter(heads.tasks.values())).encoder


def alone(args, name, seed, encoder):
    """The refined encoder fine-tuned on one task."""
    out = args.out / f"finetune-{args.recipe}-{name}-{seed}"
    ours = json.loads((out / "scores.json").read_text())
    # By the same seed the first task's new layer would be the one that the encoder has learnt with.
    drawn = ours | {"seed": seed + 1000}
    with tempfile.TemporaryDirectory() as folder:
        encoder.save_pretrained(folder)
        AutoTokenizer.from_pretrained(args.model).save_pretrained(folder)
        fields = ledger.made(args.out, out.name)["described"]["fields"]
        (score,), _ = sets.trained(args.out / f"benchmark-{name}", argparse.Namespace(model=folder), drawn, out, fields)
    return ours["test"]["value"], score


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("out", type=Path)
    options.add_argument("model")
    options.add_argument("recipe")
    options.add_argument("--seeds", type=int, nargs="+", help="those of engraft's recipe that are trained here; all where it is left out")
    options.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = options.parse_args()
    torch.set_num_threads(args.threads)
    outs = {int(out.name.rsplit("-", 1)[1]): out for out in args.out.glob(f"recipe-{args.recipe}-[0-9]*")}
    assert outs, f"{args.out} has no recipe-{args.recipe}-SEED: run `engraft run scores`"
    seeds = args.seeds or sorted(outs)
    missing = [f"recipe-{args.recipe}-{seed}" for seed in seeds if seed not in outs]
    assert not missing, f"{args.out} has no {', '.join(missing)}"
    found, began = {}, time.perf_counter()
    for seed in seeds:
        out, said = outs[seed], {}
        ours = json.loads((out / "scores.json").read_text())
        tested, encoder = joint(args, seed, ours, out)
        for name, score in tested.items():
            said[name, "refined"] = ours[name]["test"]["value"], score
            if (args.out / f"finetune-{args.recipe}-{name}-{seed}" / "scores.json").exists():
                said[name, "refined, then alone"] = alone(args, name, seed, encoder)
        for cell, pair in said.items():
            found.setdefault(cell, []).append(pair)
        print(json.dumps({"seed": seed} | {f"{name}, {how}": pair for (name, how), pair in said.items()}), file=sys.stderr, flush=True)
    print("| benchmark | how | engraft | seeds | PyTorch | seeds |\n|---|---|--:|---|--:|---|")
    for (name, how), pairs in sorted(found.items()):
        cells = []
        for scores in zip(*pairs):
            scores = [100 * score for score in scores]
            cells += [measures.interval(scores), ", ".join(f"{score:.1f}" for score in scores)]
        print(f"| {name} | {how} | {' | '.join(cells)} |")
    print(f"\n{(time.perf_counter() - began) / len(seeds):.0f} seconds a seed, {args.threads} threads")


if __name__ == "__main__":
    main()
