"""Folders with engraft's tokenizer open in transformers, and give the ids that shards have.

Usage: auto_tokenizer.py OUT
PYTHONPATH names the package. Ends with status 0 if they do.
"""

import sys
from pathlib import Path

import pyarrow as pa
from transformers import AutoTokenizer

import engraft

out = Path(sys.argv[1])
# No special token: in a text of engraft's it is text.
texts = ["Acute chest pain, then FEVER.", "caf\u00e9 na\u00efve 3.5 mg/kg", "", "  unheard-of\u4e2d  ", "of the heart"]
ours = pa.table(engraft.tokenize(pa.table({"text": texts}), out / "vocabulary", column="text", offsets=None, max_tokens=64))["input_ids"].to_pylist()
for folder in (out / "vocabulary", out / "shards/tokenizer"):
    theirs = AutoTokenizer.from_pretrained(folder)
    found = theirs(texts, add_special_tokens=False)["input_ids"]
    assert found == ours, (folder, found, ours)
    assert theirs.mask_token_id == theirs.convert_tokens_to_ids("[MASK]") != theirs.unk_token_id, folder
