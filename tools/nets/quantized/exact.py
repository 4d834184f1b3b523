"""The net of quantized graphs: codes of compiled code are those of ONNX's evaluator, block by block where they differ.

``python -m tools.nets.quantized --count 2000 --seed 1``. Outcomes of this net alone: ``rounded``: some codes differ by
one unit where ONNX Runtime's differ from the evaluator's too, or where f32 cannot decide between two codes; the detail
names the blocks; ``dropped``: no block fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from graphc.base.errors import GraphcError
from tools.nets import run
from tools.nets.quantized import other_blocks, product_blocks
from tools.nets.quantized.builder import Block, QuantizedBuilder, drawn, names
from tools.nets.quantized.evaluators import compiled, evaluated, runtime, widened
from tools.nets.sized import quiet

ROUNDED, DROPPED = "rounded", "dropped"
STEPS = (*product_blocks.STEPS, *other_blocks.STEPS)
_UNDECIDED = 4e-6
"""Relative error of f32 arithmetic of a block."""
_TOLERANCE = 1e-6
"""Largest relative difference of real numbers."""


class Difference(NamedTuple):
    """Codes of a block that differ from the evaluator's."""

    kind: str
    codes: int
    of: int
    as_runtime: int
    """How many of them ONNX Runtime computes otherwise than the evaluator, too."""
    undecided: int
    """How many others are too near to the middle of two codes for f32."""
    wrong: str
    """First code that neither explains."""

    def __str__(self) -> str:
        return (
            f"{self.kind}: {self.codes} of {self.of} codes, "
            f"{self.as_runtime} as onnxruntime, {self.undecided} undecided"
            f"{'; wrong: ' if self.wrong else ''}{self.wrong}"
        )


def judge(name: str) -> run.Outcome:
    """Draw the graph of a name, and compare its results."""
    return outcome_of(name, judged)


def graph_of(name: str) -> QuantizedBuilder:
    """Draw the graph of a name, a seed and a number: ``1/17``."""
    seed, number = map(int, name.split("/"))
    return drawn(seed, number, STEPS)


def outcome_of(name: str, compare: Callable[[QuantizedBuilder], run.Outcome]) -> run.Outcome:
    """Return the outcome of a comparison of the graph of a name; errors are outcomes too."""
    builder = graph_of(name)
    if not builder.blocks:
        return run.Outcome(DROPPED, "no block fits")
    kinds = " ".join(block.kind.replace(" ", "_") for block in builder.blocks)
    with quiet():
        try:
            return compare(builder)
        except GraphcError as error:
            return run.Outcome(run.REFUSED, f"{type(error).__name__}: {error} [{kinds}]")
        except Exception as error:
            return run.Outcome(run.FAILED, f"{type(error).__name__}: {error} [{kinds}]")


def judged(builder: QuantizedBuilder) -> run.Outcome:
    """Compare the results of a graph."""
    feeds = builder.feeds()
    model = builder.model()
    actual, expected = compiled(model, feeds), evaluated(model, feeds)
    if all(_same(actual[n], expected[n]) for n in expected):
        return run.Outcome(run.EQUAL)
    every = compiled(builder.model(all_results=True), feeds)
    if changed := [n for n in actual if not _same(actual[n], every[n])]:
        return run.Outcome(run.DIFFERENT, f"{changed} differ when other values are results too")
    differences = [d for block in builder.blocks for d in block_differences(builder, block, {**feeds, **every})]
    text = "; ".join(map(str, differences))
    if any(d.wrong for d in differences):
        return run.Outcome(run.DIFFERENT, text)
    return run.Outcome(ROUNDED, text) if differences else run.Outcome(run.DIFFERENT, "the graph but none of its blocks")


def block_differences(builder: QuantizedBuilder, block: Block, values: Mapping[str, np.ndarray]) -> list[Difference]:
    """Compare the results of a block, given the values that it reads, with those of the evaluator."""
    model = builder.part(block)
    feeds = {port.name: values[port.name] for port in model.graph.input}
    expected = evaluated(model, feeds)
    if all(_same(values[n], expected[n]) for n in expected):
        return []
    others = [] if builder.is_exact else [evaluated(widened(model, 1 + e), feeds) for e in (-_UNDECIDED, _UNDECIDED)]
    theirs = runtime(model, feeds)
    return [
        _difference(block.kind, values[n], expected[n], None if theirs is None else theirs[n], [o[n] for o in others])
        for n in expected
        if not _same(values[n], expected[n])
    ]


def _same(actual: np.ndarray, expected: np.ndarray) -> bool:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return False
    if actual.dtype.kind == "f":
        return bool(np.allclose(actual, expected, rtol=_TOLERANCE, atol=0))
    return bool((actual == expected).all())


def _difference(
    kind: str, actual: np.ndarray, expected: np.ndarray, theirs: np.ndarray | None, others: list[np.ndarray]
) -> Difference:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        found = f"{actual.dtype}{list(actual.shape)}, not {expected.dtype}{list(expected.shape)}"
        return Difference(kind, actual.size, actual.size, 0, 0, found)
    if actual.dtype.kind == "f":
        as_theirs = theirs is not None and _same(actual, theirs)
        found = "" if as_theirs else f"{actual.flat[0]}, not {expected.flat[0]}"
        return Difference(kind, 1, 1, int(as_theirs), 0, found)
    units = np.abs(actual.astype(np.int64) - expected)
    differ, by_one = units > 0, units == 1
    as_runtime = by_one & (theirs != expected) if theirs is not None else np.zeros_like(differ)
    near = np.zeros_like(differ)
    if others:
        near = by_one & ~as_runtime & (np.minimum(*others) <= actual) & (actual <= np.maximum(*others))
    wrong = differ & ~as_runtime & ~near
    text = ""
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        text = f"{actual[at]}, not {expected[at]} at {list(at)}, {int(wrong.sum())} codes, onnxruntime: "
        text += "refuses" if theirs is None else str(theirs[at])
    return Difference(kind, int(differ.sum()), actual.size, int(as_runtime.sum()), int(near.sum()), text)


NET = run.Net("nets.quantized", (__doc__ or "").partition("\n")[0], names, judge, isolated=True)
