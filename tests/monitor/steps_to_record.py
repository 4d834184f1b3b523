"""Training steps that tests record here and replay in another process."""

from __future__ import annotations

import sys

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

KINDS = ("eager", "function", "step", "loop")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.drop = nn.Dropout(0.3)
        self.last = nn.Linear(4 * 36, 3)

    def forward(self, x):
        return self.last(self.drop(F.relu(self.norm(self.conv(x))).flatten(1)))


def make(kind):
    """A step of a kind, its model and its optimizer, and a batch."""
    net = Net()
    optimizer = gc.optim.AdamW(net.parameters(), lr=0.01)
    loss_of = nn.CrossEntropyLoss()
    model = gc.compile(net) if kind == "loop" else net

    def train(x, y):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    step = {
        "eager": lambda: train,
        "loop": lambda: train,
        "function": lambda: gc.compile(train),
        "step": lambda: gc.compile_step(net, loss_of, optimizer, clip_norm=1.0, accumulate=2),
    }[kind]()
    return step, net, optimizer, (gc.randn(5, 1, 8, 8), gc.tensor([0, 1, 2, 0, 1]))


def main(folder):
    """Replays the recordings of a folder."""
    for kind in KINDS:
        step = make(kind)[0]
        found = gc.replay(f"{folder}/{kind}.gcr", step)
        assert found.is_equal and found and len(found.values) > 40, f"{kind}: {found}"
        assert kind != "eager" or len(found.log.events) > 200
        gc.manual_seed(99)
        assert gc.replay(f"{folder}/{kind}.gcr", step).is_equal, kind


if __name__ == "__main__":
    main(sys.argv[1])
