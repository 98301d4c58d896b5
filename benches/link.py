"""Stage `link` beside PyTorch: the same names and mentions, encoded by transformers and compared by NumPy.

Usage: link.py OUT MODEL [--pooling mean] [--max-tokens 25] [--names all]
OUT is the output folder of a config whose stage `link` is up to date, with `link.of = ["encoder"]`; MODEL the folder of that encoder. Prints both sides' accuracies, of how many mentions the
nearest entity is the same, and the seconds of each, as Markdown. engraft's seconds are the ledger's, with reading and writing; PyTorch's are those of encoding and searching.
"""

import argparse
import json
import time
from pathlib import Path

import ledger
import numpy as np
import pyarrow.parquet as pq
import torch
from transformers import AutoModel, AutoTokenizer


def vectors(texts, tokenizer, model, given):
    """Of length 1; texts of like length together."""
    order = sorted(range(len(texts)), key=lambda text: len(texts[text]))
    found = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    for start in range(0, len(order), 256):
        some = order[start : start + 256]
        batch = tokenizer([texts[text] for text in some], padding=True, truncation=True, max_length=given.max_tokens, return_tensors="pt")
        with torch.no_grad():
            states = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1)
        pooled = states[:, 0] if given.pooling == "cls" else (states * mask).sum(1) / mask.sum(1)
        found[some] = torch.nn.functional.normalize(pooled).numpy()
    return found


def names_of(out, which="all"):
    """The names of a graph's entities by their folded text, all or preferred: a text, and the places of its entities; and the entities."""
    entities = pq.read_table(out / "triples/entities.parquet").to_pylist()
    names = {}
    rows = [(entity["text"], id) for id, entity in enumerate(entities)]
    if which == "all" and (terms := out / "triples/terms.parquet").exists():
        rows += [(term["text"], term["entity"]) for term in pq.read_table(terms).to_pylist() if term["kind"] != "definition"]
    for text, id in rows:
        names.setdefault(" ".join(text.split()).lower(), (text, set()))[1].add(id)
    return names, entities


def answers_of(out, model="encoder"):
    """What engraft said of each mention by one of its models."""
    return [json.loads(line) for line in (out / "link/answers.jsonl").open() if f'"model":"{model}"' in line]


def linked(names, entities, answers, encode):
    """Mentions, and those whose first, and one of whose first five entities is right, by set; and how many first ones are engraft's."""
    of_names = encode([text for text, _ in names.values()])
    of_mentions = encode([answer["text"] for answer in answers])
    ids = [sorted(of) for _, of in names.values()]
    right, same = {}, 0
    for first in range(0, len(answers), 512):
        scores = of_mentions[first : first + 512] @ of_names.T
        some = np.argpartition(-scores, 200, axis=1)[:, :200] if scores.shape[1] > 200 else np.tile(np.arange(scores.shape[1]), (len(scores), 1))
        some.sort(axis=1)
        of_some = np.take_along_axis(scores, some, axis=1)
        best = np.take_along_axis(some, np.argsort(-of_some, axis=1, kind="stable"), axis=1)
        for answer, nearest in zip(answers[first : first + 512], best):
            found = list(dict.fromkeys(id for name in nearest for id in ids[name]))[:5]
            keys = [entities[id]["key"] for id in found]
            of = right.setdefault(answer["set"], [0, 0, 0])
            of[0] += 1
            of[1] += keys[0] in answer["right"]
            of[2] += any(key in answer["right"] for key in keys)
            same += keys[0] == answer["candidates"][0]["entity"]
    return right, same


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--pooling", default="mean", choices=["mean", "cls"])
    parser.add_argument("--names", default="all", choices=["all", "preferred"])
    parser.add_argument("--max-tokens", type=int, default=25)
    given = parser.parse_args()
    torch.set_num_threads(2)
    names, entities = names_of(given.out, given.names)
    answers = answers_of(given.out)
    tokenizer, model = AutoTokenizer.from_pretrained(given.model), AutoModel.from_pretrained(given.model).eval()
    start = time.perf_counter()
    right, same = linked(names, entities, answers, lambda texts: vectors(texts, tokenizer, model, given))
    seconds = time.perf_counter() - start
    ours = ledger.made(given.out, "link")
    scores = json.loads((given.out / "link/link.json").read_text())["sets"]
    print(f"{len(names):,} names, {len(answers):,} mentions; the nearest entity is the same of {same:,}.\n")
    print("| set | accuracy@1 | PyTorch | accuracy@5 | PyTorch |\n|---|--:|--:|--:|--:|")
    for name, (count, one, five) in right.items():
        of = scores[name]["encoder"]
        print(f"| {name} | {100 * of['accuracy_1']['value']:.2f} | {100 * one / count:.2f} | {100 * of['accuracy_5']['value']:.2f} | {100 * five / count:.2f} |")
    took = ours.get("seconds") or ours.get("duration_ms", 0) / 1000
    print(f"\nSeconds: {took:.1f}, PyTorch {seconds:.1f}.")


if __name__ == "__main__":
    main()
