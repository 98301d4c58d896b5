"""Label embeddings in PyTorch, for benches/sets.py: queries of their own for `[CLS]` in every layer, and a loss that tells them apart."""

import math

import torch

from classifier import OwnAttention


class Model(OwnAttention):
    """A BERT that classifies its pooler's output; labels attend in every layer, as Wang et al. (2020) write it, equations 6 to 10."""

    def __init__(self, folder, width, dropout, weight):
        super().__init__(folder, width, dropout)
        self.weight = weight
        self.labels = torch.nn.Parameter(torch.empty(width, self.encoder.config.hidden_size))
        torch.nn.init.normal_(self.labels, std=self.encoder.config.initializer_range)

    def layer(self, layer, states, padding):
        own = layer.attention.self
        by_head = lambda of: of.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
        query, key, value, label_queries = (by_head(of) for of in (own.query(states), own.key(states), own.value(states), own.query(self.labels)))
        scale = 1.0 / math.sqrt(query.shape[-1])
        scores = query @ key.transpose(-1, -2) * scale
        first = torch.cat([scores[:, :, :1], label_queries @ key.transpose(-1, -2) * scale], 2).max(2, keepdim=True).values
        # What `[CLS]` says of itself stays as it is.
        first = torch.cat([scores[:, :, :1, :1], first[..., 1:]], 3)
        shares = (torch.cat([first, scores[:, :, 1:]], 2) + padding).softmax(-1)
        shares = torch.nn.functional.dropout(shares, self.attention_dropout, self.training)
        states = layer.attention.output((shares @ value).transpose(1, 2).flatten(2), states)
        return layer.output(layer.intermediate(states), states)

    def forward(self, batch):
        states = self.encoder.embeddings(input_ids=batch["input_ids"], token_type_ids=batch["token_type_ids"])
        padding = (1.0 - batch["attention_mask"].float())[:, None, None] * torch.finfo(states.dtype).min
        for layer in self.encoder.encoder.layer:
            states = self.layer(layer, states, padding)
        return self.linear(self.dropout(self.encoder.pooler(states)))

    def label_loss(self):
        """Each label's embedding is to be classified as itself (equations 9 and 10)."""
        said = self.linear(self.encoder.pooler(self.labels[:, None]))
        return self.weight * torch.nn.functional.cross_entropy(said, torch.arange(len(said)), reduction="sum")
