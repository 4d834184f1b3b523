"""Train a small GPT on the characters of the license, and continue a text, with PyTorch."""

import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

CONTEXT, WIDTH, BATCH = 64, 64, 16
text = (Path(__file__).parents[2] / "LICENSE").read_text()
letters = sorted(set(text))
tokens = torch.tensor([letters.index(letter) for letter in text])


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(len(letters), WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, len(letters))
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(CONTEXT))

    def forward(self, x):
        x = self.letters(x) + self.positions.weight
        return self.head(self.blocks(x, self.mask, is_causal=True)).flatten(0, 1)


torch.manual_seed(0)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
rng = np.random.default_rng(0)
loss = 0.0
start = time.perf_counter()
for epoch in range(6):
    losses = []
    for _ in range(len(text) // CONTEXT // 4):
        rows = tokens[torch.tensor(rng.integers(0, len(text) - CONTEXT, (BATCH, 1)) + np.arange(CONTEXT + 1))]
        optimizer.zero_grad()
        step_loss = F.cross_entropy(model(rows[:, :-1]), rows[:, 1:].flatten())
        step_loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(step_loss.item())
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    loss = np.mean(losses)
    print(f"epoch {epoch + 1}: loss {loss:.3f}")

model.eval()
ids = tokens[:CONTEXT]
with torch.no_grad():
    for _ in range(100):
        scores = model(ids[None, -CONTEXT:])[-1]
        ids = torch.cat([ids, torch.multinomial(F.softmax(scores / 0.8, 0), 1)])
print("".join(letters[i] for i in ids.tolist()))
print(f"loss {loss:.3f}")
