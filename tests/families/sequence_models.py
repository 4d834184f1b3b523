"""Small models of tables and sequences, written once for graphc and PyTorch: ``t`` is the library."""

from __future__ import annotations

from typing import Any


def mlp(t: Any) -> Any:
    """Linear layers with batch norm and dropout."""
    nn = t.nn
    return nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.0), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 3)
    )


def lstm_tagger(t: Any) -> Any:
    """Embedding, a bidirectional LSTM of two layers, one score per token and tag."""
    nn = t.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(11, 6, padding_idx=0)
            self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
            self.tags = nn.Linear(10, 4)

        def forward(self, tokens):
            return self.tags(self.lstm(self.embedding(tokens))[0]).transpose(1, 2)

    return Tagger()


def gru_classifier(t: Any) -> Any:
    """A GRU over features, the last state classified."""
    nn = t.nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.gru = nn.GRU(5, 7, num_layers=2)
            self.norm = nn.LayerNorm(7)
            self.fc = nn.Linear(7, 3)

        def forward(self, x):
            last = self.gru(x)[1]
            return self.fc(self.norm(last[-1]))

    return Classifier()


def bert_encoder(t: Any, width: int = 12) -> Any:
    """BERT (Devlin et al. 2019): three embeddings, post-norm encoder layers with a padding mask, a pooled output."""
    nn = t.nn

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(13, width, padding_idx=0)
            self.positions = nn.Embedding(8, width)
            self.segments = nn.Embedding(2, width)
            self.norm = nn.LayerNorm(width, eps=1e-12)
            layer = nn.TransformerEncoderLayer(width, 3, 24, 0.0, "gelu", batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.pooler = nn.Linear(width, width)
            self.vocabulary = nn.Linear(width, 13, bias=False)
            self.vocabulary.weight = self.words.weight

        def forward(self, tokens, segments):
            x = self.words(tokens) + self.positions(t.arange(tokens.shape[1])) + self.segments(segments)
            x = self.encoder(self.norm(x), src_key_padding_mask=tokens == 0)
            return self.vocabulary(x).transpose(1, 2), t.tanh(self.pooler(x[:, 0]))

    return Bert()


def gpt(t: Any, width: int = 12, heads: int = 3) -> Any:
    """GPT (Radford et al. 2019): causal self-attention written out, pre-norm, tied output."""
    nn, F = t.nn, t.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("mask", t.tril(t.ones(8, 8)).view(1, 1, 8, 8) == 1, persistent=False)

        def forward(self, x):
            batch, length, _ = x.shape
            parts = self.qkv(x).split(width, dim=2)
            q, k, v = (p.view(batch, length, heads, width // heads).transpose(1, 2) for p in parts)
            scores = (q @ k.transpose(-2, -1)) * (width // heads) ** -0.5
            scores = scores.masked_fill(~self.mask[:, :, :length, :length], float("-inf"))
            y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(batch, length, width)
            return self.out(y)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.attention, self.ln2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
            )

        def forward(self, x):
            x = x + self.attention(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(13, width), nn.Embedding(8, width)
            self.blocks = nn.ModuleList([Block() for _ in range(2)])
            self.ln = nn.LayerNorm(width)

        def forward(self, tokens):
            x = self.wte(tokens) + self.wpe(t.arange(tokens.shape[1]))
            for block in self.blocks:
                x = block(x)
            return (self.ln(x) @ self.wte.weight.t()).transpose(1, 2)

    return GPT()
