"""What the models of benches/sets.py have in common."""

import torch
from transformers import AutoModel


class Classifier(torch.nn.Module):
    """An encoder and one linear layer, which begins as the encoder's own weights once did."""

    def __init__(self, folder, width, dropout):
        super().__init__()
        self.encoder = AutoModel.from_pretrained(folder)
        self.dropout = torch.nn.Dropout(dropout)
        self.linear = torch.nn.Linear(self.encoder.config.hidden_size, width)
        self.begin(self.linear)

    def begin(self, layer):
        torch.nn.init.normal_(layer.weight, std=self.encoder.config.initializer_range)
        torch.nn.init.zeros_(layer.bias)


class OwnAttention(Classifier):
    """One whose layers attend in a way of their own, written for BERT."""

    def __init__(self, folder, width, dropout):
        super().__init__(folder, width, dropout)
        config = self.encoder.config
        assert config.model_type == "bert", f"{folder}: tried with BERT, not with {config.model_type}"
        self.heads, self.attention_dropout = config.num_attention_heads, config.attention_probs_dropout_prob
