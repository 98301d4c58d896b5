"""Masked words for benches/sets.py: whole words of texts are masked, anew in each epoch, and asked for, by a checkpoint's own output for masked words or a fresh one.

Which words, and what stands in their place, is engraft's own draw again (`tasks/downstream/src/masking.rs`), so that both sides are asked for the very same tokens; that is asserted by what engraft wrote of `test`.
"""

import math

import torch
from transformers import AutoModelForMaskedLM

from drawn import Key

ASKED, MASKED, RANDOM = 0.15, 0.8, 0.1
CHECKED = 64  # Rows of which engraft's losses are compared.


class Model(torch.nn.Module):
    """An encoder and its output for masked words, which is computed where one is asked for alone."""

    def __init__(self, folder, dropout):
        super().__init__()
        self.model, self.dropout = AutoModelForMaskedLM.from_pretrained(folder), torch.nn.Dropout(dropout)
        of = self.model.config.model_type
        assert of == "bert", f"{folder}: tried with BERT, not with {of}"

    def forward(self, batch, asked):
        states = self.model.bert(**batch).last_hidden_state
        return self.model.cls(self.dropout(states[asked]))


class Words:
    """The rows of a benchmark's texts as engraft shows them."""

    def __init__(self, tokenizer, most, name, seed):
        self.tokenizer, self.most, self.name, self.seed = tokenizer, most, name, seed
        self.never = sorted(tokenizer.all_special_ids)

    def row(self, row, epoch):
        """Tokens of a row as they are shown, and the right one at each place that is asked for; those that are scored are always shown alike."""
        seed = self.seed if row["part"] == "train" else 0
        key = Key.of(seed, "masked words", self.name, row["part"]).at(epoch).at(row["line"])
        said = self.tokenizer(row["text"], truncation=True, max_length=self.most)
        words = self.words(row["text"], said)
        shown, right = list(said["input_ids"]), {}
        for word in self.asked(words, said["input_ids"], key):
            right |= {place: shown[place] for place in words[word]}
            self.hide(shown, words[word], key.named("shown").at(word))
        return shown, right

    def words(self, text, said):
        """The places of the tokens of each word that a row has whole."""
        places = {}
        for place, word in enumerate(said.word_ids()):
            if word is not None:
                places.setdefault(word, []).append(place)
        if len(said["input_ids"]) == self.most and places:
            last = max(places)
            whole = sum(word == last for word in self.tokenizer(text).word_ids())
            if len(places[last]) < whole:
                del places[last]
        return places

    def asked(self, words, ids, key):
        """The words that are asked for: in random order as long as they fit into the share of tokens, or the shortest one."""
        left_over = [word for word, places in words.items() if not any(ids[place] in self.never for place in places)]
        count = lambda word: len(words[word])
        tokens = sum(map(count, left_over))
        if not tokens:
            return []
        key.named("words").shuffle(left_over)
        room, taken = min(max(1, math.floor(ASKED * tokens + 0.5)), tokens), []
        for word in left_over:
            if count(word) <= room:
                room -= count(word)
                taken.append(word)
        return sorted(taken or [min(left_over, key=count)])

    def hide(self, shown, places, key):
        """Shows `[MASK]` in a word's places, other tokens, or the word itself."""
        share = key.below(1 << 32) / (1 << 32)
        for number, place in enumerate(places):
            if share < MASKED:
                shown[place] = self.tokenizer.mask_token_id
            elif share < MASKED + RANDOM:
                other = key.named("token").at(number).below(len(self.tokenizer) - len(self.never))
                for special in self.never:
                    other += other >= special
                shown[place] = other

    def usable(self, rows):
        """Those in which something can be asked for."""
        return [row for row in rows if self.row(row, 0)[1]]

    def batch(self, rows, epoch):
        """Tokens of rows, where something is asked for, and the right tokens there."""
        made = [self.row(row, epoch) for row in rows]
        batch = self.tokenizer.pad({"input_ids": [shown for shown, _ in made]}, return_tensors="pt")
        right = torch.full(batch["input_ids"].shape, -1)
        for at, (_, places) in enumerate(made):
            for place, token in places.items():
                right[at, place] = token
        return dict(batch), right >= 0, right[right >= 0]

    def loss(self, model, rows, epoch):
        batch, asked, right = self.batch(rows, epoch)
        return torch.nn.functional.cross_entropy(model(batch, asked), right)

    @torch.no_grad()
    def score(self, model, rows):
        model.eval()
        hits = tokens = 0
        for start in range(0, len(rows), 32):
            batch, asked, right = self.batch(rows[start : start + 32], 0)
            hits, tokens = hits + int((model(batch, asked).argmax(1) == right).sum()), tokens + len(right)
        return hits / tokens

    @torch.no_grad()
    def refuse_others(self, out, rows, said, tolerance=1e-3):
        """Asserts that the model of engraft's stage has here, by transformers, the loss that engraft said of each token of some rows of `test`: that it was asked for the very same ones."""
        rows, model = rows[:CHECKED], Model(out / "model", 0.0).eval()
        batch, asked, right = self.batch(rows, 0)
        here = torch.nn.functional.cross_entropy(model(batch, asked), right, reduction="none")
        there = torch.tensor([loss for row in rows for _, loss in said[row["id"]]])
        same = len(here) == len(there) and bool((here - there).abs().max() < tolerance)
        assert same, f"{out.name}: other tokens were asked for than here"
