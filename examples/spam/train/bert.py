"""A small BERT with a mean-pooled classifier on top, in PyTorch."""
import math

import torch
from torch import nn

LAYER_NORM_EPS = 1e-12  # BERT's
MASKED = -10000.0       # BERT's; large enough for softmax, and finite in fp16


class Layer(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.heads = heads
        self.size = hidden // heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden) for _ in range(4))
        self.attention_norm = nn.LayerNorm(hidden, eps=LAYER_NORM_EPS)
        self.widen = nn.Linear(hidden, 4 * hidden)
        self.narrow = nn.Linear(4 * hidden, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=LAYER_NORM_EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, bias):
        batch, seq, hidden = x.shape

        def split(t):  # (batch, seq, hidden) -> (batch, heads, seq, size)
            return t.view(batch, seq, self.heads, self.size).transpose(1, 2)
        scores = split(self.query(x)) @ split(self.key(x)).transpose(-1, -2) / math.sqrt(self.size)
        weights = self.dropout(torch.softmax(scores + bias, -1))
        context = (weights @ split(self.value(x))).transpose(1, 2).reshape(batch, seq, hidden)
        x = self.attention_norm(x + self.dropout(self.out(context)))
        wide = nn.functional.gelu(self.widen(x))
        return self.output_norm(x + self.dropout(self.narrow(wide)))


class Classifier(nn.Module):
    def __init__(self, vocab=30522, hidden=128, layers=2, heads=2, positions=512, labels=2,
                 dropout=0.1):
        super().__init__()
        self.word = nn.Embedding(vocab, hidden)
        self.position = nn.Embedding(positions, hidden)
        self.segment = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=LAYER_NORM_EPS)
        self.layers = nn.ModuleList(Layer(hidden, heads, dropout) for _ in range(layers))
        self.labels = nn.Linear(hidden, labels)
        self.dropout = nn.Dropout(dropout)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, input_ids, attention_mask, token_type_ids):
        """all three (batch, seq) int64 -> logits (batch, labels)"""
        seq = input_ids.shape[1]
        x = self.word(input_ids) + self.position.weight[:seq].unsqueeze(0) + self.segment(token_type_ids)
        x = self.dropout(self.norm(x))
        bias = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * MASKED
        for layer in self.layers:
            x = layer(x, bias)
        weights = attention_mask.unsqueeze(-1).to(x.dtype)
        pooled = (x * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return self.labels(self.dropout(pooled))
