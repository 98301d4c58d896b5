"""KAM-BERT in PyTorch, for benches/sets.py: attention by maps through a convolution, from the maps that engraft wrote for a benchmark."""

import json
import math

import numpy as np
import pyarrow.parquet as pq
import torch

from classifier import OwnAttention


class Maps:
    """Rows of `maps-NAME/`, by the line of their example in `benchmark-NAME/examples.jsonl`."""

    def __init__(self, folder, told):
        made = json.loads((folder / "made_with.json").read_text())
        if "term" not in told["maps"]:
            # Who attends by no terms has none behind a text either.
            made["files"] = {name: of for name, of in made["files"].items() if not name.startswith("pmi/")}
        assert all(made[key] == told["made_with"][key] for key in ("settings", "files")), f"{folder} are not the maps that the model was trained with"
        rows = [row for file in sorted(folder.glob("train-*.parquet")) for row in pq.read_table(file).to_pylist()]
        assert all(row["chunk"] == 0 for row in rows), f"{folder}: an example has several rows"
        self.kinds, self.rows = told["maps"], {row["document"]: row if "term" in told["maps"] else without_terms(row) for row in rows}

    def square(self, row, kind):
        """A map of a row, token by token."""
        words = len(row["types"])
        cells = np.zeros((words + 1, words + 1), np.float32)  # The last row and column are of tokens without a word.
        of = np.array((row["phrases"] if kind == "phrase" else row["entities"]) + [0])
        if kind == "term":
            first, second = row["term_first"], row["term_second"]
            cells[first, second] = cells[second, first] = row["relevance"]
            np.fill_diagonal(cells[:words, :words], 1.0)
            types = row["types"] + [words]
            cells = cells[np.ix_(types, types)]
        elif kind == "graph":
            for first, second in zip(row["graph_first"], row["graph_second"]):
                cells[np.ix_(of == first, of == second)] = cells[np.ix_(of == second, of == first)] = 1.0
        else:
            cells[(of[:, None] == of) & (of > 0)] = 1.0
        at = np.minimum(row["words"], words)
        return torch.from_numpy(cells[np.ix_(at, at)])

    def batch(self, examples):
        """Tokens and maps of examples; auxiliary terms behind a text, zeros behind these."""
        rows = [self.rows[example["line"]] for example in examples]
        most = max(len(row["input_ids"]) for row in rows)
        count = lambda name: torch.tensor([row[name] for row in rows])
        ids, types = (torch.zeros(len(rows), most, dtype=torch.long) for _ in range(2))
        maps = torch.zeros(len(rows), len(self.kinds), most, most)
        for at, row in enumerate(rows):
            tokens = len(row["input_ids"])
            ids[at, :tokens], types[at, :tokens] = torch.tensor(row["input_ids"]), torch.tensor(row["token_type_ids"])
            for place, kind in enumerate(self.kinds):
                maps[at, place, :tokens, :tokens] = self.square(row, kind)
        return {"input_ids": ids, "token_type_ids": types, "real": count("real"), "valid": count("real") + count("auxiliary"), "maps": maps}


def without_terms(row):
    """A row without its auxiliary terms."""
    return row | {"auxiliary": 0} | {name: row[name][: row["real"]] for name in ("input_ids", "token_type_ids", "words")}


class Model(OwnAttention):
    """A BERT that classifies its pooler's output and attends by maps, equations 1 to 3."""

    def __init__(self, folder, width, dropout, told):
        super().__init__(folder, width, dropout)
        self.told = told
        layers = self.encoder.encoder.layer if told["merge"] == "convolution" else []
        self.convolutions = torch.nn.ModuleList(torch.nn.Conv2d(self.heads + told["maps"], self.heads, 3, padding=1) for _ in layers)
        for convolution in self.convolutions:
            self.begin(convolution)

    def merged(self, number, scores, maps):
        if self.told["merge"] == "mean":
            return (scores + maps.sum(1, keepdim=True)) / (1 + self.told["maps"])
        return self.convolutions[number](torch.cat([scores, maps], 1))

    def forward(self, batch):
        place = torch.arange(batch["input_ids"].shape[1])
        real, valid = (place < batch[name][:, None] for name in ("real", "valid"))
        both = lambda of: (of[:, None, :, None] & of[:, None, None, :]).float()
        scored, kept = both(real if self.told["auxiliary"] == "zero_pad" else valid), both(valid)
        padding = (1.0 - valid.float())[:, None, None] * torch.finfo(torch.float32).min
        begin = self.encoder.embeddings(input_ids=batch["input_ids"], token_type_ids=batch["token_type_ids"])
        states, carried = begin, None
        for number, layer in enumerate(self.encoder.encoder.layer):
            own = layer.attention.self
            query, key, value = (of(states).unflatten(-1, (self.heads, -1)).transpose(1, 2) for of in (own.query, own.key, own.value))
            scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) * scored
            if carried is not None:
                scores = scores + carried
            mixed = self.told["alpha"] * self.merged(number, scores, batch["maps"]) + (1.0 - self.told["alpha"]) * scores
            shares = (mixed + padding).softmax(-1)
            carried = {"post_add": shares * kept, "pre_add": mixed * kept, "none": None}[self.told["skip"]]
            shares = torch.nn.functional.dropout(shares, self.attention_dropout, self.training)
            after = layer.attention.output((shares @ value).transpose(1, 2).flatten(2), states)
            after = layer.output(layer.intermediate(after), after)
            # Auxiliary terms come to each layer as they were.
            states = torch.where(real[:, :, None], after, begin)
        return self.linear(self.dropout(self.encoder.pooler(states)))
