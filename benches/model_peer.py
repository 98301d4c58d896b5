"""One training step of a BERT encoder in PyTorch, measured: the peer of the example `train_step`, which is measured with the same words.

Usage: model_peer.py '{"layers": 6, "hidden": 384, ...}' (what benches/model.py writes). Prints one JSON object.
The encoder is written for speed: one product for queries, keys and values, scaled_dot_product_attention, fused AdamW. The loss is the cross
entropy of a linear layer on the mean of a row's hidden states.
"""

import json
import random
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, of):
        super().__init__()
        d, i = of["hidden"], of["feed_forward"]
        self.heads, self.rate = of["heads"], of["dropout"]
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.widen, self.narrow = nn.Linear(d, i), nn.Linear(i, d)
        self.attention_norm, self.output_norm = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        rate = self.rate if self.training else 0.0
        context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=rate).transpose(1, 2).reshape(b, t, d)
        a = self.attention_norm(x + F.dropout(self.out(context), rate, self.training))
        return self.output_norm(a + F.dropout(self.narrow(F.gelu(self.widen(a))), rate, self.training))


class Bert(nn.Module):
    def __init__(self, of):
        super().__init__()
        d = of["hidden"]
        self.rate = of["dropout"]
        self.token, self.position, self.segment = nn.Embedding(of["vocabulary"], d), nn.Embedding(512, d), nn.Embedding(2, d)
        self.norm, self.output = nn.LayerNorm(d, eps=1e-12), nn.Linear(d, 2)
        self.layers = nn.ModuleList(Layer(of) for _ in range(of["layers"]))
        for table in (self.token, self.position, self.segment):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids, real):
        b, t = ids.shape
        x = self.token(ids) + self.position(torch.arange(t)) + self.segment(torch.zeros_like(ids))
        x = F.dropout(self.norm(x), self.rate, self.training)
        # Rows of one length need no mask, which is what the peer is fastest with.
        mask = None if bool(real.all()) else real[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
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
    classes = torch.tensor([row % 2 for row in range(len(lengths))])
    names, times, processor, losses = ("forward", "backward", "optimiser", "total"), [], [], []
    for _ in range(of["warmup"] + of["steps"]):
        begun = time.process_time()
        at = [time.perf_counter()]
        loss = F.cross_entropy(model(ids, real), classes)
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
