"""One training step of a BERT encoder in PyTorch, measured: the peer of `bench train_step`, which is measured with the same words.

Usage: model_peer.py '{"layers": 6, "hidden": 384, ...}' (what benches/model.py writes). Prints one JSON object.
The encoder is written for speed: one product for queries, keys and values, scaled_dot_product_attention, fused AdamW. The loss is the cross
entropy of a linear layer on a row's first hidden state, or on the mean of them (`pooling`). With `attention` = `kam` or `labels` attention is written out, as the papers have it and as one
writes it in PyTorch: KAM-BERT's with three maps, a convolution and the map of the layer before; labels' with the greatest of the scores of `[CLS]` and of
four labels. `dtype` = `bf16` is autocast.
"""

import json
import math
import random
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


LABELS, MAPS, ALPHA = 4, 3, 0.2


class Layer(nn.Module):
    def __init__(self, of):
        super().__init__()
        d, i = of["hidden"], of["feed_forward"]
        self.heads, self.rate = of["heads"], of["dropout"]
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.widen, self.narrow = nn.Linear(d, i), nn.Linear(i, d)
        self.attention_norm, self.output_norm = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)
        self.convolution = nn.Conv2d(self.heads + MAPS, self.heads, 3, padding=1) if of["attention"] == "kam" else None

    def by_maps(self, qkv, mask, rate, maps, before):
        """Contexts and the layer's map (KAM-BERT, equations 1 to 3)."""
        q, k, v = qkv
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        if mask is not None:
            both = mask & mask.transpose(2, 3)
            scores = scores.masked_fill(~both, 0.0)
        if before is not None:
            scores = scores + before
        merged = self.convolution(torch.cat([scores, maps], 1))
        mixed = ALPHA * merged + (1 - ALPHA) * scores
        probs = (mixed if mask is None else mixed.masked_fill(~mask, -torch.inf)).softmax(3)
        carried = probs if mask is None else probs.masked_fill(~both, 0.0)
        return F.dropout(probs, rate) @ v, carried

    def by_labels(self, qkv, mask, rate, labels):
        """Contexts, the first token's scores being the greatest of its own and those of labels."""
        q, k, v = qkv
        d = q.shape[1] * q.shape[3]
        queries = F.linear(labels, self.qkv.weight[:d], self.qkv.bias[:d]).view(-1, q.shape[1], q.shape[3]).permute(1, 0, 2)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        of_labels = queries[None] @ k.transpose(2, 3) / math.sqrt(q.shape[3])
        first = torch.maximum(scores[:, :, 0, 1:], of_labels[:, :, :, 1:].max(2).values)
        scores = torch.cat([torch.cat([scores[:, :, :1, :1], first[:, :, None]], 3), scores[:, :, 1:]], 2)
        probs = (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(3)
        return F.dropout(probs, rate) @ v

    def forward(self, x, mask, maps=None, before=None, labels=None):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        carried = None
        if maps is not None:
            context, carried = self.by_maps((q, k, v), mask, rate, maps, before)
        elif labels is not None:
            context = self.by_labels((q, k, v), mask, rate, labels)
        else:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate)
        context = context.transpose(1, 2).reshape(b, t, d)
        a = self.attention_norm(x + F.dropout(self.out(context), rate, self.training))
        return self.output_norm(a + F.dropout(self.narrow(F.gelu(self.widen(a))), rate, self.training)), carried


class Bert(nn.Module):
    def __init__(self, of):
        super().__init__()
        d = of["hidden"]
        self.rate, self.pooling = of["dropout"], of["pooling"]
        self.token, self.position, self.segment = nn.Embedding(of["vocabulary"], d), nn.Embedding(512, d), nn.Embedding(2, d)
        self.norm, self.output = nn.LayerNorm(d, eps=1e-12), nn.Linear(d, LABELS)
        self.labels = nn.Parameter(torch.randn(LABELS, d) * 0.02) if of["attention"] == "labels" else None
        self.layers = nn.ModuleList(Layer(of) for _ in range(of["layers"]))
        for table in (self.token, self.position, self.segment):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids, real, maps):
        b, t = ids.shape
        x = self.token(ids) + self.position(torch.arange(t)) + self.segment(torch.zeros_like(ids))
        x = F.dropout(self.norm(x), self.rate, self.training)
        # Rows of one length need no mask, which is what the peer is fastest with.
        mask = None if bool(real.all()) else real[:, None, None, :]
        carried = None
        for layer in self.layers:
            x, carried = layer(x, mask, maps, carried, self.labels)
        if self.pooling == "cls":
            return self.output(x[:, 0])
        weight = real.to(x.dtype)[:, :, None]
        return self.output((x * weight).sum(1) / weight.sum(1))


def main():
    of = json.loads(sys.argv[1])
    torch.set_num_threads(of["threads"])
    torch.manual_seed(1)
    model = Bert(of).train()
    frozen = [name for name, _ in model.named_parameters() if any(name.startswith(f"layers.{layer}.") for layer in range(of["frozen"]))]
    if of["frozen"]:
        frozen += [name for name, _ in model.named_parameters() if name.startswith(("token.", "position.", "segment.", "norm."))]
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(name not in frozen)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() > 1], "weight_decay": 0.01}, {"params": [p for p in trained if p.dim() == 1], "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=1e-4, fused=True)
    chance = random.Random(1)
    lengths = of["lengths"]
    width = max(lengths)
    real = torch.tensor([[position < length for position in range(width)] for length in lengths])
    ids = torch.tensor([[chance.randrange(of["vocabulary"]) if position < length else 0 for position in range(width)] for length in lengths])
    classes = torch.tensor([row % LABELS for row in range(len(lengths))])
    maps = (torch.rand(len(lengths), MAPS, width, width) < 0.1) * 0.5 if of["attention"] == "kam" else None
    names, times, processor, losses = ("forward", "backward", "optimiser", "total"), [], [], []
    for _ in range(of["warmup"] + of["steps"]):
        begun = time.process_time()
        at = [time.perf_counter()]
        with torch.autocast("cpu", torch.bfloat16, enabled=of["dtype"] == "bf16"):
            loss = F.cross_entropy(model(ids, real, maps).float(), classes)
        if model.labels is not None:
            loss = loss + F.cross_entropy(model.output(model.labels), torch.arange(LABELS))
        losses.append(loss.item())
        at.append(time.perf_counter())
        loss.backward()
        at.append(time.perf_counter())
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        at.append(time.perf_counter())
        times.append([1e3 * (b - a) for a, b in zip(at, at[1:])] + [1e3 * (at[-1] - at[0])])
        processor.append(1e3 * (time.process_time() - begun))
    times, processor = times[of["warmup"] :], processor[of["warmup"] :]
    told = {name: [round(step[which], 2) for step in times] for which, name in enumerate(names)}
    told["processor"] = [round(each, 2) for each in processor]
    told |= {"tokens": sum(lengths), "losses": losses[:: max(1, len(losses) - 1)], "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    told["torch"] = torch.__version__
    told["medians"] = {name: statistics.median(told[name]) for name in names}
    print(json.dumps(told))


main()
