"""Loads a checkpoint folder with transformers.AutoModel and compares its outputs with stored ones.

Usage: auto_model.py FOLDER CASE.safetensors OLD
The case holds input_ids, attention_mask, token_type_ids [b, t] and last_hidden_state [b, t, d], pooled [b, d]; hidden
states of padding are not compared. Then writes the same weights into the folder OLD as they were published before safetensors
(pytorch_model.bin, with the prefix of models with outputs). Ends with status 0 if nothing differs by more than 1e-5.
"""

import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModel

folder, case = sys.argv[1], load_file(sys.argv[2])
model, info = AutoModel.from_pretrained(folder, output_loading_info=True)
for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
    if info[kind]:
        sys.exit(f"{kind}: {sorted(info[kind])}")
model.eval()
with torch.no_grad():
    out = model(**{name: case[name].long() for name in ("input_ids", "attention_mask", "token_type_ids")})
real = case["attention_mask"].bool()
hidden = (out.last_hidden_state - case["last_hidden_state"]).abs()[real].max().item()
pooled = (out.pooler_output - case["pooled"]).abs().max().item()
bin = {f"bert.{name}": tensor for name, tensor in model.state_dict().items()} | {"cls.predictions.bias": torch.zeros(3)}
torch.save(bin, f"{sys.argv[3]}/pytorch_model.bin")
print(f"largest difference: hidden {hidden:.2e}, pooled {pooled:.2e}")
sys.exit(0 if max(hidden, pooled) <= 1e-5 else "outputs differ")
