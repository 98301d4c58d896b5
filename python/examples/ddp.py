"""DistributedDataParallel over a stream of shards. Killed at any time and started again, on as many processes as before or not, it goes on where the
checkpoint was taken: no row is lost, and none is shown twice.

Usage: torchrun --nproc-per-node 2 ddp.py SHARDS CHECKPOINT [--steps 200] [--every 10] [--shown DIR]
A small model learns the relation of two entities and whether a triple is true. --shown leaves a file for each process with the rows of each step.
"""

import argparse
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from engraft.torch import Stream

TASKS = ("relation", "triplet")


class Model(nn.Module):
    """The mean of the tokens' vectors, and a layer for each task."""

    def __init__(self, vocabulary, classes):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, 64)
        self.heads = nn.ModuleDict({task: nn.Linear(64, count) for task, count in classes.items()})

    def forward(self, step):
        loss = 0.0
        for task, head in self.heads.items():
            batch = step[task]
            mask = batch["attention_mask"].unsqueeze(-1)
            mean = (self.tokens(batch["input_ids"]) * mask).sum(1) / mask.sum(1)
            loss = loss + nn.functional.cross_entropy(head(mean), batch["labels"])
        return loss


def save(path, model, optimizer, stream):
    """Whole or not at all: under another name, on the disk, then in place."""
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "data": stream.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def shown(step):
    """The rows of the first task, without padding."""
    batch = step[TASKS[0]]
    return [ids[mask == 1].tolist() for ids, mask in zip(batch["input_ids"], batch["attention_mask"])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--shown", type=Path)
    given = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    # Which rank this is, the stream sees for itself.
    stream = Stream(given.shards, schedule="kimera", items=32, seed=1)
    model = Model(stream.stream.vocabulary_size, {"relation": len(stream.stream.relations), "triplet": 2})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if given.checkpoint.exists():
        saved = torch.load(given.checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        stream.load_state_dict(saved["data"])
    parallel = DistributedDataParallel(model)
    log = given.shown and open(given.shown / f"{rank}.jsonl", "a", buffering=1)
    while stream.stream.step < given.steps:
        for step in stream:
            loss = parallel(step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            number = stream.stream.step
            if log:
                log.write(json.dumps({"step": number, "rank": rank, "of": dist.get_world_size(), "rows": shown(step)}) + "\n")
            if number % given.every == 0:
                # A checkpoint says that all processes have done this step, and shown it.
                dist.barrier()
                if rank == 0:
                    save(given.checkpoint, model, optimizer, stream)
                    print(f"step {number}: loss {loss.item():.4f}", flush=True)
            if number >= given.steps:
                break
    # Nobody leaves while another may still hear from it.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
