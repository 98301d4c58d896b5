"""The peers of predict.py: a classifier that engraft fine-tuned, asked by transformers or by ONNX Runtime.

Usage: predict_peer.py MODEL export GRAPH
       predict_peer.py MODEL transformers [--sorted] [--threads N] < LINES
       predict_peer.py MODEL onnx GRAPH [--sorted] [--threads N] < LINES
MODEL is a folder that engraft wrote: the encoder as transformers has it, and a linear layer on [CLS] in outputs.safetensors. Prints what `engraft predict`
prints of each line.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

BATCH = 32


def classifier(folder, attention="sdpa"):
    """Encoder and output as one module of ids and mask."""
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModel

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = AutoModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation=attention)
            output = load_file(Path(folder) / "outputs.safetensors")
            self.weight, self.bias = output["kinds.weight"], output["kinds.bias"]

        def forward(self, input_ids, attention_mask):
            hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
            return torch.nn.functional.linear(hidden[:, 0], self.weight, self.bias)

    return Classifier().eval()


def export(folder, graph):
    import onnx
    import onnxruntime
    import torch
    import transformers

    # With padding: a mask of ones alone is left out of what is traced.
    ids = torch.tensor([[101, 2054, 2024, 1996, 102, 0, 0], [101, 2054, 2024, 1996, 5751, 1999, 102]])
    batch, length = torch.export.Dim("batch", max=4096), torch.export.Dim("length", max=512)
    shapes = {"input_ids": {0: batch, 1: length}, "attention_mask": {0: batch, 1: length}}
    program = torch.onnx.export(classifier(folder, "eager"), (ids, (ids != 0).long()), dynamo=True, dynamic_shapes=shapes, input_names=list(shapes), output_names=["logits"], verbose=False)
    program.save(graph)
    print(json.dumps({module.__name__: module.__version__ for module in (torch, transformers, onnx, onnxruntime)}))


def by_transformers(folder, threads):
    import torch

    torch.set_num_threads(threads)
    model = classifier(folder)

    def logits(ids, mask):
        with torch.inference_mode():
            return model(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()

    return logits


def by_onnx(graph, threads):
    import onnxruntime

    how = onnxruntime.SessionOptions()
    how.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(graph, how, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"input_ids": ids, "attention_mask": mask})[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("how", choices=["export", "transformers", "onnx"])
    parser.add_argument("graph", nargs="?")
    parser.add_argument("--sorted", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    if given.how == "export":
        return export(given.model, given.graph)
    from tokenizers import Tokenizer

    task = json.loads((Path(given.model) / "task.json").read_text())
    tokenizer = Tokenizer.from_file(str(Path(given.model) / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(task["max_tokens"])
    logits = by_onnx(given.graph, given.threads) if given.how == "onnx" else by_transformers(given.model, given.threads)
    rows = [encoded.ids for encoded in tokenizer.encode_batch([line.rstrip("\n") for line in sys.stdin])]
    order = sorted(range(len(rows)), key=lambda at: len(rows[at])) if given.sorted else range(len(rows))
    order, answers = list(order), [None] * len(rows)
    for first in range(0, len(order), BATCH):
        places = order[first : first + BATCH]
        longest = max(len(rows[at]) for at in places)
        ids, mask = np.zeros((2, len(places), longest), dtype=np.int64)
        for row, at in enumerate(places):
            ids[row, : len(rows[at])] = rows[at]
            mask[row, : len(rows[at])] = 1
        found = logits(ids, mask)
        shares = np.exp(found - found.max(axis=1, keepdims=True))
        for at, of in zip(places, shares / shares.sum(axis=1, keepdims=True), strict=True):
            answers[at] = of
    classes = task["tasks"][0]["classes"]
    for of in answers:
        print(json.dumps({"class": classes[int(of.argmax())], "shares": dict(zip(classes, of.tolist(), strict=True))}))


if __name__ == "__main__":
    main()
