"""Classify time series of different lengths with an LSTM on packed sequences."""

import time

import numpy as np

import graphc as gc
from graphc import nn
from graphc.data import DataLoader
from graphc.nn import functional as F
from graphc.nn.utils.rnn import pack_padded_sequence, pad_sequence

random = np.random.default_rng(0)
PERIODS = (4, 7, 12)


def draw(label):
    steps = np.arange(random.integers(12, 41)) + random.uniform(0, 12)
    wave = np.sin(2 * np.pi * steps / PERIODS[label]) + 0.3 * random.standard_normal(len(steps))
    return gc.tensor(wave.astype(np.float32)[:, None]), label


def collate(samples):
    series, labels = zip(*samples, strict=True)
    return pad_sequence(series, batch_first=True), gc.tensor([len(s) for s in series]), gc.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 32, batch_first=True)
        self.head = nn.Linear(32, len(PERIODS))

    def forward(self, x, lengths):
        _, (hidden, _) = self.lstm(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
        return self.head(hidden[-1])


data = [draw(label) for label in random.integers(0, 3, 1000)]
train, test = DataLoader(data[:800], 50, shuffle=True, collate_fn=collate), collate(data[800:])
gc.manual_seed(0)
net = Classifier()
batch, steps = gc.Dim("batch", max=256), gc.Dim("steps", 2, 64)
step = gc.compile_step(
    lambda x, lengths, y: F.cross_entropy(net(x, lengths), y),
    optimizer=gc.optim.Adam(net.parameters(), lr=1e-2),
    dims={"x": (batch, steps, None), "lengths": (batch,), "y": (batch,)},
)
for epoch in range(10):
    start = time.perf_counter()
    losses = [step(*samples).item() for samples in train]
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}")

x, lengths, labels = test
with gc.no_grad():
    print(f"accuracy {(net(x, lengths).argmax(1) == labels).float().mean().item():.3f}")
