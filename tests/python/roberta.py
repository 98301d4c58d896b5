"""A small RoBERTa as `transformers` and `tokenizers` make it, and whether they read what engraft made of one.

Usage: roberta.py make DIR        writes DIR/published (tokenizer.json), DIR/old (vocab.json, merges.txt) and DIR/case.json
       roberta.py check FOLDER CASE.json
The case holds texts and pairs with their token ids, mean-pooled vectors of the texts, and the logits of a masked token. `check` reads FOLDER by
AutoModel and AutoTokenizer and compares the tokens and vectors of the case with theirs. Ends with status 0 if no number differs by more than 1e-4.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import ByteLevelBPETokenizer
from tokenizers.processors import RobertaProcessing
from transformers import AutoModel, AutoTokenizer, RobertaConfig, RobertaForMaskedLM

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
LEARNED = (
    "fever and a cough are signs of influenza (the flu). Pain in the chest, doesn't it? The patient's heart failed; treated with aspirin, 100 mg. "
    "asthma is due to smoke. may treat has manifestation clinically associated with disease symptoms causes complications treatments exams. "
)
TEXTS = [
    "fever and a cough",
    "Pain in the patient's chest (severe), doesn't it?",
    "  two  spaces\tand\n\nlines ",
    "naïve café – 中文 😀 ...).",
    "100mg/day",
]
PAIRS = [("fever", "cough"), ("What treats asthma?", "It's treated with aspirin.")]


def vectors(model, rows, pad):
    found = []
    with torch.no_grad():
        for ids in rows:
            hidden = model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).last_hidden_state
            padded = model(
                input_ids=torch.tensor([ids + [pad] * 3]), attention_mask=torch.tensor([[1.0] * len(ids) + [0.0] * 3])
            ).last_hidden_state[:, : len(ids)]
            assert (hidden - padded).abs().max() < 1e-5
            found.append(hidden[0].mean(0).tolist())
    return found


def make(folder):
    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator([LEARNED] * 3, vocab_size=400, min_frequency=2, special_tokens=[*SPECIAL, "<mask>"], show_progress=False)
    published, old = folder / "published", folder / "old"
    for of in (published, old):
        of.mkdir()
    trained.save_model(str(old))
    ids = {token: trained.token_to_id(token) for token in [*SPECIAL, "<mask>"]}
    trained._tokenizer.post_processor = RobertaProcessing(("</s>", ids["</s>"]), ("<s>", ids["<s>"]))
    trained._tokenizer.save(str(published / "tokenizer.json"))
    torch.manual_seed(5)
    sizes = RobertaConfig(
        vocab_size=trained.get_vocab_size(), hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=130, type_vocab_size=1, layer_norm_eps=1e-5, initializer_range=0.2, pad_token_id=ids["<pad>"],
        bos_token_id=ids["<s>"], eos_token_id=ids["</s>"],
    )  # fmt: skip
    model = RobertaForMaskedLM(sizes).eval()
    with torch.no_grad():
        model.lm_head.bias.normal_()
    for of in (published, old):
        model.save_pretrained(of)
    encode = trained._tokenizer.encode
    texts = [encode(text).ids for text in TEXTS]
    masked = [ids["<s>"], *trained.encode("fever and").ids[1:-1], ids["<mask>"], *trained.encode(" cough").ids[1:-1], ids["</s>"]]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([masked])).logits[0, masked.index(ids["<mask>"])].tolist()
    case = {
        "texts": [{"text": text, "ids": row} for text, row in zip(TEXTS, texts)],
        "pairs": [{"text": a, "pair": b, "ids": encode(a, b).ids} for a, b in PAIRS],
        "vectors": vectors(model.roberta, texts, ids["<pad>"]),
        "masked": masked,
        "logits": logits,
    }
    (folder / "case.json").write_text(json.dumps(case))


def check(folder, file):
    case = json.loads(Path(file).read_text())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, info = AutoModel.from_pretrained(folder, output_loading_info=True)
    for kind in ("missing_keys", "mismatched_keys"):
        if info[kind]:
            sys.exit(f"{kind}: {sorted(info[kind])}")
    if type(model).__name__ != "RobertaModel":
        sys.exit(f"it is a {type(model).__name__}")
    for of in case["texts"] + case["pairs"]:
        found = tokenizer(of["text"], of.get("pair"))["input_ids"]
        if found != of["ids"]:
            sys.exit(f"{of}: {found}")
    found = vectors(model.eval(), [of["ids"] for of in case["texts"]], tokenizer.pad_token_id)
    worst = (torch.tensor(found) - torch.tensor(case["vectors"])).abs().max().item()
    print(f"largest difference: {worst:.2e}")
    sys.exit(0 if worst <= 1e-4 else "vectors differ")


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        check(*sys.argv[2:])
