"""Watch the digit network from the outside: statistics of activations and gradients through hooks, in eager mode."""

from __future__ import annotations

import argparse
from collections import defaultdict

import digits
import numpy as np
from net import Net
from tqdm import tqdm

import graphc as gc
from graphc import nn
from graphc.nn import functional as F

BATCH = 64


class Monitor:
    """Collects one figure per call and module; a hook returns nothing, so the network runs as without it."""

    def __init__(self, net: nn.Module):
        self.activations: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
        self.gradients: dict[str, list[float]] = defaultdict(list)
        self.handles = []
        for name, module in net.named_modules():
            if name:
                self.handles.append(module.register_forward_hook(self.make_forward_hook(name)))
                self.handles.append(module.register_full_backward_hook(self.make_backward_hook(name)))

    def make_forward_hook(self, name: str):
        def look(module, args, output):
            values = output.detach().numpy()
            self.activations[name].append((values.mean(), values.std(), np.mean(values <= 0)))

        return look

    def make_backward_hook(self, name: str):
        def look(module, grad_input, grad_output):
            self.gradients[name].append(float(np.linalg.norm(grad_output[0].numpy())))

        return look

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20, help="number of eager training steps to watch")
    args = parser.parse_args(argv)
    images, labels, _, _ = digits.load(None)
    gc.manual_seed(0)
    net = Net().train()
    optimizer = gc.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    monitor = Monitor(net)
    generator = np.random.default_rng(0)
    for _ in tqdm(range(args.steps), desc="step"):
        rows = generator.choice(len(labels), BATCH, replace=False)
        optimizer.zero_grad()
        F.nll_loss(net(gc.tensor(images[rows])), gc.tensor(labels[rows])).backward()
        optimizer.step()
    monitor.remove()
    net(gc.tensor(images[:BATCH]))

    print(f"{'module':12} {'calls':>5} {'mean':>8} {'std':>8} {'<= 0':>6} {'|gradient|':>11}")
    for name, rows in monitor.activations.items():
        mean, deviation, dead = np.mean(rows, axis=0)
        gradient = np.mean(monitor.gradients[name])
        print(f"{name:12} {len(rows):5} {mean:8.3f} {deviation:8.3f} {dead:6.1%} {gradient:11.4f}")


if __name__ == "__main__":
    digits.run(main)
