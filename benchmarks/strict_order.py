"""Cost of strict order: compiled nets with it and without it, in turns: ``python -m benchmarks.strict_order``."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tqdm import tqdm

import graphc as gc
from benchmarks.harness.process import pin
from benchmarks.harness.results import OWN, Result, format_ms, format_table
from benchmarks.harness.timing import Call, alternate, measure_calls, no_grad
from graphc import nn
from graphc.nn import functional as F

STRICT = "strict"


class Digits(nn.Module):
    """Convolutional net for digits of 28 x 28 pixels."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(16 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10)),
        )

    def forward(self, x: Any) -> Any:
        """Return log probabilities."""
        return F.log_softmax(self.net(x), dim=1)


class Block(nn.Module):
    """Transformer block of 128 features and 4 heads."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, norm_first=True)

    def forward(self, x: Any) -> Any:
        """Return the encoded tokens."""
        return self.layer(x)


class Outputs(nn.Module):
    """LSTM whose states are not results."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(64, 128, batch_first=True)

    def forward(self, x: Any) -> Any:
        """Return the outputs of all steps."""
        return self.cell(x)[0]


class Case(NamedTuple):
    """A function to compile, and the shape of its input."""

    build: Callable[[], Any]
    shape: tuple[int, ...]


def _policy() -> nn.Module:
    return nn.Sequential(nn.Linear(17, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 6))


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10))


def _rows(x: Any) -> Any:
    return F.softmax(F.layer_norm(x, (1024,)), -1)


def _sum(x: Any) -> Any:
    return x.sum()


CASES = {
    "RL policy, 17-64-64-6, batch 1": Case(_policy, (1, 17)),
    "MLP, 784-512-10, batch 64": Case(_perceptron, (64, 784)),
    "digit CNN, batch 64": Case(Digits, (64, 1, 28, 28)),
    "LSTM, 64 steps, batch 1": Case(Outputs, (1, 64, 64)),
    "transformer block, 128 tokens of 128": Case(Block, (1, 128, 128)),
    "layer norm + softmax, 1024x1024": Case(lambda: _rows, (1024, 1024)),
    "sum of 1,048,576": Case(lambda: _sum, (1 << 20,)),
}


def main(arguments: list[str] | None = None) -> int:
    """Time the cases and print a table, or JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strict_order", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="measure the cases whose name contains TEXT")
    parser.add_argument("--rounds", type=int, default=15, help="alternating rounds (default: 15)")
    parser.add_argument("--seconds", type=float, default=0.1, help="seconds of a round of one kind (default: 0.1)")
    parser.add_argument("--target", default="host", help="target of both kinds (default: host)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    pin(1)
    cases = {name: case for name, case in CASES.items() if options.only in name}
    results = [
        _measure(name, case, options.target, options.rounds, options.seconds)
        for name, case in tqdm(cases.items(), disable=not sys.stderr.isatty())
    ]
    if options.json:
        print(json.dumps([{**r.as_json(), "cost": _cost(r)} for r in results], indent=2))
        return 0
    rows = [(r.name, format_ms(r.ms(OWN) or 0), format_ms(r.ms(STRICT) or 0), f"{_cost(r):.2f}") for r in results]
    print(format_table(("model", "fast", STRICT, "strict / fast"), rows))
    if results:
        print(f"\ngeometric mean {math.exp(statistics.fmean(math.log(_cost(r)) for r in results)):.2f}")
    return 0


def _measure(name: str, case: Case, target: str, rounds: int, seconds: float) -> Result:
    gc.manual_seed(0)
    model, x = case.build(), gc.randn(*case.shape)
    if isinstance(model, nn.Module):
        model.eval()
    calls: dict[str, Call] = {}
    for kind in (OWN, STRICT):
        calls[kind] = no_grad(gc, gc.compile(model, target=target, strict_order=kind == STRICT), x)
        calls[kind]()
    result = Result(name)
    alternate(result, list(calls), rounds, lambda kind: measure_calls(calls[kind], seconds, time.thread_time))
    return result


def _cost(result: Result) -> float:
    """Return the median ratio of the rounds: strict by fast."""
    return result.over(STRICT) or math.nan


if __name__ == "__main__":
    sys.exit(main())
