"""Answers in passages, for benches/sets.py: windows by the tokenizer of transformers, the ends of a span by two softmaxes, scores by the rules of SQuAD."""

import re
import string
from collections import Counter

import torch


def characters(text, place):
    """A place in bytes, in characters."""
    return len(text.encode()[:place].decode())


def windows(tokenizer, row, most, told):
    """The rows of a question: tokens, the characters of the passage's tokens, the passage, and the first and last token of its answer (0 where it has none)."""
    found = []
    shown = tokenizer(row["text"], add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"][: min(told["question"], most // 2)]
    question = row["text"][: shown[-1][1]] if shown else ""
    for passage in row["answer"]["span"]["passages"]:
        text = passage["text"]
        spans = [(characters(text, span["start"]), characters(text, span["end"])) for span in passage["spans"]]
        batch = tokenizer(question, text, truncation="only_second", max_length=most, stride=told["overlap"], return_overflowing_tokens=True, return_offsets_mapping=True)
        for at, (ids, places) in enumerate(zip(batch["input_ids"], batch["offset_mapping"])):
            own = [token for token, of in enumerate(batch.sequence_ids(at)) if of == 1]
            if not own:
                continue
            begin, end, ends = places[own[0]][0], places[own[-1]][1], (0, 0)
            for start, stop in spans:
                if begin <= start and stop <= end:
                    ends = (max(t for t in own if places[t][0] <= start), min(t for t in own if places[t][1] >= stop))
                    break
            types = batch["token_type_ids"][at] if "token_type_ids" in batch else [0] * len(ids)
            found.append({"ids": torch.tensor(ids, dtype=torch.int32), "types": torch.tensor(types, dtype=torch.int8), "own": (own[0], own[-1] + 1), "places": places, "text": text, "ends": ends})
    return found


def padded(some):
    pad = torch.nn.utils.rnn.pad_sequence
    ids = pad([of["ids"] for of in some], batch_first=True).long()
    mask = pad([torch.ones(len(of["ids"]), dtype=torch.long) for of in some], batch_first=True)
    return {"input_ids": ids, "token_type_ids": pad([of["types"] for of in some], batch_first=True).long(), "attention_mask": mask}


def drawn(of, chance, negatives):
    """One window with the answer and some without."""
    with_, without = [w for w in of if w["ends"] != (0, 0)], [w for w in of if w["ends"] == (0, 0)]
    one = [chance.choice(with_)] if with_ else []
    return one + chance.sample(without, min(len(without), max(negatives, 1 - len(one))))


def loss(model, some):
    batch = padded(some)
    logits = model(batch).masked_fill(batch["attention_mask"].unsqueeze(-1) == 0, float("-inf"))
    ends = torch.tensor([of["ends"] for of in some])
    return (torch.nn.functional.cross_entropy(logits[..., 0], ends[:, 0]) + torch.nn.functional.cross_entropy(logits[..., 1], ends[:, 1])) / 2


def words(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def one(said, accepted):
    """Exact match and F1 of an answer."""
    gold = [of for of in map(words, accepted) if of] or [[]]
    said = words(said)
    if not said or gold == [[]]:
        return 2 * (float(said in gold),)
    shared = [sum((Counter(said) & Counter(of)).values()) for of in gold]
    return float(said in gold), max(2 * same / (len(said) + len(of)) for same, of in zip(shared, gold))


@torch.no_grad()
def answers(model, rows, features, told, measure):
    model.eval()
    flat = [(at, window) for at, row in enumerate(rows) for window in features[row["id"]]]
    order = sorted(range(len(flat)), key=lambda at: len(flat[at][1]["ids"]))
    best = [(float("-inf"), "")] * len(rows)
    for start in range(0, len(order), 32):
        some = [flat[at] for at in order[start : start + 32]]
        logits = model(padded([window for _, window in some]))
        for (at, window), of in zip(some, logits):
            begin, end = window["own"]
            first, last = of[begin:end, 0], of[begin:end, 1]
            scores = first.unsqueeze(1) + last.unsqueeze(0) - of[0].sum()
            allowed = torch.ones_like(scores).triu().tril(told["longest"] - 1).bool()
            place = int(scores.masked_fill(~allowed, float("-inf")).argmax())
            i, j = place // len(first), place % len(first)
            if float(scores[i, j]) > best[at][0]:
                text = window["text"][window["places"][begin + i][0] : window["places"][begin + j][1]]
                best[at] = (float(scores[i, j]), text)
    said = ["" if told["may_be_none"] and score <= 0 else text for score, text in best]
    each = [one(text, row["answer"]["span"]["accepted"]) for text, row in zip(said, rows)]
    return sum(of[0 if measure == "exact_match" else 1] for of in each) / len(each)
