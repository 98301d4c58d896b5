"""Whether what `engraft export` wrote computes what engraft does.

Usage: exported.py ASKED [FORM FOLDER SAID]...
ASKED holds JSON lines with `text`; FORM is `onnx`, `sentence-transformers` or `transformers` (pooled by cls), SAID what `engraft encode` said of the lines with the model and pooling of
FOLDER. Ends with status 0 if every vector is the same within 1e-4 of its length.
"""

import json
import sys

import numpy as np
import onnxruntime
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

asked, rest = sys.argv[1], sys.argv[2:]
texts = [json.loads(line)["text"] for line in open(asked)]


def by_onnx(folder):
    session = onnxruntime.InferenceSession(f"{folder}/model.onnx", providers=["CPUExecutionProvider"])
    encoded = AutoTokenizer.from_pretrained(folder)(texts, return_tensors="np", padding=True, truncation=True)
    inputs = {of.name: encoded[of.name].astype(np.int64) for of in session.get_inputs()}
    states, vectors = session.run(["last_hidden_state", "sentence_embedding"], inputs)
    assert states.shape[:2] == encoded["input_ids"].shape, states.shape
    return vectors


def by_sentence_transformers(folder):
    model = SentenceTransformer(folder, device="cpu")
    assert model.similarity_fn_name == "cosine"
    return model.encode(texts)


def by_transformers(folder):
    model, loaded = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not loaded["missing_keys"], loaded["missing_keys"]
    encoded = AutoTokenizer.from_pretrained(folder)(texts, return_tensors="pt", padding=True, truncation=True)
    with torch.no_grad():
        return model.eval()(**encoded).last_hidden_state[:, 0].numpy()


BY = {"onnx": by_onnx, "sentence-transformers": by_sentence_transformers, "transformers": by_transformers}
for form, folder, said in zip(*[iter(rest)] * 3, strict=True):
    vectors = BY[form](folder)
    for found, line in zip(vectors, open(said), strict=True):
        expected = np.array(json.loads(line)["vector"])
        far = np.linalg.norm(found - expected) / np.linalg.norm(expected)
        assert far < 1e-4, (form, folder, far)
    print(form, folder, len(texts), "texts")
