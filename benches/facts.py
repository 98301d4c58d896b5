"""LAMA's facts asked of a masked language model by plain PyTorch and transformers: the peer of stages `lama-MODEL`.

    python benches/facts.py OUT STAGE MODEL DATA

OUT is the output folder of engraft after `engraft run STAGE` (`lama-base`, `lama-finetune-base-texts-1`), MODEL what it asked, as transformers loads it (`OUT/finetune-base-texts-1/model`, or [encoder]'s checkpoint), DATA LAMA's
folder `data`. Facts are read and asked here anew: the sentence with `[MASK]`, the place of the object's token among all of the vocabulary, the last of equal ones. Prints each corpus's precision at 1 and 10 and mean reciprocal
rank over all facts of both sides, and of how many facts the places are the same; other facts than engraft asked end the script. Templates alone (not `lama.wording = "masked_sentences"`), the whole vocabulary (no `lama.words`) and models that attend by no maps.
"""

import argparse
import json
from pathlib import Path

import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

import ledger
from ledger import lines

FOLDERS = {"trex": "TREx", "google_re": "Google_RE", "squad": "Squad", "conceptnet": "ConceptNet"}
TEMPLATES = {"place_of_birth": "[X] was born in [Y] .", "date_of_birth": "[X] (born [Y]).", "place_of_death": "[X] died in [Y] ."}


def sentence_of(row):
    """The masked sentences of a fact without a template, if it has some that may be asked."""
    found = " ".join(row.get("masked_sentences", ()))
    if not found:
        shown = (of.get("masked_sentence") or "" for of in row.get("evidences", ()))
        found = next((text for text in shown if "[MASK]" in text), "")
    return found.strip() if "[MASK]" in found and len(found.split()) <= 100 else None


def facts(data, corpus):
    """Relation, object and sentence of each fact that LAMA's code would ask, file by file."""
    templates = {of["relation"]: of["template"] for of in lines(data / "relations.jsonl")} if corpus == "trex" else TEMPLATES
    for path in sorted((data / FOLDERS[corpus]).glob("*.jsonl")):
        relation, known = path.stem.removesuffix("_test") if corpus == "google_re" else path.stem, set()
        for row in lines(path):
            subject, right = (row.get("sub_label") or row.get("sub") or "").strip(), (row.get("obj_label") or "").strip()
            said = [of["judgment"] == "yes" for of in row.get("judgments", ())]
            if not subject or not right or 2 * sum(said) < len(said):
                continue
            if corpus in ("squad", "conceptnet"):
                sentence = sentence_of(row)
            elif (subject, right) in known:
                continue
            else:
                known.add((subject, right))
                sentence = templates[relation].strip().replace("[X]", subject).replace("[Y]", "[MASK]")
            if sentence:
                yield row["pred"] if corpus == "conceptnet" and "pred" in row else relation, right, sentence


@torch.no_grad()
def places(model, tokenizer, some):
    """The place of each fact's object among the logits of its mask, of equal ones the last."""
    batch = tokenizer.pad({"input_ids": [ids for ids, _ in some]}, return_tensors="pt")
    blanks = torch.tensor([ids.index(tokenizer.mask_token_id) for ids, _ in some])
    states = model.base_model(**batch).last_hidden_state[torch.arange(len(some)), blanks]
    logits = (model.cls if hasattr(model, "cls") else model.lm_head)(states)
    right = logits.gather(1, torch.tensor([[right] for _, right in some]))
    return (logits >= right).sum(1).tolist()


def asked(model, tokenizer, of, most):
    """Each fact whose object is one token and whose sentence a row has room for, with the object's place."""
    told, rows = [], []
    for relation, right, sentence in of:
        object_ids, ids = tokenizer.encode(right, add_special_tokens=False), tokenizer.encode(sentence)
        if len(object_ids) == 1 and object_ids[0] != tokenizer.unk_token_id and len(ids) <= most:
            told.append((relation, right))
            rows.append((ids, object_ids[0]))
    found = [place for start in range(0, len(rows), 32) for place in places(model, tokenizer, rows[start : start + 32])]
    return [(*fact, place) for fact, place in zip(told, found)]


def measured(places):
    return [100 * sum(value(place) for place in places) / len(places) for value in (lambda of: of <= 1, lambda of: of <= 10, lambda of: 1 / of)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("stage")
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    given = parser.parse_args()
    fields = ledger.made(given.out, given.stage)["described"]["fields"]
    assert fields.get("lama.wording", "templates") == "templates", f"{given.stage}: lama.wording = {fields['lama.wording']!r} is not done here"
    assert "lama.words" not in fields, f"{given.stage}: lama.words is not done here"
    outputs = given.model / "outputs.json"
    assert not outputs.exists() or not json.loads(outputs.read_text())["outputs"].get("knowledge"), f"{given.model} attends by maps, which is not done here"
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(given.model).eval(), AutoTokenizer.from_pretrained(given.model)
    ours = lines(given.out / given.stage / "answers.jsonl")
    print("| corpus | facts | same place | P@1, engraft | PyTorch | P@10, engraft | PyTorch | MRR, engraft | PyTorch |\n|---|" + "--:|" * 8)
    for corpus in fields["lama.corpora"]:
        own = [of for of in ours if of["corpus"] == corpus]
        here = asked(model, tokenizer, facts(given.data, corpus), fields.get("lama.max_tokens", 128))
        assert [(of["relation"], of["object"]) for of in own] == [of[:2] for of in here], f"{corpus}: other facts were asked than here"
        sides = [[of["place"] for of in own], [of[2] for of in here]]
        same = sum(one == other for one, other in zip(*sides))
        cells = [f"{value:.2f}" for both in zip(*map(measured, sides)) for value in both]
        print(f"| {FOLDERS[corpus]} | {len(own):,} | {same:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
