"""Training steps of a BERT encoder on a GPU: engraft beside PyTorch, taking turns. Run by scripts/gpu-check.py.

Usage: gpu_peer.py ceilings                       what the device's products and copies reach
       gpu_peer.py speed GPU_CHECK [--seconds N]  tokens a second; GPU_CHECK is the program `gpu_check`
Each prints lines of JSON. A step is the same on both sides: ids go up, embeddings, layers, the class of a row by its first token, cross entropy, backward, clipping by the
norm of all gradients, AdamW; bf16 products over f32 weights. PyTorch is written for speed: one product for queries, keys and values,
scaled_dot_product_attention, autocast, fused AdamW. Sides of it:
  eager     as written
  compiled  every layer by torch.compile
  graph     the compiled step as one CUDA graph, for batches so small that launches are what costs
  varlen    ragged rows alone: as written, but one row behind the other without padding, by the flash attention that reads where each begins
Rows of one length have no mask, which is what PyTorch is fastest with; ragged rows are padded to one width on the other sides. engraft computes no padding. Tokens are those that are
no padding, on all sides. No side waits for the device between steps, but is ahead of it by four at most.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import deque

import torch
from torch import nn
from torch.nn import functional as F

MODELS = {
    "BERT-base 12 x 768": {"layers": 12, "hidden": 768, "heads": 12, "feed_forward": 3072, "vocabulary": 30522},
    "MiniLM 6 x 384": {"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522},
}
TINY = {"tiny 2 x 64": {"layers": 2, "hidden": 64, "heads": 2, "feed_forward": 128, "vocabulary": 100}}
CLASSES = 2
ROUNDS = 3


def ragged(rows, least, most, count, chance=random.Random(7)):
    """Batches of rows as graphs have them: short, and of any length."""
    return [[chance.randint(least, most) for _ in range(rows)] for _ in range(count)]


SHAPES = {"512 x 128": [[128] * 512] * 2, "32 x 128": [[128] * 32] * 4, "32 ragged rows of 8 to 32": ragged(32, 8, 32, 8)}
TINY_SHAPES = {"4 x 16": [[16] * 4] * 2, "4 ragged rows": ragged(4, 3, 16, 2)}


def tell(line):
    print(json.dumps(line), flush=True)


class Layer(nn.Module):
    def __init__(self, of, rate):
        super().__init__()
        d, i = of["hidden"], of["feed_forward"]
        self.heads, self.rate = of["heads"], rate
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.widen, self.narrow = nn.Linear(d, i), nn.Linear(i, d)
        self.attention_norm, self.output_norm = nn.LayerNorm(d, eps=1e-12), nn.LayerNorm(d, eps=1e-12)

    def mixed(self, q, k, v, mask):
        if isinstance(mask, tuple):
            starts, longest = mask
            return torch.ops.aten._flash_attention_forward(q, k, v, starts, starts, longest, longest, self.rate, False, False)[0]
        q, k, v = (each.transpose(1, 2) for each in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.rate).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(-3)
        context = self.mixed(q, k, v, mask).flatten(-2)
        a = self.attention_norm(x + F.dropout(self.out(context), self.rate))
        return self.output_norm(a + F.dropout(self.narrow(F.gelu(self.widen(a))), self.rate))


class Bert(nn.Module):
    def __init__(self, of, rate):
        super().__init__()
        d = of["hidden"]
        self.rate = rate
        self.token, self.position, self.segment = nn.Embedding(of["vocabulary"], d), nn.Embedding(512, d), nn.Embedding(2, d)
        self.norm, self.output = nn.LayerNorm(d, eps=1e-12), nn.Linear(d, CLASSES)
        self.layers = nn.ModuleList(Layer(of, rate) for _ in range(of["layers"]))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, positions, segments, mask):
        x = self.token(ids) + self.position(positions) + self.segment(segments)
        x = F.dropout(self.norm(x), self.rate)
        for layer in self.layers:
            x = layer(x, mask)
        first = x[mask[0][:-1].long()] if isinstance(mask, tuple) else x[:, 0]
        return self.output(F.dropout(first, self.rate))


class Side:
    """A model with its optimiser and the batches that its steps take in turns."""

    def __init__(self, of, rate, device, compiled):
        torch.manual_seed(1)
        self.device = device
        self.model = Bert(of, rate).to(device).train()
        if compiled:
            for layer in self.model.layers:
                layer.compile(dynamic=False)
        self.parameters = list(self.model.parameters())
        groups = [
            {"params": [p for p in self.parameters if p.dim() > 1], "weight_decay": 0.01},
            {"params": [p for p in self.parameters if p.dim() == 1], "weight_decay": 0.0},
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=1e-4, fused=True, capturable=device == "cuda")
        # A captured step must not find weights that an earlier one has cast; compiled layers cast each of theirs once anyway.
        self.cache, self.graph, self.made = not compiled, None, 0

    def take(self, of, batches):
        """Batches in memory that the device copies from, and where they are copied to."""
        self.graph, self.made = None, 0
        width = max(max(lengths) for lengths in batches)
        self.masked = any(length != width for lengths in batches for length in lengths)
        chance = torch.Generator().manual_seed(1)
        self.tokens = [sum(lengths) for lengths in batches]
        self.batches = []
        for lengths in batches:
            ids = torch.randint(of["vocabulary"], (len(lengths), width), generator=chance)
            real = torch.arange(width)[None, :] < torch.tensor(lengths)[:, None]
            self.batches.append([each.pin_memory() if self.device == "cuda" else each for each in (ids * real, real)])
        rows = len(batches[0])
        self.ids = torch.zeros(rows, width, dtype=torch.long, device=self.device)
        self.real = torch.ones(rows, width, dtype=torch.bool, device=self.device)
        self.positions = torch.arange(width, device=self.device)
        self.segments = torch.zeros(rows, width, dtype=torch.long, device=self.device)
        self.classes = torch.arange(rows, device=self.device) % CLASSES

    def rows(self):
        """What attention has to know of them."""
        return self.real[:, None, None, :] if self.masked else None

    def compute(self):
        with torch.autocast(self.device, torch.bfloat16, cache_enabled=self.cache):
            logits = self.model(self.ids, self.positions, self.segments, self.rows())
        F.cross_entropy(logits.float(), self.classes).backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=self.graph is None)

    def load(self, batch):
        """Sends a batch to the device."""
        for to, of in zip((self.ids, self.real), batch):
            to.copy_(of, non_blocking=True)

    def step(self):
        at = self.made % len(self.batches)
        self.load(self.batches[at])
        if self.graph is None:
            self.compute()
        else:
            self.graph.replay()
        self.made += 1
        return self.tokens[at]

    def capture(self):
        """The step as one graph of the device."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(aside)
        self.optimiser.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.compute()
        self.graph = graph

    def release(self):
        self.graph = None
        self.optimiser.zero_grad(set_to_none=True)

    def run(self, goes_on):
        """Steps as long as `goes_on` says; waits for the last."""
        self.wait()
        begun, steps, tokens, under_way = time.perf_counter(), 0, 0, deque()
        while goes_on(steps, time.perf_counter() - begun):
            tokens += self.step()
            steps += 1
            if self.device == "cuda":
                if len(under_way) == 4:
                    under_way.popleft().synchronize()
                under_way.append(torch.cuda.Event())
                under_way[-1].record()
        launched = time.perf_counter() - begun
        self.wait()
        return {"steps": steps, "tokens": tokens, "seconds": time.perf_counter() - begun, "launched": launched}

    def wait(self):
        if self.device == "cuda":
            torch.cuda.synchronize()


class Varlen(Side):
    """The same over rows without padding."""

    def take(self, of, batches):
        super().take(of, batches)
        starts = lambda lengths: torch.tensor([0, *lengths]).cumsum(0).int()
        positions = lambda lengths: torch.cat([torch.arange(length) for length in lengths])
        self.batches = [(ids[real], positions(lengths), starts(lengths)) for (ids, real), lengths in zip(self.batches, batches)]
        if self.device == "cuda":
            self.batches = [[each.pin_memory() for each in batch] for batch in self.batches]
        self.longest = max(max(lengths) for lengths in batches)

    def load(self, batch):
        self.ids, self.positions, self.starts = (each.to(self.device, non_blocking=True) for each in batch)
        self.segments = torch.zeros_like(self.ids)

    def rows(self):
        return self.starts, self.longest


class Engraft:
    """The program on the other end of a pipe."""

    def __init__(self, program, libraries):
        env = {**os.environ, "LD_LIBRARY_PATH": libraries} if libraries else None
        self.process = subprocess.Popen([program, "speed"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, what):
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"gpu_check ended with {self.process.wait()}")
        told = json.loads(line)
        if "error" in told:
            raise RuntimeError(told["error"])
        return told


def flops(of, batches):
    """Of one token, forward and backward, in products alone."""
    tokens = sum(sum(lengths) for lengths in batches)
    across = sum(length * length for lengths in batches for length in lengths) / tokens
    d, i = of["hidden"], of["feed_forward"]
    return of["layers"] * (6 * (4 * d * d + 2 * d * i) + 12 * across * d)


def attempt(errors, name, what):
    """What a side may fail at without the others: it is then left out, with the reason."""
    try:
        return what()
    except Exception as error:  # noqa: BLE001 - whatever a side dies of is to be told
        errors[name] = f"{type(error).__name__}: {str(error)[:300]}"
        return None


def case(given, of, batches, sides, engraft):
    """Tokens a second of all sides, which take turns."""
    errors, turns = {}, {}
    if attempt(errors, "engraft", lambda: engraft.ask({"batches": batches}) and engraft.ask({"steps": 2 * len(batches) + 2})):
        turns["engraft"] = lambda seconds: engraft.ask({"seconds": seconds})
    for name, side in sides.items():
        if name == "varlen" and len({length for lengths in batches for length in lengths}) == 1:
            continue
        if attempt(errors, name, lambda side=side: (side.take(of, batches), side.run(lambda steps, _: steps < 3))):
            turns[name] = lambda seconds, side=side: side.run(lambda _, spent: spent < seconds)
    if given.device == "cuda" and len(batches[0]) < 64 and "compiled" in turns:
        compiled = sides["compiled"]

        def as_graph(seconds):
            compiled.capture()
            try:
                return compiled.run(lambda _, spent: spent < seconds)
            finally:
                compiled.release()

        turns["graph"] = as_graph
    found = {name: [] for name in turns}
    for _ in range(ROUNDS):
        for name, turn in turns.items():
            told = attempt(errors, name, lambda turn=turn: turn(given.turn)) if name not in errors else None
            if told:
                found[name].append(told)
    speeds = {name: statistics.median(t["tokens"] / t["seconds"] for t in told) for name, told in found.items() if told}
    line = {"tokens_per_second": {name: round(speed) for name, speed in speeds.items()}}
    line["milliseconds"] = {name: round(statistics.median(1e3 * t["seconds"] / t["steps"] for t in told), 3) for name, told in found.items() if told}
    peers = [speed for name, speed in speeds.items() if name != "engraft"]
    if "engraft" in speeds:
        line["bytes_a_token_and_layer"] = found["engraft"][-1].get("bytes_a_token_and_layer")
        line["teraflops"] = round(speeds["engraft"] * flops(of, batches) / 1e12, 2)
        if peers:
            line["ratio"] = round(speeds["engraft"] / max(peers), 3)
    return line | ({"errors": errors} if errors else {})


def speed(given):
    begun = time.monotonic()
    models, shapes = (TINY, TINY_SHAPES) if given.tiny else (MODELS, SHAPES)
    engraft, last, left_out = Engraft(given.gpu_check, given.libraries), 0.0, []
    for rate in (0.1, 0.0):
        for model, of in models.items():
            if time.monotonic() - begun + 1.5 * last > given.seconds:
                left_out.append(f"{model}, dropout {rate}")
                continue
            torch._dynamo.reset()
            errors = {}
            asked = {"model": {**of, "longest": 128, "dropout": rate, "dtype": "bf16"}}
            attempt(errors, "engraft", lambda: engraft.ask(asked))
            # Without a GPU there is no such attention.
            kinds = {"eager": Side, "compiled": Side} | ({"varlen": Varlen} if given.device == "cuda" else {})
            sides = {name: attempt(errors, name, lambda name=name, kind=kind: kind(of, rate, given.device, name == "compiled")) for name, kind in kinds.items()}
            sides = {name: side for name, side in sides.items() if side}
            for shape, batches in shapes.items():
                at = time.monotonic()
                if at - begun + 1.2 * last > given.seconds:
                    left_out.append(f"{model}, {shape}, dropout {rate}")
                    continue
                line = {"model": model, "shape": shape, "dropout": rate} | case(given, of, batches, sides, engraft)
                tell(line | ({"errors": errors | line.get("errors", {})} if errors else {}))
                last = time.monotonic() - at
            sides = None
            if given.device == "cuda":
                torch.cuda.empty_cache()
    if left_out:
        tell({"left_out": left_out})


def timed(what, times):
    """Seconds of the fastest of three stretches, each of so many."""
    for _ in range(3):
        what()
    best = float("inf")
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(times):
            what()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3 / times)
    return best


def ceilings():
    side = 8192
    a, b = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    product = timed(lambda: a @ b, 10)
    x = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    copied = timed(lambda: y.copy_(x), 10)
    tell({"torch": torch.__version__, "cuda": torch.version.cuda, "multiprocessors": torch.cuda.get_device_properties(0).multi_processor_count,
          "bf16_teraflops": round(2 * side**3 / product / 1e12, 1), "copy_gigabytes_per_second": round(2 * x.numel() / copied / 1e9, 1)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ceilings", "speed"])
    parser.add_argument("gpu_check", nargs="?")
    parser.add_argument("--libraries", help="folders where gpu_check finds CUDA's, with ':' between them; PyTorch has its own")
    parser.add_argument("--seconds", type=float, default=200.0, help="for all cases together")
    parser.add_argument("--turn", type=float, default=0.6, help="seconds of one turn")
    parser.add_argument("--tiny", action="store_true", help="sizes that a mock driver computes, PyTorch on the CPU")
    given = parser.parse_args()
    given.device = "cpu" if given.tiny else "cuda"
    torch.set_float32_matmul_precision("high")
    if given.what == "ceilings":
        ceilings()
    elif given.gpu_check:
        speed(given)
    else:
        parser.error("speed needs the program gpu_check")


main()
