"""A masked language model with random weights as `transformers` saves it, and what it says in the place of blanks.

    python masked_lm.py FOLDER

FOLDER gets the model; what is said goes to standard output as JSON: `rows` of token ids, the place of each one's blank, and its logits.
"""

import json
import sys

import torch
from transformers import BertConfig, BertForMaskedLM

torch.manual_seed(3)
config = BertConfig(
    vocab_size=71, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, max_position_embeddings=20, initializer_range=0.3
)
model = BertForMaskedLM(config).eval()
# A bias of zeros would hide whether it is read.
torch.nn.init.normal_(model.cls.predictions.bias)
model.save_pretrained(sys.argv[1])
rows, blanks, logits = [[2, 9, 4, 30, 3], [2, 4, 3], [2, 60, 11, 12, 13, 4, 3]], [2, 1, 5], []
with torch.no_grad():
    for row, blank in zip(rows, blanks):
        logits.append(model(input_ids=torch.tensor([row])).logits[0, blank].tolist())
print(json.dumps({"rows": rows, "blanks": blanks, "logits": logits}))
