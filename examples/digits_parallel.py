"""Train the network on handwritten digits in several processes, each with a part of every batch.

``mpiexec -n 2 python examples/digits_parallel.py``; without ``mpiexec`` it is one process, which learns the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import digits
import numpy as np
from net import Net

import graphc as gc
import graphc.distributed as dist
from graphc.data import DataLoader, DistributedSampler, TensorDataset
from graphc.nn import functional as F
from graphc.nn.parallel import DistributedDataParallel

BATCH = 64  # of all processes together


def train(model: DistributedDataParallel, images: digits.Images, labels: digits.Labels, epochs: int) -> None:
    data = TensorDataset(gc.tensor(images), gc.tensor(labels))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, BATCH // dist.size(), sampler=sampler, drop_last=True)
    step = gc.compile_step(model.train(), F.nll_loss, gc.optim.Adam(model.parameters(), lr=1e-3))
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        losses = [step(x, y) for x, y in loader]
        loss = dist.reduced(gc.stack(losses).mean(), "mean")
        if dist.rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss.item():.4f}", flush=True)


def accuracy(net: Net, images: digits.Images, labels: digits.Labels) -> float:
    """Return the accuracy on all images; each process classifies its shard of them."""
    with gc.no_grad():
        predicted = gc.compile(net.eval())(gc.tensor(images[dist.rank() :: dist.size()])).numpy().argmax(axis=1)
    right = int((predicted == labels[dist.rank() :: dist.size()]).sum())
    return dist.reduced(gc.tensor(right)).item() / len(labels)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of MNIST's IDX files; default: scikit-learn's digits")
    parser.add_argument("--epochs", type=int, help="number of epochs (default: 20, or 3 with --data)")
    parser.add_argument("--out", type=Path, help="write the weights to this file")
    args = parser.parse_args(argv)
    dist.init()
    images, labels, test_images, test_labels = digits.load(args.data)
    gc.manual_seed(0)
    net = Net()
    train(DistributedDataParallel(net), images, labels, args.epochs or (3 if args.data else 20))
    share = accuracy(net, test_images, test_labels)
    if dist.rank() == 0:
        print(f"{dist.size()} processes, held-out accuracy: {share:.2%} of {len(test_labels)}", flush=True)
        if args.out is not None:
            np.savez(args.out, **{name: value.numpy() for name, value in net.state_dict().items()})


if __name__ == "__main__":
    digits.run(main)
