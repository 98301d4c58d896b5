"""Masked words learnt by plain PyTorch from the same batches: the peer of stage `pretrain` on shards of `masked_lm`.

    python benches/words.py --begin MODEL START      # START: transformers' BertForMaskedLM with MODEL's encoder and a fresh output, for both sides to begin with
    engraft run pretrain --config words.toml --data DIR --out OUT
    python benches/words.py OUT START

engraft's stream gives both sides the same rows, with the same words masked in them, and the config sets dropout to 0: nothing is left to chance, so that the losses of all steps, and the norms of
their gradients (`pretrain/metrics.jsonl`), are compared one by one. PyTorch does what scripts do: the mean loss over what is masked, clipping by the norm of all gradients, AdamW without decay of
biases and norms, linear warm-up and decay (0 one step before the first and one after the last). Batch, seed and rate are those of the ledger. Needs engraft's wheel, torch and transformers.
"""

import argparse
import json
import time
from pathlib import Path

import torch
import transformers

import ledger


def begin(model, start):
    """A checkpoint with an output for masked words."""
    torch.manual_seed(1)
    transformers.BertForMaskedLM.from_pretrained(model).save_pretrained(start)
    transformers.AutoTokenizer.from_pretrained(model).save_pretrained(start)


def settings(out):
    """Those of the pretraining, by their keys."""
    fields = ledger.made(out, "pretrain")["described"]["fields"]
    needed = {f"pretrain.{key}": 0.0 for key in ("hidden_dropout", "attention_dropout", "task_heads.dropout")}
    needed |= {"pretrain.stream.schedule": "merged", "pretrain.schedule": "linear", "pretrain.accumulate": 1, "compute.dtype": "f32"}
    for key, value in needed.items():
        assert fields.get(key) == value, f"{key} is {fields.get(key)!r}, and has to be {value!r} for the two sides to do the same"
    return fields


def learnt(model, stream, of, steps):
    """Loss and gradient's norm of each step."""
    decayed = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    plain = [parameter for parameter in model.parameters() if parameter.dim() == 1]
    constants = {"lr": 0.0, "betas": (of["pretrain.adamw.beta1"], of["pretrain.adamw.beta2"]), "eps": of["pretrain.adamw.epsilon"]}
    groups = [{"params": decayed, "weight_decay": of["pretrain.adamw.weight_decay"]}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, **constants, fused=True)
    warmup, peak = of["pretrain.warmup_steps"], of["pretrain.learning_rate"]
    for number, step in zip(range(steps), stream):
        (batch,) = (step[task] for task in step)
        ids, labels = (torch.from_numpy(batch[key]).long() for key in ("input_ids", "labels"))
        real = torch.from_numpy(batch["attention_mask"]).long()
        for group in optimiser.param_groups:
            # The first step has a rate already, and the last one has one still.
            group["lr"] = peak * min((number + 1) / max(warmup, 1), (steps - number) / max(steps + 1 - warmup, 1))
        loss = model(input_ids=ids, attention_mask=real, labels=labels).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), of["pretrain.clip_norm"])
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        yield loss.item(), norm.item(), int(real.sum()), optimiser.param_groups[0]["lr"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="engraft's output folder; with --begin a model")
    parser.add_argument("start", type=Path, help="the checkpoint to begin with")
    parser.add_argument("--begin", action="store_true", help="make it")
    given = parser.parse_args()
    if given.begin:
        return begin(given.out, given.start)
    import engraft

    of = settings(given.out)
    ours = [json.loads(line) for line in (given.out / "pretrain/metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    stream = engraft.Stream(given.out / "shards", schedule="merged", items=of["pretrain.stream.batching.items"], seed=of["pretrain.seed"])
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    model = transformers.BertForMaskedLM.from_pretrained(given.start, attn_implementation="sdpa", **none).train()
    began, theirs = time.perf_counter(), []
    print("| step | tokens | learning rate | loss, engraft | loss, PyTorch | gradient norm, engraft | gradient norm, PyTorch |\n" + "|--:" * 7 + "|")
    for line, (loss, norm, tokens, rate) in zip(ours, learnt(model, stream, of, len(ours)), strict=True):
        assert (line["tokens"], round(line["learning_rate"], 12)) == (tokens, round(rate, 12)), f"not the same steps: {line}, {tokens} tokens, rate {rate}"
        theirs.append((loss, norm))
        if line["step"] == 1 or line["step"] % max(len(ours) // 10, 1) == 0:
            print(f"| {line['step']} | {tokens:,} | {rate:.2e} | {line['loss']:.5f} | {loss:.5f} | {line['grad_norm']:.4f} | {norm:.4f} |", flush=True)
    apart = [max(abs(line[key] / value - 1) for line, value in zip(ours, values)) for key, values in zip(("loss", "grad_norm"), zip(*theirs))]
    print(f"\n{len(ours)} steps: losses differ by at most {apart[0]:.1e}, relatively, gradient norms by {apart[1]:.1e}. engraft took {ledger.made(given.out, 'pretrain')['seconds']:.0f} s, "
          f"PyTorch {torch.__version__} (transformers {transformers.__version__}) {time.perf_counter() - began:.0f} s.")


if __name__ == "__main__":
    main()
