"""Adds adapters to what they began with by PEFT, and compares with the encoder that has them added.

Usage: adapters.py BASE ADAPTERS ADDED
Ends with status 0 if no state of a token, and nothing that the pooler makes of one, differs by more than 1e-5, and what the adapters began with differs from both.
"""

import sys

import torch
from peft import PeftModel
from transformers import AutoModel

base, adapters, added = sys.argv[1:]
generator = torch.Generator().manual_seed(1)
added = AutoModel.from_pretrained(added).eval()
ids = torch.randint(5, added.config.vocab_size, (4, 12), generator=generator)


def states(model):
    with torch.no_grad():
        out = model(input_ids=ids)
    return torch.cat([out.last_hidden_state.flatten(), out.pooler_output.flatten()])


before = states(AutoModel.from_pretrained(base).eval())
model = PeftModel.from_pretrained(AutoModel.from_pretrained(base), adapters).eval()
expected = states(added)
by_peft, far = (states(model) - expected).abs().max().item(), (before - expected).abs().max().item()
merged = (states(model.merge_and_unload()) - expected).abs().max().item()
print(f"largest difference: by PEFT {by_peft:.2e}, merged by it {merged:.2e}; without adapters {far:.2e}")
sys.exit(0 if max(by_peft, merged) <= 1e-5 < far else "the states differ")
