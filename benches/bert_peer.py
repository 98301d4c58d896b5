"""BERT in PyTorch over weights with Hugging Face's names, for the peers that must start from the very weights that engraft has.

Written for speed where the peer may choose: one product for queries, keys and values, scaled_dot_product_attention. With a head mask attention is
written out, as in every implementation that has one: probabilities are multiplied by the gates of their heads.
"""

import json
import math

import torch
from torch import nn
from torch.nn import functional as F


def read_safetensors(path):
    """Tensors (f32) of a file by name."""
    raw = bytearray(path.read_bytes())
    size = int.from_bytes(raw[:8], "little")
    found = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            found[name] = torch.frombuffer(raw[begin:end], dtype=torch.float32).view(entry["shape"])
    return found


def linear(tensors, *names):
    """One linear layer of several whose results stand side by side."""
    weight, bias = (torch.cat([tensors[f"{name}.{part}"] for name in names]) for part in ("weight", "bias"))
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)
    return layer


def norm(tensors, name):
    layer = nn.LayerNorm(len(tensors[f"{name}.weight"]), eps=1e-12)
    layer.weight, layer.bias = nn.Parameter(tensors[f"{name}.weight"].clone()), nn.Parameter(tensors[f"{name}.bias"].clone())
    return layer


class Layer(nn.Module):
    def __init__(self, tensors, name, heads):
        super().__init__()
        self.heads = heads
        self.qkv = linear(tensors, *(f"{name}.attention.self.{part}" for part in ("query", "key", "value")))
        self.out = linear(tensors, f"{name}.attention.output.dense")
        self.widen, self.narrow = linear(tensors, f"{name}.intermediate.dense"), linear(tensors, f"{name}.output.dense")
        self.attention_norm, self.output_norm = norm(tensors, f"{name}.attention.output.LayerNorm"), norm(tensors, f"{name}.output.LayerNorm")

    def forward(self, x, mask, gates):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if gates is None:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = q @ k.transpose(2, 3) / math.sqrt(d // self.heads)
            scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
            context = (scores.softmax(3) * gates[None, :, None, None]) @ v
        a = self.attention_norm(x + self.out(context.transpose(1, 2).reshape(b, t, d)))
        return self.output_norm(a + self.narrow(F.gelu(self.widen(a))))


class Bert(nn.Module):
    def __init__(self, tensors, shape):
        super().__init__()
        tables = ("word", "position", "token_type")
        self.token, self.position, self.segment = (nn.Embedding.from_pretrained(tensors[f"embeddings.{table}_embeddings.weight"], freeze=False) for table in tables)
        self.norm = norm(tensors, "embeddings.LayerNorm")
        self.layers = nn.ModuleList(Layer(tensors, f"encoder.layer.{at}", shape["heads"]) for at in range(shape["layers"]))

    def forward(self, ids, real, gates=None):
        """The last hidden states; `real` is None where no row is padded, `gates` a row for each layer or None."""
        x = self.norm(self.token(ids) + self.position(torch.arange(ids.shape[1])) + self.segment(torch.zeros_like(ids)))
        mask = None if real is None else real[:, None, None, :]
        for at, layer in enumerate(self.layers):
            x = layer(x, mask, None if gates is None else gates[at])
        return x
