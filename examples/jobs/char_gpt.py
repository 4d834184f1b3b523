"""Train a small GPT on the characters of the license, and continue a text."""

import time
from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

CONTEXT, WIDTH, BATCH = 64, 64, 16
text = (Path(__file__).parents[2] / "LICENSE").read_text()
letters = sorted(set(text))
tokens = gc.tensor([letters.index(letter) for letter in text])


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


gc.manual_seed(0)
model = GPT()
step = gc.compile_step(model, F.cross_entropy, gc.optim.AdamW(model.parameters(), lr=3e-3), clip_norm=1.0)
rng = np.random.default_rng(0)
loss = 0.0
start = time.perf_counter()
for epoch in range(6):
    losses = []
    for _ in range(len(text) // CONTEXT // 4):
        rows = tokens[gc.tensor(rng.integers(0, len(text) - CONTEXT, (BATCH, 1)) + np.arange(CONTEXT + 1))]
        losses.append(step(rows[:, :-1], rows[:, 1:].flatten()).item())
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    loss = np.mean(losses)
    print(f"epoch {epoch + 1}: loss {loss:.3f}")

predict = gc.compile(model.eval())
ids = tokens[:CONTEXT]
with gc.no_grad():
    for _ in range(100):
        scores = predict(ids[None, -CONTEXT:])[-1]
        ids = gc.cat([ids, gc.multinomial(F.softmax(scores / 0.8, 0), 1)])
print("".join(letters[i] for i in ids.tolist()))
print(f"loss {loss:.3f}")
