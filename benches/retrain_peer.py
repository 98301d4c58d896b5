"""Retraining steps in PyTorch on the batches that engraft's stream gives, measured: the peer of `bench retrain_steps`.

Usage: retrain_peer.py SETTINGS FOLDER (what benches/retrain.py writes and `bench retrain_steps prepare` leaves). Prints one JSON object.
The usual loop: the batch of each task is padded to its longest row and goes through the encoder by itself; the losses are added up; one
backward, clipping by the norm of all gradients, fused AdamW. With `lora` the encoder is transformers' with PEFT's adapters, which start from engraft's. Only positions that are asked for reach the output over the vocabulary. Batches lie in
memory as tensors before the clock runs, while engraft reads its own.
"""

import json
import resource
import sys
import time
from pathlib import Path

import torch
from bert_peer import Bert, linear, read_safetensors
from torch import nn
from torch.nn import functional as F

TASKS = ("subject", "object", "relation", "triplet")


class Adapted(nn.Module):
    """An encoder of which adapters alone are trained."""

    def __init__(self, folder):
        super().__init__()
        import peft
        import transformers

        self.version = f"PEFT {peft.__version__}, transformers {transformers.__version__}"
        bert = transformers.BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="sdpa")
        told = json.loads((folder / "adapters.json").read_text())
        config = peft.LoraConfig(r=told["r"], lora_alpha=told["lora_alpha"], target_modules=told["target_modules"])
        self.bert = peft.get_peft_model(bert, config)
        unfit = peft.set_peft_model_state_dict(self.bert, read_safetensors(folder / "adapters.safetensors")).unexpected_keys
        assert not unfit, unfit

    def forward(self, ids, real):
        return self.bert(ids, attention_mask=None if real is None else real.long()).last_hidden_state


class Model(nn.Module):
    def __init__(self, folder, shape, adapted):
        super().__init__()
        outputs = read_safetensors(folder / "outputs.safetensors")
        self.bert = Adapted(folder) if adapted else Bert(read_safetensors(folder / "model.safetensors"), shape)
        self.outputs = nn.ModuleDict({task: linear(outputs, task) for task in TASKS})

    def loss(self, batch):
        x = self.bert(batch["ids"], batch["real"])
        # Of token tasks the positions that are asked for, of others the first token of each row.
        asked = x.flatten(0, 1)[batch["cells"]] if batch["cells"] is not None else x[:, 0]
        return F.cross_entropy(self.outputs[batch["task"]](asked), batch["classes"])


def tensors(batch):
    """A batch as tensors; no mask where no row is padded, which the peer is fastest with."""
    ids, real, targets = torch.tensor(batch["ids"]), torch.tensor(batch["real"]) == 1, torch.tensor(batch["targets"])
    cells = None
    if targets.dim() == 2:
        cells = (targets.flatten() != -100).nonzero()[:, 0]
        targets = targets.flatten()[cells]
    tokens = int(real.sum())
    return {"task": batch["task"], "ids": ids, "real": None if bool(real.all()) else real, "cells": cells, "classes": targets, "tokens": tokens}


def main():
    of, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(of["threads"])
    model = Model(folder, of["shape"], of.get("lora") is not None).train()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decayed = [p for p in trained if p.dim() > 1]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=1e-4, fused=True)
    steps = [[tensors(batch) for batch in json.loads(line)] for line in (folder / "batches.jsonl").read_text().splitlines()]
    times, processor, tokens, losses = [], [], [], []
    for number, batches in enumerate(steps[: of["warmup"] + of["steps"]]):
        start, begun = time.perf_counter(), time.process_time()
        loss = sum(model.loss(batch) for batch in batches)
        losses.append(loss.item())
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if number >= of["warmup"]:
            times.append(1e3 * (time.perf_counter() - start))
            processor.append(1e3 * (time.process_time() - begun))
            tokens.append(sum(batch["tokens"] for batch in batches))
    told = {"total": times, "processor": processor, "tokens": tokens, "losses": losses, "torch": torch.__version__}
    if of.get("lora") is not None:
        told["torch"] += ", " + model.bert.version
    print(json.dumps(told | {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
