"""Train a perceptron to tell two spirals apart: the graph as text, eager and compiled training, the exported model."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F


def make_spirals(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return `count` points in the plane, float32 [count, 2], and which spiral each lies on, int64 [count]."""
    generator = np.random.default_rng(seed)
    label = generator.integers(0, 2, count)
    turn = 3 * np.pi * np.sqrt(generator.random(count))
    angle = turn + np.pi * label
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1) * turn[:, None] / 10
    return (points + 0.02 * generator.standard_normal((count, 2))).astype(np.float32), label


def make_model() -> nn.Sequential:
    gc.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))


def make_eager_step(model: nn.Module, optimizer: gc.optim.Optimizer):
    def step(x: gc.Tensor, y: gc.Tensor) -> gc.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def train(step, steps: int, name: str) -> None:
    """Run `step` on fresh batches, and print the last loss and the time."""
    loss = float("nan")
    start = time.perf_counter()
    for index in range(steps):
        x, y = make_spirals(256, seed=index)
        loss = step(gc.tensor(x), gc.tensor(y)).item()
    seconds = time.perf_counter() - start
    print(f"{name}: loss {loss:.4f} after {steps} steps, {1000 * seconds / steps:.2f} ms per step")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for spirals.gcm (default: out)")
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    points, labels = make_spirals(1000, seed=10**6)
    print(gc.trace(make_model(), gc.tensor(points)))

    eager, compiled = make_model(), make_model()
    optimizers = [gc.optim.Adam(model.parameters(), lr=3e-3) for model in (eager, compiled)]
    train(make_eager_step(eager, optimizers[0]), max(1, args.steps // 10), "eager")
    train(gc.compile_step(compiled, F.cross_entropy, optimizers[1]), args.steps, "compiled")

    gc.export(compiled.eval(), gc.tensor(points), path=args.out / "spirals.gcm")
    run = gc.load(args.out / "spirals.gcm")
    print(f"held-out accuracy of the exported model: {np.mean(run(points).argmax(axis=1) == labels):.2%}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("interrupted") from None
