"""Losses of metric learning as pytorch-metric-learning has them, which SapBERT trains with.

Usage: metric.py CASES.json SAID.json
Each case holds vectors, the class of each, a loss with its settings, and the miner's margin or null; or vectors of subjects, objects and others, vectors of relations, the relation
of each three, and a margin. What is said of each: the loss and its gradient by the vectors, and by those of relations.
"""

import json
import sys

import torch
from pytorch_metric_learning import losses, miners


def made(loss):
    (name, settings), = loss.items()
    if name == "multi_similarity":
        return losses.MultiSimilarityLoss(**settings)
    return losses.NTXentLoss(temperature=settings["temperature"])


def translated(vectors, relations, case):
    subjects, objects, others = vectors.view(-1, 3, vectors.shape[1]).unbind(1)
    moved = subjects + relations[torch.tensor(case["links"])]
    return torch.nn.functional.triplet_margin_loss(moved, objects, others, margin=case["margin"], eps=0.0)


def main():
    said = []
    for case in json.load(open(sys.argv[1])):
        vectors = torch.tensor(case["vectors"], dtype=torch.float64, requires_grad=True)
        if "links" in case:
            relations = torch.tensor(case["relations"], dtype=torch.float64, requires_grad=True)
            loss = translated(vectors, relations, case)
            loss.backward()
            said.append({"loss": loss.item(), "gradient": vectors.grad.tolist() + relations.grad.tolist()})
            continue
        classes = torch.tensor(case["classes"])
        hard = None
        if case["margin"] is not None:
            hard = miners.TripletMarginMiner(margin=case["margin"], type_of_triplets="all")(vectors, classes)
        loss = made(case["loss"])(vectors, classes, hard)
        loss.backward()
        said.append({"loss": loss.item(), "gradient": vectors.grad.tolist()})
    json.dump(said, open(sys.argv[2], "w"))


if __name__ == "__main__":
    main()
