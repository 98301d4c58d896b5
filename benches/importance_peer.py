"""Head importance in PyTorch, as the released script measures it: the peer of the program `importance`.

Usage: importance_peer.py SHAPE WEIGHTS SAMPLES THREADS {released|frozen}
One sample at a time, a head mask of ones that needs a gradient, one backward, the absolute gradient added up; no dropout. `released`: all weights
need gradients, which pile up, as they do there. (The script never clears the gradient of the mask either, so that it adds up something else; here it
is cleared.) `frozen`: a user who knows better switches the weights' gradients off. Prints one JSON object.
"""

import json
import resource
import sys
import time
from pathlib import Path

import torch
from bert_peer import Bert, linear, read_safetensors
from torch.nn import functional as F


def main():
    shape, samples = json.loads(sys.argv[1]), json.loads(Path(sys.argv[3]).read_text())
    torch.set_num_threads(int(sys.argv[4]))
    tensors = read_safetensors(Path(sys.argv[2]))
    bert, pooler, output = Bert(tensors, shape).eval(), linear(tensors, "pooler.dense"), linear(tensors, "output")
    for part in (bert, pooler, output):
        part.requires_grad_(sys.argv[5] == "released")
    ids = [torch.tensor([row]) for row in samples["ids"]]
    classes = [torch.tensor([each]) for each in samples["classes"]]
    begun, processor = time.perf_counter(), time.process_time()
    mask = torch.ones(shape["layers"], shape["heads"], requires_grad=True)
    importance = torch.zeros_like(mask)
    for row, each in zip(ids, classes):
        loss = F.cross_entropy(output(torch.tanh(pooler(bert(row, None, mask)[:, 0]))), each)
        loss.backward()
        importance += mask.grad.abs().detach()
        mask.grad = None
    told = {"seconds": time.perf_counter() - begun, "processor": time.process_time() - processor, "torch": torch.__version__}
    told |= {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "importances": importance.tolist()}
    print(json.dumps(told))


main()
