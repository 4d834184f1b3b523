"""Libraries that tests of the C++, Rust and Go bindings call, and files with the inputs and outputs of a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.c_library.build import Library, build_library
from graphc.nn import functional as F
from tests.c_library.nets import NETS
from tests.c_library.test_build import load


class Types(nn.Module):
    """One input and output of each type, with names that are keywords or variables of the bindings."""

    def forward(
        self, type: Any, len: Any, func: Any, sizes: Any, need: Any, model: Any, match: Any, error: Any, range: Any
    ) -> Any:
        doubled = [x + x for x in (type, len, func, sizes, need, model, match, error)]
        return *doubled, ~range


class Repeats(nn.Module):
    """Rows repeated as often as a number says."""

    def forward(self, x: Any, count: int) -> Any:
        return x.reshape(1, 4).expand(count, 4) * 2


class Pooled(nn.Module):
    """Means of pairs, whose length is half of the input's, and an input of fixed size."""

    def forward(self, x: Any, scale: Any) -> Any:
        return F.avg_pool1d(x, 2) * scale, scale + 1


def _learner() -> Any:
    graphc.manual_seed(3)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    step = graphc.compile_step(net, F.cross_entropy, graphc.optim.SGD(net.parameters(), lr=0.1))
    x, y = np.random.default_rng(0).standard_normal((16, 4)).astype("f4"), np.arange(16) % 2
    return {"infer": graphc.Entry(net, x, train=False), "train_step": graphc.Entry(step, x, y)}


def _types() -> list[np.ndarray]:
    integers = [np.array([3, -5 if np.dtype(d).kind == "i" else 9], d) for d in ("i1", "i2", "u2", "i4", "u4", "i8")]
    return [np.array([1.5, -2.0]), np.array([0.5, 3.0], np.float16), *integers, np.array([True, False])]


@dataclass(frozen=True)
class BindingCase:
    """Model of a library, and the arrays of one call."""

    model: Callable[[], Any]
    examples: Sequence[Any]
    entry: str = "run"
    dims: Any = None
    named: tuple[tuple[str, int], ...] = ()
    """Sizes that the loader takes by name."""
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def arrays(self) -> list[np.ndarray]:
        """Return the arrays of the call."""
        return [a for a in self.examples if isinstance(a, np.ndarray)]


def _pooled_dims() -> Any:
    return [(None, None, graphc.Dim("length", min=2, max=100)), None]


_POOLED = [np.random.default_rng(1).standard_normal((2, 3, 9)).astype("f4"), np.ones(1, "f4")]
CASES = {
    "policy": BindingCase(NETS["policy"].model, NETS["policy"].calls[0]),
    "sizes": BindingCase(NETS["sizes"].model, NETS["sizes"].calls[0], dims=NETS["sizes"].dims),
    "decoder": BindingCase(NETS["decoder"].model, NETS["decoder"].calls[0], options=(("weights", "beside"),)),
    "wide": BindingCase(NETS["wide"].model, NETS["wide"].calls[0], options=(("threads", True),)),
    "types": BindingCase(Types, _types()),
    "pooled": BindingCase(Pooled, _POOLED, dims=_pooled_dims()),
    "repeats": BindingCase(
        Repeats, [np.arange(4, dtype="f4"), 3], dims=[(), graphc.Dim("count", max=100)], named=(("count", 5),)
    ),
    "learner": BindingCase(_learner, (), entry="infer"),
}


def case_library(name: str, emit: Sequence[str], folder: Path) -> Library:
    """Build the library of a case in a folder."""
    case = CASES[name]
    path = folder / f"{name}.so"
    kinds = ("so", "h", "py", *emit)
    return build_library(case.model(), *case.examples, path=path, emit=kinds, dims=case.dims, **dict(case.options))


def awkward_library(stem: str, emit: Sequence[str], folder: Path) -> Library:
    """Build a library whose entries, dimensions, inputs and outputs have names that the languages use themselves."""

    def odd(self: Any, Ok: Any) -> dict[str, Any]:
        return {"a\n*/ b": self[:, 1:] + Ok, "status": Ok.sum(), "a\nb": self[:, ::2]}

    def flat(model: Any, len: Any) -> Any:
        return model.reshape(-1), len + 1

    def typed(float32: Any, RunSizes: Any) -> Any:
        return float32[:, 1:] * 2, float32[:, ::2], RunSizes

    two: Any = graphc.Dim("type", min=2, max=50)
    pair = graphc.rand(2, 9), graphc.rand(2, 8)
    cube = tuple(map(graphc.Dim, ("self", "sizes", "len")))
    entries = {
        "run": graphc.Entry(odd, *pair, dims=[(None, 2 * two + 1), (None, 2 * two)]),
        "run_sizes": graphc.Entry(flat, graphc.rand(2, 3, 4), graphc.rand(()), dims=[cube, ()]),
        **{name: graphc.Entry(odd, *pair) for name in ("run_into", "status", "new", "close", "net")},
        **{name: graphc.Entry(typed, *pair, dims=[(None, two), None]) for name in ("floor_of", "Error", "Shape")},
    }
    return build_library(entries, path=folder / f"{stem}.so", emit=("so", "h", *emit))


def write_inputs(name: str, folder: Path) -> list[np.ndarray]:
    """Write the arrays of a case to ``in0``, ``in1``, ... and return them."""
    arrays = CASES[name].arrays or [np.random.default_rng(0).standard_normal((16, 4)).astype("f4"), np.arange(16) % 2]
    for number, array in enumerate(arrays):
        (folder / f"in{number}").write_bytes(array.tobytes())
    return arrays


def loader_results(name: str, library: Library, arrays: Sequence[np.ndarray]) -> list[bytes]:
    """Return the bytes of the results of a call by the Python loader."""
    case = CASES[name]
    count = 1 if case.entry == "infer" else len(arrays)
    results = getattr(load(library).Model(library.files["so"].parent), case.entry)(*arrays[:count], **dict(case.named))
    return [np.asarray(r).tobytes() for r in (results if isinstance(results, tuple) else (results,))]


def assert_same_bits(name: str, library: Library, folder: Path, run: Callable[[], Any]) -> None:
    """Check that a program which reads ``in0`` ... and writes ``out0`` ... gives the bits of the Python loader."""
    expected = loader_results(name, library, write_inputs(name, folder))
    run()
    assert [(folder / f"out{number}").read_bytes() for number in range(len(expected))] == expected


all_cases = pytest.mark.parametrize("name", CASES)
