"""Ordinary training loops over compiled models against the same loops in torch: forward, loss, backward, clip, step."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.sweep import find_library

Step = Callable[[], float]
"""One step of a loop; the loss."""


def perceptron(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return a perceptron 784-128-10, batch 64, Adam."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    return model, [_numbers(64, 784), _labels(10, 64)], nn.functional.cross_entropy, lib.optim.Adam


def digits(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return a convolutional network for digits, batch 32, SGD with momentum."""
    nn = lib.nn
    features = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()]
    model = nn.Sequential(*features, nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 10))

    def optimizer(params: Any, lr: float) -> Any:
        return lib.optim.SGD(params, lr=lr, momentum=0.9)

    return model, [_numbers(32, 1, 28, 28), _labels(10, 32)], nn.functional.cross_entropy, optimizer


def tagger(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return an LSTM that gives each word of 16 sentences of 20 a tag, Adam."""
    nn = lib.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(1000, 64)
            self.lstm = nn.LSTM(64, 64, batch_first=True)
            self.head = nn.Linear(64, 12)

        def forward(self, words: Any) -> Any:
            return self.head(self.lstm(self.table(words))[0])

    def loss(output: Any, tags: Any) -> Any:
        return nn.functional.cross_entropy(output.view(-1, 12), tags.view(-1))

    return Tagger(), [_labels(1000, 16, 20), _labels(12, 16, 20)], loss, lib.optim.Adam


def variational(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return a variational autoencoder 784-256-16, batch 64, Adam; its noise is an input."""
    nn = lib.nn

    class Autoencoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 32))
            self.decoder = nn.Sequential(nn.Linear(16, 256), nn.ReLU(), nn.Linear(256, 784))

        def forward(self, x: Any) -> Any:
            mean, log = self.encoder(x).chunk(2, 1)
            return self.decoder(mean + (log * 0.5).exp()), mean, log

    def loss(output: Any, x: Any) -> Any:
        image, mean, log = output
        likelihood = nn.functional.binary_cross_entropy_with_logits(image, x, reduction="sum")
        return (likelihood - 0.5 * (1 + log - mean * mean - log.exp()).sum()) / 64

    x = np.random.default_rng(0).random((64, 784), np.float32)
    return Autoencoder(), [x, x], loss, lib.optim.Adam


def autoencoder(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return an autoencoder 784-256-32-256-784, batch 64, RMSprop."""
    nn = lib.nn
    inner = [nn.Linear(784, 256), nn.Tanh(), nn.Linear(256, 32), nn.Tanh(), nn.Linear(32, 256), nn.Tanh()]
    x = _numbers(64, 784)
    return nn.Sequential(*inner, nn.Linear(256, 784)), [x, x], nn.functional.mse_loss, lib.optim.RMSprop


def transformer(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return a language model of two blocks, width 64, 8 texts of 32 tokens, AdamW."""
    nn = lib.nn
    functional = nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(64), nn.LayerNorm(64)
            self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
            self.mlp = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            heads = [p.view(batch, length, 4, 16).transpose(1, 2) for p in self.qkv(self.first(x)).chunk(3, -1)]
            attended = functional.scaled_dot_product_attention(*heads, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.second(x))

    model = nn.Sequential(nn.Embedding(256, 64), Block(), Block(), nn.LayerNorm(64), nn.Linear(64, 256))

    def loss(output: Any, tokens: Any) -> Any:
        return functional.cross_entropy(output.view(-1, 256), tokens.view(-1))

    return model, [_labels(256, 8, 32), _labels(256, 8, 32)], loss, lib.optim.AdamW


LOOPS = {f.__name__: f for f in (perceptron, digits, tagger, variational, autoencoder, transformer)}


def _numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def _labels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, count, shape)


def make(name: str, lib: Any, compiled: bool, loops: Mapping[str, Callable[[Any], Any]] = LOOPS) -> Step:
    """Return a loop with the gradients' norm limited to 1; the model is compiled or not."""
    lib.manual_seed(0)
    model, arrays, loss_of, optimizer_of = loops[name](lib)
    run = lib.compile(model) if compiled else model
    optimizer = optimizer_of(model.parameters(), lr=1e-3)
    x, y = [lib.tensor(a) for a in arrays]
    params = list(model.parameters())

    def step() -> float:
        loss = loss_of(run(x), y)
        optimizer.zero_grad()
        loss.backward()
        lib.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()
        return loss.item()

    return step


def measure(steps: dict[str, Step], rounds: int, calls: int) -> dict[str, float]:
    """Return seconds of a step: medians over rounds that alternate."""
    seconds_by: dict[str, list[float]] = {who: [] for who in steps}
    for step in steps.values():
        for _ in range(10):
            step()
    for _ in range(rounds):
        for who, step in steps.items():
            start = time.perf_counter()
            for _ in range(calls):
                step()
            seconds_by[who].append((time.perf_counter() - start) / calls)
    return {who: statistics.median(times) for who, times in seconds_by.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line for each loop: microseconds of a step of graphc and torch, and how many times as fast graphc is."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loop", description=__doc__)
    parser.add_argument("loops", nargs="*", metavar="LOOP", help=f"loops, among {', '.join(LOOPS)}")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20, help="number of steps per round")
    parser.add_argument("--eager", action="store_true", help="measure graphc in eager mode, too")
    options = parser.parse_args(argv)
    unknown = set(options.loops) - set(LOOPS)
    if unknown:
        parser.error(f"no such loop: {', '.join(sorted(unknown))}")
    torch: ModuleType | None = find_library("torch")
    for name in options.loops or LOOPS:
        steps = {"graphc": make(name, graphc, True)}
        if options.eager:
            steps["eager"] = make(name, graphc, False)
        if torch is not None:
            steps["torch"] = make(name, torch, False)
        times = measure(steps, options.rounds, options.calls)
        shown = "  ".join(f"{who} {seconds * 1e6:9.1f} us" for who, seconds in times.items())
        ratio = f"  {times['torch'] / times['graphc']:5.2f} times torch" if "torch" in times else ""
        print(f"{name:12} {shown}{ratio}", flush=True)


if __name__ == "__main__":
    main()
