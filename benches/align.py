"""Stage `align` beside PyTorch: the same pairs of names, as many steps, trained by transformers and pytorch-metric-learning as SapBERT's code does.

Usage: align.py OUT MODEL [--steps 300] [--seeds 1 2 3] [--pooling mean] [--batch 256] [--rate 2e-5] [--max-tokens 25] [--names all]
OUT is the output folder of a config whose stage `link` is up to date with `link.of` "encoder" and "align"; MODEL the folder of its encoder. Prints the accuracy of both sides before and after, and
the seconds of training, as Markdown. engraft's seconds are the ledger's, with reading and writing; PyTorch's are those of training.
"""

import argparse
import itertools
import json
import random
import time
from pathlib import Path

import ledger
import torch
from link import answers_of, linked, names_of, vectors
from pytorch_metric_learning import losses, miners
from transformers import AutoModel, AutoTokenizer


def pairs_of(names, tokenizer):
    """Pairs of names of an entity that differ in their tokens, 50 of an entity at most."""
    random.seed(1)
    by_entity = {}
    for text, entities in names.values():
        for entity in entities:
            by_entity.setdefault(entity, {})[tuple(tokenizer(text)["input_ids"])] = text
    found = []
    for entity, texts in sorted(by_entity.items()):
        pairs = list(itertools.combinations(texts.values(), 2))
        found += [(a, b, entity) for a, b in (random.sample(pairs, 50) if len(pairs) > 50 else pairs)]
    return found


def trained(pairs, tokenizer, given, seed):
    """A model after so many steps, and the seconds that they took."""
    torch.manual_seed(seed)
    random.seed(seed)
    model = AutoModel.from_pretrained(given.model).train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=given.rate, weight_decay=0.01)
    loss_of, miner = losses.MultiSimilarityLoss(alpha=1, beta=60, base=0.5), miners.TripletMarginMiner(margin=0.2, type_of_triplets="all")
    order = random.sample(range(len(pairs)), len(pairs))
    start = time.perf_counter()
    for step in range(given.steps):
        some = [pairs[at] for at in order[step * given.batch % len(order) :][: given.batch]]
        texts = [a for a, _, _ in some] + [b for _, b, _ in some]
        batch = tokenizer(texts, padding=True, truncation=True, max_length=given.max_tokens, return_tensors="pt")
        states = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        pooled = states[:, 0] if given.pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
        labels = torch.tensor([entity for _, _, entity in some] * 2)
        loss = loss_of(pooled, labels, miner(pooled, labels))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
    return model.eval(), time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--pooling", default="mean", choices=["mean", "cls"])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=2e-5)
    parser.add_argument("--names", default="all", choices=["all", "preferred"])
    parser.add_argument("--max-tokens", type=int, default=25)
    given = parser.parse_args()
    torch.set_num_threads(2)
    names, entities = names_of(given.out)
    asked, _ = names_of(given.out, given.names)
    answers = answers_of(given.out, "align")
    tokenizer = AutoTokenizer.from_pretrained(given.model)
    pairs = pairs_of(names, tokenizer)
    scores = json.loads((given.out / "link/link.json").read_text())["sets"]
    ours = ledger.made(given.out, "align")
    counted = ours["facts"]["names"]["pairs"]
    print(f"{len(pairs):,} pairs, engraft {counted:,}; {given.steps} steps of {given.batch}, engraft {ours['facts']['training']['steps']}.\n")
    print("| set | seed | accuracy@1 | @5 | PyTorch @1 | @5 |\n|---|--:|--:|--:|--:|--:|")
    took = []
    for seed in given.seeds:
        model, seconds = trained(pairs, tokenizer, given, seed)
        took.append(seconds)
        right, _ = linked(asked, entities, answers, lambda texts: vectors(texts, tokenizer, model, given))
        for name, (count, one, five) in right.items():
            of = scores[name]["align"]
            print(f"| {name} | {seed} | {100 * of['accuracy_1']['value']:.2f} | {100 * of['accuracy_5']['value']:.2f} | {100 * one / count:.2f} | {100 * five / count:.2f} |", flush=True)
    for name, of in scores.items():
        before = of["encoder"]
        print(f"| {name}, before | | {100 * before['accuracy_1']['value']:.2f} | {100 * before['accuracy_5']['value']:.2f} | | |")
    print(f"\nSeconds of training: {ours['seconds']:.0f}, PyTorch {', '.join(f'{of:.0f}' for of in took)}.")


if __name__ == "__main__":
    main()
