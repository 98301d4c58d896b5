"""What `transformers.AutoModelForMaskedLM` says at a mask token, read from a folder that engraft wrote.

    python fill_mask.py FOLDER

The logits at the third token of a fixed row go to standard output as a JSON list; a parameter that is missing, unexpected or of another shape is an error. The
plain encoder must load from the same folder, too.
"""

import json
import sys

import torch
from transformers import AutoModel, AutoModelForMaskedLM

for auto, expected in ((AutoModelForMaskedLM, {"bert.pooler.dense.weight", "bert.pooler.dense.bias"}), (AutoModel, None)):
    model, info = auto.from_pretrained(sys.argv[1], output_loading_info=True)
    unexpected = set(info["unexpected_keys"])
    # The encoder has no use for the output, the masked language model none for the pooler.
    stray = unexpected - expected if expected is not None else {name for name in unexpected if not name.startswith("cls.predictions.")}
    if info["missing_keys"] or info["mismatched_keys"] or stray:
        sys.exit(f"missing {info['missing_keys']}, mismatched {info['mismatched_keys']}, unexpected {sorted(stray)}")
    if expected is not None:
        with torch.no_grad():
            logits = model.eval()(input_ids=torch.tensor([[2, 9, 4, 30, 3]])).logits[0, 2]
print(json.dumps(logits.tolist()))
