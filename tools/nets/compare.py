"""One program on PyTorch and on graphc, eagerly and compiled: values, gradients, buffers, and a training step."""

from __future__ import annotations

import functools
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

import graphc
from graphc.base.difference import EXACT, Tolerance, difference, distances, largest
from graphc.errors import CompileError, GraphcError, PassError, VerifyError
from tools.nets.conventions import as_graphc
from tools.nets.program import Program, as_array
from tools.nets.zero_products import native_products, only_spread

RELATIVE = {"float32": 3e-5, "float64": 1e-9}
"""Tolerated differences of values, relative to the largest of a tensor; gradients may differ ten times as much."""
SMALLEST = {"float32": 1e-37, "float64": 1e-300}
NOISE = 64
"""Gradients may differ by this many roundings of 1, the remainder of terms that cancel."""
UNSURE = 50.0
"""A difference is ill-conditioned if it exceeds the change by rounded inputs in PyTorch this many times."""
STEPS = 2
"""Number of training steps."""

Record = dict[str, Any]
"""Arrays by name: ``value 0``, ``gradient a0``, ``state m0.weight``; None is a missing gradient."""


class Verdict(NamedTuple):
    """Outcome of comparing one program; ``stage`` and ``kind`` stay the same while the program is reduced."""

    outcome: str
    """``equal``, ``ill-conditioned``, ``dropped`` (PyTorch refuses it), ``refused`` (a typed error says why not),
    ``different``, ``failed``."""
    stage: str = ""
    kind: str = ""
    detail: str = ""


class Mismatch(Exception):
    """Two records differ."""

    def __init__(self, label: str, what: str, detail: str):
        super().__init__(f"{label}: {what}: {detail}")
        self.label, self.what, self.detail = label, what, detail


def check(program: Program) -> Verdict:
    """Compare all ways to run a program; return the verdict on the first one that differs from PyTorch."""
    last = Verdict("equal")
    for stage in stages(program):
        verdict = compare(program, stage)
        if verdict.outcome == "ill-conditioned":
            last = verdict
        elif verdict.outcome != "equal":
            return verdict
    return last


def compare(program: Program, stage: str) -> Verdict:
    """Compare one way to run a program with PyTorch."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            expected = recorded(program, torch, stage)
        except Exception as error:
            return Verdict("dropped", stage, "", _short(error))
        record: Record = {}
        try:
            record = recorded(program, graphc, stage)
            differ(record, expected, precision_of(program), program.family == "specials")
        except Mismatch as mismatch:
            kind = f"{stage} {mismatch.label.split()[0]} {mismatch.what}"
            if mismatch.what == "value" and (
                is_spread(program, stage, record, expected) or is_convention(program, stage, record)
            ):
                return Verdict("equal", stage)
            if mismatch.what == "value" and is_unsure(program, stage, record, expected):
                return Verdict("ill-conditioned", stage, kind, str(mismatch))
            return Verdict("different", stage, kind, str(mismatch))
        except Exception as error:
            return failure_of(stage, error)
        return Verdict("equal", stage)


def failure_of(stage: str, error: Exception) -> Verdict:
    """Return an error of graphc where PyTorch has a value: typed errors of the front end are refusals."""
    internal = isinstance(error, (VerifyError, PassError, CompileError)) or not isinstance(error, GraphcError)
    return Verdict(
        "failed" if internal else "refused", stage, f"{stage} {type(error).__name__}", f"{stage}: {_short(error)}"
    )


def _short(error: BaseException) -> str:
    """Return class and first line of an error, without its numbers."""
    line = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {re.sub(r'[0-9]+', '#', line)[:160]}"


# ---- ways to run a program


def stages(program: Program) -> tuple[str, ...]:
    """Return ways to run a program: eagerly, compiled, compiled without gradients, as training steps."""
    return ("eager", "compiled", "inference", *(["step"] if program.optimizer and program.layers else []))


def recorded(
    program: Program, library: Any, stage: str, double: bool = False, arrays: Any = None, wrap: Callable | None = None
) -> Record:
    """Run a program on a library in one way and return its record; ``wrap`` compiles a net in another way than the
    usual one."""
    if stage == "step":
        return _train(program, library, double, arrays)
    wrap = wrap or (_itself if library is torch or stage == "eager" else graphc.compile)
    if stage == "inference":
        freeze = library is graphc and bool(zlib.crc32(program.text().encode()) & 1)
        return _inference(program, library, functools.partial(wrap, freeze=True) if freeze else wrap, double, arrays)
    return _twice(program, library, wrap, double, arrays)


def _twice(program: Program, library: Any, wrap: Callable, double: bool, arrays: Any) -> Record:
    """Return two calls of one net, the second with other contents of the arguments."""
    net = program.net(library, double)
    call = wrap(net)
    arrays = arrays or [i.array for i in program.inputs]
    record = values_and_gradients(program, library, net, call, program.tensors(library, arrays))
    again = values_and_gradients(program, library, net, call, program.tensors(library, [_rolled(a) for a in arrays]))
    return record | {f"{label} again": array for label, array in again.items()}


def _rolled(array: np.ndarray) -> np.ndarray:
    """Return other contents from the same range: the elements one place further."""
    return np.roll(array.ravel(), 1).reshape(array.shape)


def values_and_gradients(program: Program, library: Any, net: Any, call: Callable, tensors: Sequence[Any]) -> Record:
    """Return results, gradients of inputs and parameters, and buffers after one call."""
    results = call(*tensors)
    record: Record = {f"value {i}": as_array(r) for i, r in enumerate(results)}
    record |= {f"flag {i}": np.array(r.requires_grad) for i, r in enumerate(results)}
    roots = [r for r in results if r.requires_grad]
    differentiable = {i.name: t for i, t in zip(program.inputs, tensors, strict=True) if t.requires_grad}
    differentiable |= dict(net.named_parameters())
    if roots and differentiable:
        weights = [library.from_numpy(_weights(as_array(r))) for r in roots]
        gradients = library.autograd.grad(roots, list(differentiable.values()), weights, allow_unused=True)
        record |= {
            f"gradient {n}": None if g is None else as_array(g) for n, g in zip(differentiable, gradients, strict=True)
        }
    return record | {f"state {name}": as_array(b) for name, b in net.named_buffers()}


def _inference(program: Program, library: Any, wrap: Callable, double: bool = False, arrays: Any = None) -> Record:
    """Return results of a call without gradients."""
    net = program.net(library, double)
    call = wrap(net)
    with library.no_grad():
        results = call(*program.tensors(library, arrays, gradients=False))
    return {f"value {i}": as_array(r) for i, r in enumerate(results)}


def _train(program: Program, library: Any, double: bool, arrays: Any) -> Record:
    """Return losses, parameters and buffers after some training steps."""
    net = program.net(library, double)
    scope = {"optim": library.optim, "params": net.parameters()}
    optimizer = eval(f"optim.{program.optimizer}", scope)
    tensors = program.tensors(library, arrays, gradients=False)

    def loss(results: Any) -> Any:
        total = None
        for r in results:
            if r.requires_grad:
                dtype = np.float64 if r.dtype == library.float64 else np.float32
                weights = library.from_numpy(_weights(np.zeros(tuple(r.shape), dtype)))
                term = (r * weights).sum()
                total = term if total is None else total + term
        return total

    if library is graphc:
        step = graphc.compile_step(net, loss, optimizer)
        losses = [step(tuple(tensors)) for _ in range(STEPS)]
    else:
        losses = []
        for _ in range(STEPS):
            optimizer.zero_grad()
            losses.append(loss(net(*tensors)))
            losses[-1].backward()
            optimizer.step()
    record: Record = {f"loss {i}": as_array(x) for i, x in enumerate(losses)}
    return record | {f"state {name}": as_array(value) for name, value in net.state_dict().items()}


def _weights(array: np.ndarray) -> np.ndarray:
    """Return the factors by which a result is multiplied before results are summed: eighths that depend on the shape
    alone."""
    random = np.random.default_rng([7, *array.shape])
    return np.asarray(random.integers(-8, 9, array.shape) / 8, array.dtype)


# ---- comparisons


def precision_of(program: Program) -> str:
    """Return the coarsest element type in which a program may compute: integers become f32."""
    is_double = all(i.array.dtype == np.float64 for i in program.inputs) and "float32" not in program.text()
    return "float64" if is_double and all(layer.endswith(".double()") for _, layer in program.layers) else "float32"


def differ(actual: Record, expected: Record, precision: str, zeros: bool = False) -> None:
    """Raise at the first difference of two records; ``zeros`` says that signs of zeros count in values."""
    for label, theirs in expected.items():
        ours = actual.get(label)
        if ours is None or theirs is None:
            present = theirs if ours is None else ours
            if present is not None and (label not in actual or np.any(present)):
                raise Mismatch(label, "missing", f"{ours} is not {theirs}")
            continue
        _same(label, ours, theirs, precision, zeros and label.startswith("value"))


def _same(label: str, ours: np.ndarray, theirs: np.ndarray, precision: str, zeros: bool) -> None:
    for what in ("shape", "dtype"):
        if getattr(ours, what) != getattr(theirs, what):
            raise Mismatch(label, what, f"{getattr(ours, what)} is not {getattr(theirs, what)}")
    comparison = difference("", ours, theirs, _tolerance(label, theirs, precision))
    if not comparison.is_within:
        raise Mismatch(label, "value", str(comparison))
    if zeros and ours.dtype.kind == "f":
        other_sign = (ours == 0) & (theirs == 0) & (np.signbit(ours) != np.signbit(theirs))
        if np.any(other_sign):
            raise Mismatch(label, "value", f"the sign of {int(other_sign.sum())} of {ours.size} zeros differs")


def _tolerance(label: str, theirs: np.ndarray, precision: str) -> Tolerance:
    """Return the tolerance of a value or gradient, a fraction of the largest element."""
    if theirs.dtype.kind != "f":
        return EXACT
    is_value = label.startswith("value")
    noise = 0.0 if is_value else NOISE * float(np.finfo(precision).eps)
    return Tolerance(0.0, RELATIVE[precision] * (1 if is_value else 10) * largest(theirs) + SMALLEST[precision] + noise)


def is_spread(program: Program, stage: str, record: Record, expected: Record) -> bool:
    """Return whether native code differs only by the NaN that its products with zeros make, where eager mode makes the
    same of them."""
    if stage not in ("compiled", "inference"):
        return False
    with native_products():
        native = _inference(program, graphc, _itself) if stage == "inference" else recorded(program, graphc, "eager")
    try:
        differ(record, native, precision_of(program))
    except Mismatch:
        return False
    return all(only_spread(array, native.get(label)) for label, array in expected.items())


def is_convention(program: Program, stage: str, record: Record) -> bool:
    """Return whether PyTorch gives the same where it follows the conventions of graphc."""
    try:
        with as_graphc():
            expected = recorded(program, torch, stage)
        differ(record, expected, precision_of(program), program.family == "specials")
    except Exception:
        return False
    return True


def _itself(net: Any) -> Any:
    return net


def is_unsure(program: Program, stage: str, record: Record, expected: Record) -> bool:
    """Return whether PyTorch's own results change about as much when the inputs are rounded another way."""
    others = []
    for double, arrays in _others(program):
        try:
            others.append(recorded(program, torch, stage, double, arrays))
        except Exception:
            continue
    return all(
        array is None
        or record.get(label) is None
        or _explained(label, record[label], array, others, precision_of(program))
        for label, array in expected.items()
    )


def _others(program: Program) -> Iterable[tuple[bool, list[np.ndarray]]]:
    """Yield the precision and inputs of runs that differ from the first by rounding alone."""
    arrays = [i.array for i in program.inputs]
    yield True, [a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]
    for direction in (1, 2, 3):
        yield False, [_nudged(a, direction) for a in arrays]


def _nudged(array: np.ndarray, direction: int) -> np.ndarray:
    """Return floats changed in the last bits: equal floats equally, and floats with few bits not at all, as they are
    exact."""
    if array.dtype.kind != "f":
        return array
    unique, positions = np.unique(array, return_inverse=True)
    random = np.random.default_rng(direction)
    step = 2 * np.finfo(array.dtype).eps * random.choice((-1.0, 0.5, 1.0), unique.shape)
    exact = ~np.isfinite(unique) | (unique * 8 == np.round(unique * 8))
    changed = np.where(exact, unique, unique * (1 + step)).astype(array.dtype)
    return changed[positions].reshape(array.shape)


def _explained(label: str, ours: np.ndarray, theirs: np.ndarray, others: Sequence[Record], precision: str) -> bool:
    """Return whether rounding explains a difference of that size."""
    if ours.dtype.kind != "f" or not theirs.size:
        changed = any(not np.array_equal(r[label], theirs) for r in others if r.get(label) is not None)
        return bool(np.array_equal(ours, theirs) or changed)
    doubt = np.zeros(theirs.shape)
    for record in others:
        other = record.get(label)
        if other is not None and other.shape == theirs.shape:
            doubt = np.maximum(doubt, distances(other, theirs))
    finite = doubt[np.isfinite(doubt)]
    typical = float(np.quantile(finite, 0.9)) if finite.size else 0.0
    allowed = _tolerance(label, theirs, precision).atol + UNSURE * doubt + 5 * typical
    return bool(np.all((distances(ours, theirs) <= allowed) | np.isinf(doubt)))
