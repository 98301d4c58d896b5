"""Answers the questions of the world's benchmark `capr` by the triplet output alone, with no fine-tuning: what retraining on the graph has taught.

Usage: capr_by_facts.py OUT [ROW ...]
OUT is the folder of `engraft run results --config configs/graft.toml`, ROW rows that were retrained (`no_mask`). A passage lists what a disease has to do
with; its score is the mean log-odds that "disease, relation, item" is a fact, over its items, by the output that retraining trained for wrong and right
triples. Prints recall at 1 by aspect, over the queries of the part `main`. Each row is read as a `transformers.AutoModel`.
"""

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModel, BertTokenizerFast

# What an aspect asks for, and whether the graph says it of the item instead of the disease.
RELATIONS = {
    "information": ("has finding site", False),
    "symptoms": ("has manifestation", False),
    "causes": ("due to", False),
    "complications": ("clinically associated with", False),
    "exams and tests": ("may diagnose", True),
    "treatment": ("may treat", True),
}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def items(text):
    return [item.strip() for item in re.findall(r"^- (.+)$", text, re.MULTILINE)] or [text]


class Facts:
    """The triplet output of a retrained encoder."""

    def __init__(self, folder, vocabulary):
        self.encoder = AutoModel.from_pretrained(folder).eval()
        outputs = load_file(folder / "outputs.safetensors")
        self.weight, self.bias = outputs["triplet.weight"], outputs["triplet.bias"]
        self.tokens = BertTokenizerFast(str(vocabulary), do_lower_case=True)

    def ids(self, texts):
        """[CLS] subject [SEP] relation [SEP] object [SEP], as retraining has them."""
        row = [self.tokens.cls_token_id]
        for text in texts:
            row += [*self.tokens(text, add_special_tokens=False)["input_ids"], self.tokens.sep_token_id]
        return torch.tensor(row)

    @torch.no_grad()
    def odds(self, triples):
        rows = [self.ids(triple) for triple in triples]
        padded = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        shown = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        first = self.encoder(input_ids=padded, attention_mask=shown, token_type_ids=torch.zeros_like(padded)).last_hidden_state[:, 0]
        logits = first @ self.weight.T + self.bias
        return (logits[:, 1] - logits[:, 0]).tolist()


def best(facts, query, passages):
    relation, turned = RELATIONS[query["aspect"]]
    triples, owners = [], []
    for candidate in query["candidates"]:
        for item in items(passages[candidate]["text"]):
            triples.append((item, relation, query["entity"]) if turned else (query["entity"], relation, item))
            owners.append(candidate)
    scores = defaultdict(list)
    for owner, odds in zip(owners, facts.odds(triples), strict=True):
        scores[owner].append(odds)
    return max(scores, key=lambda candidate: sum(scores[candidate]) / len(scores[candidate]))


def main():
    out, rows = Path(sys.argv[1]), sys.argv[2:] or ["no_mask"]
    folder = out / "benchmark-capr" / "test"
    passages, queries = lines(folder / "passages.jsonl"), [query for query in lines(folder / "queries.jsonl") if query["part"] == "main"]
    print(f"| row | all {len(queries)} | {' | '.join(RELATIONS)} |\n|---|{'--:|' * (len(RELATIONS) + 1)}")
    for row in rows:
        facts, hits = Facts(out / f"retrain-{row}" / "model", out / "vocabulary" / "vocab.txt"), defaultdict(list)
        for query in queries:
            hits[query["aspect"]].append(best(facts, query, passages) in query["relevant"])
        every = [hit for aspect in hits.values() for hit in aspect]
        cells = [every, *(hits[aspect] for aspect in RELATIONS)]
        print(f"| {row} | {' | '.join(f'{100 * sum(cell) / len(cell):.1f}' for cell in cells)} |")


main()
