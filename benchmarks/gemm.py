"""Products of matrices over many shapes against numpy and torch, as a part of the machine's peak."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

import graphc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep, add_floor, fill, limited_torch, native_call
from benchmarks.harness.timing import Call
from graphc.compiler.stages import Stages


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
        dtype = np.float64 if self.double else np.float32
        second = (self.n, self.k) if self.transposed else (self.k, self.n)
        return fill((self.m, self.k), 1, dtype), fill(second, 2, dtype)

    def graphc(self) -> Call:
        """Return graphc's contender, as a loaded program with an array for the result."""
        a, b = self.draw()
        weight = graphc.tensor(b)
        if self.constant:
            return native_call(Stages(graphc.trace(lambda x: x @ weight.t(), graphc.tensor(a))), [a])
        rule = (lambda x, y: x @ y.t()) if self.transposed else (lambda x, y: x @ y)
        return native_call(Stages(graphc.trace(rule, graphc.tensor(a), weight)), [a, b])

    def numpy(self) -> Call:
        a, b = self.draw()
        b = b.T if self.transposed else b
        out = a @ b
        return lambda: np.matmul(a, b, out=out)

    def torch(self) -> Call:
        torch = limited_torch()
        x, y = map(torch.from_numpy, self.draw())
        y = y.t() if self.transposed else y
        result = x @ y
        return lambda: torch.mm(x, y, out=result)


_POWERS = [Product(s, s, s) for s in (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)]
_OTHERS = [
    Product(*s)
    for s in (
        (3, 5, 7), (17, 31, 13), (37, 41, 43), (97, 101, 103), (127, 127, 127), (129, 129, 129), (251, 257, 263),
        (509, 503, 499), (1000, 1000, 1000), (333, 777, 555),
        (4096, 64, 64), (64, 4096, 64), (64, 64, 4096), (8192, 16, 16), (16, 8192, 16), (2048, 2048, 8),
        (8, 2048, 2048), (3136, 64, 64), (3136, 576, 64), (196, 1024, 256), (49, 2304, 512),
        (12544, 147, 64), (1024, 8, 1024),
    )
]  # fmt: skip
_FEW_ROWS = [Product(m, k, n, True) for m in (1, 2, 4, 8, 16) for k, n in ((1024, 1024), (4096, 1024), (384, 1536))]
_MODELS = [
    Product(m, k, n, True, constant=True)
    for m, k, n in (
        (64, 1024, 1024), (64, 1024, 1000), (1, 1024, 1024), (128, 384, 384), (128, 384, 1536), (128, 1536, 384),
        (1024, 384, 1536), (1024, 256, 1024), (256, 17, 64), (1, 17, 64), (64, 320, 50),
    )
]  # fmt: skip
_DOUBLE = [Product(*s, double=True) for s in ((64, 64, 64), (256, 256, 256), (512, 512, 512), (1, 1024, 1024))]


def _finish(product: Product, result: Result) -> None:
    m, k, n = product.m, product.k, product.n
    add_floor(result, (8 if product.double else 4) * (m * k + k * n + m * n), 2 * m * k * n, product.double)


SWEEP = Sweep(
    "benchmarks.gemm",
    __doc__,
    {p.name: p for p in (*_POWERS, *_OTHERS, *_FEW_ROWS, *_MODELS, *_DOUBLE)},
    ("numpy", "torch"),
    columns=("GFLOP/s", "of floor", "bound"),
    finish=_finish,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
