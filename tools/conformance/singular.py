"""Judge values and gradients at singular points by PyTorch: ends of domains, poles, kinks, saturation, ties."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

import graphc as gc
from graphc.base.difference import Tolerance, are_close, distances, largest
from graphc.errors import GraphcError, UnsupportedError
from tools.conformance.compare import USUAL
from tools.conformance.samples import NotMappedError, array_of
from tools.conformance.singular_known import EXCLUDED, reason_of
from tools.conformance.singular_points import Call, attribute_of, calls_of, subjects
from tools.conformance.tally import Row, UnequalError
from tools.trees import leaves

F32, F64, COMPILED = "float32", "float64", "compiled"
COLUMNS = {
    F64: "values and gradients, f64",
    F32: "values and gradients, f32",
    COMPILED: "the same by compiled code, f64",
}
_AS_NEAR = 4.0
"""Factor by which the rounding error of an f32 result may exceed PyTorch's."""
_SHOWN = 4
"""Most elements of an array in a message."""
Results = dict[str, np.ndarray]
"""Values and gradients by name."""


def standing() -> dict[str, str]:
    """Return ``mapped``, or the reason for leaving it out, for each subject."""
    return {name: _standing(name) for name in subjects()}


def _standing(subject: str) -> str:
    known = subject.startswith("distributions.") or attribute_of(torch, subject) is not None
    return EXCLUDED.get(subject.rpartition(".")[2]) or ("mapped" if known else "functions that PyTorch does not have")


def rows(subject: str, column: str) -> list[Row]:
    """Return the points of a subject: each point of a grid, and each call of the others."""
    compiled: dict[Any, Any] = {}
    samples: list[Row] = []
    dtype = F32 if column == F32 else F64
    with _unchecked_distributions():
        for label, call in calls_of(subject, dtype):
            run = partial(call.run, gc)
            if column == COMPILED:
                function = partial(_applied, run)
                run = compiled.setdefault(call.run, gc.compile(lambda *tensors, f=function: f(tensors)))
                run = partial(_spread, run)
            samples += _rows(subject, f"{dtype} {subject}{label}", call, run, column)
    return samples


def _applied(run: Callable[[Sequence[Any]], Any], tensors: Sequence[Any]) -> list[Any]:
    return list(leaves(run(tensors)))


def _spread(run: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    return run(*tensors)


@contextlib.contextmanager
def _unchecked_distributions() -> Iterator[None]:
    """Let distributions of both libraries take values outside of their support."""
    classes = (gc.distributions.Distribution, torch.distributions.Distribution)
    before = [c._validate_args for c in classes]
    for c in classes:
        c.set_default_validate_args(False)
    try:
        yield
    finally:
        for c, value in zip(classes, before, strict=True):
            c.set_default_validate_args(value)


def _rows(subject: str, label: str, call: Call, run: Callable[..., Any], column: str) -> Iterator[Row]:
    attempt = _attempt(call)
    if isinstance(attempt, Exception):
        yield label, _raises(NotMappedError(f"PyTorch raises {type(attempt).__name__} itself"))
        return
    call, expected = attempt
    try:
        actual = results(gc, run, call)
    except UnsupportedError:
        yield label, _raises(NotMappedError("entropies and divergences that graphc does not have"))
        return
    # NOTE: any exception of the call is a finding, except a refusal to compile.
    except Exception as error:
        refused = column == COMPILED and isinstance(error, GraphcError)
        yield label, _raises(NotMappedError("functions that compiled code refuses") if refused else error)
        return
    exact: Results = {}
    if column == F32:
        wide = call._replace(arrays=[a.astype(F64) if a.dtype == F32 else a for a in call.arrays])
        with contextlib.suppress(Exception):
            exact = results(torch, partial(call.run, torch), wide)
    yield from _compared(subject, label, call, actual, expected, exact)


def _attempt(call: Call) -> tuple[Call, Results] | Exception:
    """Return PyTorch's results, and the call with the operands that have gradients there: all, the first, or none."""
    error: Exception | None = None
    for count in (call.differentiable, 1, 0):
        attempt = call._replace(differentiable=count)
        try:
            return attempt, results(torch, partial(call.run, torch), attempt)
        # NOTE: PyTorch refuses gradients of some operands by various exceptions.
        except Exception as reason:
            error = reason
    assert error is not None
    return error


def _raises(error: Exception) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def _nothing() -> None:
    return None


def results(library: Any, run: Callable[[Sequence[Any]], Any], call: Call) -> Results:
    """Return values and gradients of a call in a library."""
    tensors = [library.from_numpy(array.copy()) for array in call.arrays]
    inputs = [t.requires_grad_() for t in tensors[: call.differentiable] if t.is_floating_point()]
    with np.errstate(all="ignore"):
        outputs = [v for v in leaves(run(tensors)) if not isinstance(v, (str, gc.dtype, torch.dtype))]
        named = {f"value {i}": array_of(v) for i, v in enumerate(outputs)}
        roots = [v for v in outputs if getattr(v, "requires_grad", False)]
        if roots and inputs:
            seeds = [
                library.from_numpy(_seed(tuple(r.shape), i, call.elementwise)).to(r.dtype) for i, r in enumerate(roots)
            ]
            gradients = library.autograd.grad(roots, inputs, seeds, allow_unused=True)
            for i, (g, x) in enumerate(zip(gradients, inputs, strict=True)):
                named[f"gradient {i}"] = array_of(library.zeros_like(x) if g is None else g)
    return named


def _seed(shape: tuple[int, ...], number: int, elementwise: bool) -> np.ndarray:
    return np.ones(shape) if elementwise else np.asarray(np.random.default_rng(number).uniform(0.5, 1.5, shape))


def _compared(
    subject: str, label: str, call: Call, actual: Results, expected: Results, exact: Results
) -> Iterator[Row]:
    """Yield one row for each point of a grid, or one for the call."""
    if not any(name.startswith("gradient") for name in expected):
        actual = {n: a for n, a in actual.items() if n.startswith("value")}
    shapes = [{n: a.shape for n, a in r.items()} for r in (actual, expected)]
    if shapes[0] != shapes[1]:
        yield label, _raises(UnequalError(f"{shapes[0]}, PyTorch {shapes[1]}"))
        return
    grid = call.arrays[0].shape
    is_grid = call.elementwise and all(a.shape == grid for a in (*call.arrays, *expected.values()))
    close = {n: _close(actual[n], e, exact.get(n), is_grid) for n, e in expected.items()}
    for index in np.ndindex(grid) if is_grid else [(...,)]:
        wrong = [n for n, mask in close.items() if not np.all(mask[index])]
        point = [np.asarray(a[index]) for a in call.arrays]
        if not wrong:
            yield label, _nothing
            continue
        pairs = {n: [_text(r[n], close[n], index) for r in (actual, expected)] for n in wrong}
        text = "; ".join(f"{n} {ours}, PyTorch {theirs}" for n, (ours, theirs) in pairs.items())
        reason = reason_of(subject, point)
        where = ", ".join(np.array2string(p, precision=3).replace("\n", "") for p in point)
        yield f"{label}({where})", _raises(NotMappedError(reason) if reason else UnequalError(text))


def _text(array: np.ndarray, close: np.ndarray, index: Any) -> str:
    elements, mask = np.asarray(array[index]), np.asarray(close[index])
    return str(elements[~mask][:_SHOWN].tolist() if elements.ndim else elements.item())


def _close(actual: np.ndarray, expected: np.ndarray, exact: np.ndarray | None, is_grid: bool) -> np.ndarray:
    """Return a mask of the elements within the tolerance of PyTorch's result or of the f64 result, or nearly as near to
    that as PyTorch's. Sums are as exact as their largest element."""
    if expected.dtype.kind not in "fc":
        return np.asarray(actual == expected)
    relative, absolute = USUAL[torch.float32 if expected.dtype == np.float32 else torch.float64]
    tolerance = Tolerance(relative, absolute if is_grid else absolute * max(1.0, largest(expected)))
    close = are_close(actual, expected, tolerance)
    if exact is not None and exact.shape == actual.shape:
        with np.errstate(all="ignore"):
            close |= are_close(actual, exact.astype(actual.dtype), tolerance)
            close |= np.isfinite(exact) & (distances(actual, exact) <= _AS_NEAR * distances(expected, exact))
    return close
