"""Products of matrices over many shapes against numpy and torch, as a part of the machine's peak."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import graphc
from benchmarks.harness.sweep import (
    Call,
    Result,
    copy_seconds,
    fill,
    find_library,
    floor_seconds,
    measure,
    native_call,
    parse,
    report,
    restart_on_one_thread,
    tell,
    torch_on_one_thread,
)
from graphc.compiler.stages import Stages

PEERS = ("numpy", "torch")


@dataclass(frozen=True)
class Product:
    """``a[m, k] @ b[k, n]``; ``b`` is given as its transpose where ``transposed``, as weights of linear layers are."""

    m: int
    k: int
    n: int
    transposed: bool = False
    double: bool = False
    constant: bool = False
    """Whether graphc knows ``b`` when it compiles, as the weights of a loaded model."""

    @property
    def name(self) -> str:
        """Return a name such as ``64x1024x512 t f64``."""
        marks = [text for text, on in (("t", self.transposed), ("f64", self.double), ("w", self.constant)) if on]
        return " ".join([f"{self.m}x{self.k}x{self.n}", *marks])

    def draw(self) -> tuple[np.ndarray, np.ndarray]:
        """Return random operands."""
        dtype = np.float64 if self.double else np.float32
        return fill((self.m, self.k), 1, dtype), fill(
            (self.n, self.k) if self.transposed else (self.k, self.n), 2, dtype
        )


_POWERS = [Product(s, s, s) for s in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)]
_ODD = [
    Product(*s)
    for s in (
        (3, 5, 7), (17, 31, 13), (37, 41, 43), (97, 101, 103), (127, 127, 127), (129, 129, 129), (251, 257, 263),
        (509, 503, 499), (1000, 1000, 1000), (333, 777, 555),
    )
]  # fmt: skip
_FEW_ROWS = [Product(m, k, n, True) for m in (1, 2, 4, 8, 16) for k, n in ((1024, 1024), (4096, 1024), (384, 1536))]
_SKINNY = [
    Product(*s)
    for s in (
        (4096, 64, 64), (64, 4096, 64), (64, 64, 4096), (8192, 16, 16), (16, 8192, 16), (2048, 2048, 8),
        (8, 2048, 2048), (3136, 64, 64), (3136, 576, 64), (196, 1024, 256), (49, 2304, 512),
        (12544, 147, 64), (1024, 8, 1024),
    )
]  # fmt: skip
_MODELS = [
    Product(m, k, n, True, constant=True)
    for m, k, n in (
        (64, 1024, 1024), (64, 1024, 1000), (1, 1024, 1024), (128, 384, 384), (128, 384, 1536), (128, 1536, 384),
        (1024, 384, 1536), (1024, 256, 1024), (256, 17, 64), (1, 17, 64), (64, 320, 50),
    )
]  # fmt: skip
_DOUBLE = [Product(*s, double=True) for s in ((64, 64, 64), (256, 256, 256), (512, 512, 512), (1, 1024, 1024))]
CASES = {p.name: p for p in (*_POWERS, *_ODD, *_FEW_ROWS, *_SKINNY, *_MODELS, *_DOUBLE)}


def own(product: Product) -> Callable[[], Call]:
    """Return graphc's contender, as a loaded program with an array for the result."""

    def make() -> Call:
        a, b = product.draw()
        weight = graphc.tensor(b)
        if product.constant:
            stages = Stages(graphc.trace(lambda x: x @ weight.t(), graphc.tensor(a)))
            inputs = [a]
        else:
            rule = (lambda x, y: x @ y.t()) if product.transposed else (lambda x, y: x @ y)
            stages = Stages(graphc.trace(rule, graphc.tensor(a), weight))
            inputs = [a, b]
        return native_call(stages, inputs)

    return make


def peer(product: Product, name: str) -> Callable[[], Call]:
    """Return the contender of numpy or torch, with an array for the result."""

    def make() -> Call:
        a, b = product.draw()
        if name == "numpy":
            b = b.T if product.transposed else b
            out = a @ b
            return lambda: np.matmul(a, b, out=out)
        torch = torch_on_one_thread()
        if torch is None:
            raise ImportError("torch is not installed")
        x, y = torch.from_numpy(a), torch.from_numpy(b)
        y = y.t() if product.transposed else y
        result = x @ y
        return lambda: torch.mm(x, y, out=result)

    return make


def run_case(product: Product, peers: Sequence[str], rounds: int, seconds: float) -> Result:
    """Return one shape, measured."""
    flops = 2 * product.m * product.k * product.n
    size = 8 if product.double else 4
    nbytes = size * (product.m * product.k + product.k * product.n + product.m * product.n)
    result = Result(product.name, {"flops": flops, "bytes": nbytes})
    makers = {"graphc": own(product), **{name: peer(product, name) for name in peers}}
    measure(result, makers, rounds, seconds)
    ms = result.ms("graphc")
    if ms is not None:
        floor = floor_seconds(nbytes, flops, product.double)
        bound = "memory" if copy_seconds(nbytes) >= floor else "peak"
        result.facts |= {"GFLOP/s": f"{flops / ms / 1e6:.1f}", "of floor": f"{1e3 * floor / ms:.0%}", "bound": bound}
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    options = parse(argv, __doc__ or "", list(CASES), PEERS)
    options.peers = [p for p in options.peers if p == "numpy" or find_library(p)]
    results = []
    for name in options.cases:
        tell(name)
        results.append(run_case(CASES[name], options.peers, options.rounds, options.seconds))
    report(options, results, ("GFLOP/s", "of floor", "bound"))
    return 0


if __name__ == "__main__":
    restart_on_one_thread("benchmarks.gemm")
    sys.exit(main())
