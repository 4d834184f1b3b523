"""Fine-tune a transformer with low-rank adapters: it learned to sort upwards, and learns to sort downwards."""

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

DIGITS, LENGTH, SIZE = 10, 8, 32
numbers = torch.from_numpy(np.random.default_rng(0).integers(0, DIGITS, (6000, LENGTH)))
upwards = numbers.sort(1).values
downwards = upwards.flip(1)


class Block(nn.Module):
    def __init__(self, size, heads=4):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size)
        self.out_proj, self.up, self.down = nn.Linear(size, size), nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = (
            p(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        x = x + self.out_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.digits, self.positions = nn.Embedding(DIGITS, SIZE), nn.Embedding(LENGTH, SIZE)
        self.blocks = nn.Sequential(Block(SIZE), Block(SIZE))
        self.head = nn.Linear(SIZE, DIGITS)

    def forward(self, tokens):
        return self.head(self.blocks(self.digits(tokens) + self.positions.weight))


class LoraLinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base, self.scale = base, alpha / rank
        self.a, self.b = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x)) * self.scale

    def merged(self):
        with torch.no_grad():
            self.base.weight += self.b.weight @ self.a.weight * self.scale
        return self.base


def train(targets, lr, epochs):
    parameters = [p for p in net.parameters() if p.requires_grad]
    loader = DataLoader(TensorDataset(numbers[:5000], targets[:5000]), 50, shuffle=True)
    optimizer = torch.optim.Adam(parameters, lr=lr)
    for epoch in range(epochs):
        start = time.perf_counter()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(net(x).flatten(0, 1), y.flatten()).backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (net(numbers[5000:]).argmax(2) == targets[5000:]).float().mean().item()
        if epoch == 0 and targets is upwards:
            print(f"first epoch: {time.perf_counter() - start:.2f} s")
        print(f"epoch {epoch + 1}: accuracy {accuracy:.3f}")
    return accuracy


torch.manual_seed(0)
net = Sorter()
accuracy = train(upwards, 1e-3, 5)
net.requires_grad_(False)
for block in net.blocks:
    for name in ("q_proj", "v_proj", "up", "down"):
        setattr(block, name, LoraLinear(getattr(block, name), 8, 16))
print(sum(p.numel() for p in net.parameters() if p.requires_grad), "parameters of adapters")
tuned = train(downwards, 3e-3, 6)
for block in net.blocks:
    for name in ("q_proj", "v_proj", "up", "down"):
        setattr(block, name, getattr(block, name).merged())
print(f"accuracy upwards {accuracy:.3f}, downwards {tuned:.3f}")
