"""Classify time series of different lengths with an LSTM on packed sequences."""

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

random = np.random.default_rng(0)
PERIODS = (4, 7, 12)


def draw(label):
    steps = np.arange(random.integers(12, 41)) + random.uniform(0, 12)
    wave = np.sin(2 * np.pi * steps / PERIODS[label]) + 0.3 * random.standard_normal(len(steps))
    return torch.from_numpy(wave.astype(np.float32)[:, None]), label


def collate(samples):
    series, labels = zip(*samples, strict=True)
    return pad_sequence(series, batch_first=True), torch.tensor([len(s) for s in series]), torch.tensor(labels)


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
torch.manual_seed(0)
net = Classifier()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    start, total = time.perf_counter(), 0.0
    for x, lengths, y in train:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x, lengths), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first epoch: {time.perf_counter() - start:.2f} s")
    print(f"epoch {epoch + 1}: loss {total / len(train):.4f}")

x, lengths, labels = test
with torch.no_grad():
    print(f"accuracy {(net(x, lengths).argmax(1) == labels).float().mean().item():.3f}")
