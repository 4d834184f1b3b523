"""Fine-tune a transformer with low-rank adapters: it learned to sort upwards, and learns to sort downwards."""

import numpy as np

import graphc as gc
from graphc import nn
from graphc.data import DataLoader, TensorDataset
from graphc.nn import functional as F

DIGITS, LENGTH, SIZE = 10, 8, 32
numbers = np.random.default_rng(0).integers(0, DIGITS, (6000, LENGTH))
upwards = np.sort(numbers, 1)
downwards = upwards[:, ::-1].copy()


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


def loss(scores, targets):
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


def train(targets, lr, epochs):
    parameters = [p for p in net.parameters() if p.requires_grad]
    train_data, test_data = (TensorDataset(numbers[rows], targets[rows]) for rows in (slice(5000), slice(5000, None)))
    loader, valid = DataLoader(train_data, 50, shuffle=True), DataLoader(test_data, 500)
    step = gc.compile_step(net, loss, gc.optim.Adam(parameters, lr=lr))
    return gc.fit(step, loader, valid=valid, epochs=epochs, metrics={"accuracy": gc.metrics.Accuracy()})


gc.manual_seed(0)
net = Sorter()
history = train(upwards, 1e-3, 5)
print(f"first epoch: {history[0]['seconds']:.2f} s")
gc.llm.add_lora(net, rank=8, alpha=16, targets=["q_proj", "v_proj", "up", "down"])
print(sum(p.numel() for p in net.parameters() if p.requires_grad), "parameters of adapters")
tuned = train(downwards, 3e-3, 6)
gc.llm.merge_lora(net)
print(f"accuracy upwards {history['valid.accuracy'][-1]:.3f}, downwards {tuned['valid.accuracy'][-1]:.3f}")
