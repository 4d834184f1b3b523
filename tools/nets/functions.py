"""Every public function: numpy references, eager mode, the traced graph and native code give the same, gradients too.

``python -m tools.nets.functions --seconds N --seed S --results FILE``; a case is named ``function#form:number``.
"""

from __future__ import annotations

import itertools
import random
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import graphc as gc
from graphc.base.difference import EXACT, Tolerance, difference, largest
from graphc.eager.dispatcher import references
from graphc.errors import GraphcError
from graphc.ir.graph.graph import input_class
from graphc.ir.graph.interpret import evaluate
from graphc.nn import functional
from tools.nets.forms import Form, forms_of, public
from tools.nets.operands import FLOATS, Operand, array_of, choose, laid_out
from tools.nets.run import DIFFERENT, EQUAL, FAILED, REFUSED, Net, Outcome, main
from tools.nets.zero_products import native_products, only_spread
from tools.trees import leaves, mapped

TOLERANCE = {"float32": 2e-4, "float64": 1e-8}
"""Relative to the largest finite number of a result: native code sums in another order."""
TRACED = {"float32": 1e-6, "float64": 1e-14}
"""The same for the graph, whose arrays are dense: numpy has other last bits for other strides."""
GRADIENT_FACTOR = 20
DENSE = frozenset({"view", "view_as"})
"""Functions that depend on the memory layout of their operand: eager mode raises for strides that do not allow the
view, compiled code reshapes; the operands are dense."""
CONVERSIONS = frozenset({"long", "int", "byte", "char", "to", "to_dtype", "type", "type_as", "copy_"})
"""Conversions for which numbers out of range have an undefined result."""
SUMS = frozenset({"sum", "mean", "prod", "nansum", "nanmean", "std", "var", "std_mean", "var_mean", "allclose"})
"""Reductions over all elements: overflow depends on the order."""

OWNERS: dict[str, Any] = {"graphc": gc, "nn.functional": functional, "special": gc.special, "Tensor": gc.Tensor}
"""Modules and classes by the first part of a public name."""


Allowed = dict[str, float] | None
"""Tolerance by element type; None demands equality."""


class Call(NamedTuple):
    """A function with operands."""

    function: Callable[..., list[Any]]
    """Tensors to all tensors and numbers of the result, in order."""
    arrays: list[np.ndarray]
    layouts: list[str]
    differentiable: list[bool]


def make(case: str) -> Call:
    """Return the call of that name."""
    head, _, number = case.rpartition(":")
    name, _, form_number = head.partition("#")
    chance = np.random.default_rng([zlib.crc32(head.encode()), int(number)])
    choice = choose(chance)
    if name.rpartition(".")[2] in CONVERSIONS:
        choice = choice._replace(special=False, any_type="int64" if choice.any_type == "uint8" else choice.any_type)
    choice = choice._replace(large=name.rpartition(".")[2] not in SUMS)
    if name.rpartition(".")[2] in DENSE:
        choice = choice._replace(layout="dense")
    form = forms_of(name)[int(form_number)]
    operands = [leaf for leaf in leaves(form) if isinstance(leaf, Operand)]
    arrays = [array_of(operand, choice, chance) for operand in operands]
    floating = [
        o.kind in ("float", "positive") or str(a.dtype) in FLOATS for o, a in zip(operands, arrays, strict=True)
    ]
    return Call(_function(name, form), arrays, [choice.layout] * len(arrays), floating)


def _filled(form: Form, tensors: Iterator[Any]) -> Any:
    """Return the arguments of a form with tensors in the place of operands."""

    def filled(leaf: Any) -> Any:
        if isinstance(leaf, Operand):
            return next(tensors)
        return gc.tensor(leaf) if isinstance(leaf, np.ndarray) else leaf

    return mapped(form, filled)


def _function(name: str, form: Form) -> Callable[..., list[Any]]:
    owner_name, _, short = name.rpartition(".")

    def function(*tensors: Any) -> list[Any]:
        arguments = list(_filled(form, iter(tensors)))
        keywords = arguments.pop() if arguments and isinstance(arguments[-1], dict) else {}
        if short.endswith("_"):
            # What writes to an operand writes to a copy of it, which has a history.
            arguments[0] = arguments[0].clone()
        return numbers_of(getattr(OWNERS[owner_name], short)(*arguments, **keywords))

    return function


def numbers_of(value: Any) -> list[Any]:
    """Return tensors and numbers of a result."""
    return [leaf for leaf in leaves(value) if not isinstance(leaf, (str, gc.dtype))]


def tensors_of(call: Call, gradients: bool) -> list[Any]:
    """Return new tensors for the operands of a call, with its strides."""
    tensors = []
    for array, layout, floating in zip(call.arrays, call.layouts, call.differentiable, strict=True):
        tensor = _tensor(array, layout)
        tensors.append(tensor.requires_grad_() if gradients and floating else tensor)
    return tensors


def _tensor(array: np.ndarray, layout: str) -> Any:
    if layout == "expanded" and array.ndim and array.shape[0]:
        return gc.from_numpy(array[:1].copy()).expand(*array.shape).detach()
    return gc.from_numpy(laid_out(array, layout))


class Results(NamedTuple):
    """Values and gradients, or an error."""

    values: list[np.ndarray]
    gradients: list[np.ndarray | None]
    error: Exception | None = None
    tensors: tuple[bool, ...] = ()
    """Flags by value: tensors, as opposed to numbers of Python."""


def run(function: Callable[..., list[Any]], inputs: Sequence[Any]) -> Results:
    """Return the results of a function, and gradients of their weighted sum."""
    try:
        results = numbers_of(function(*inputs))
        values = [_array(v) for v in results]
        total: Any = None
        for number, tensor in enumerate(results):
            if getattr(tensor, "requires_grad", False):
                term = (tensor * _weights(tensor.shape, number, tensor.dtype)).sum().double()
                total = term if total is None else total + term
        if total is not None:
            total.backward()
        tensors = tuple(isinstance(v, gc.Tensor) for v in results)
        return Results(values, [None if x.grad is None else _array(x.grad) for x in inputs], None, tensors)
    except Exception as error:
        return Results([], [], error)


def _weights(shape: Sequence[int], number: int, dtype: Any) -> Any:
    return gc.tensor(np.random.default_rng(number).uniform(0.5, 1.5, tuple(shape))).to(dtype)


def _array(value: Any) -> np.ndarray:
    return np.array(value.numpy(force=True)) if hasattr(value, "numpy") else np.asarray(value)


def judge(case: str) -> Outcome:
    """Run a case in all ways."""
    call = make(case)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with references():
            expected = run(call.function, tensors_of(call, True))
        eager = run(call.function, tensors_of(call, True))
        if outcome := compare("eager", expected, eager, None):
            return outcome
        if expected.error is None and (outcome := _traced(call, expected)):
            return outcome
        native = run(gc.compile(call.function), tensors_of(call, True))
        return _compare_native(call, expected, native) or Outcome(EQUAL)


def _compare_native(call: Call, expected: Results, native: Results) -> Outcome | None:
    """Compare native code with the reference; only products that native code alone computes may add NaN."""
    outcome = compare("compiled", expected, native, TOLERANCE)
    if outcome is None or outcome.kind != DIFFERENT or expected.error is not None:
        return outcome
    with native_products():
        spread = run(call.function, tensors_of(call, True))
    pairs = zip((*expected.values, *expected.gradients), (*spread.values, *spread.gradients), strict=True)
    return compare("compiled", spread, native, TOLERANCE) if all(itertools.starmap(only_spread, pairs)) else outcome


def _traced(call: Call, expected: Results) -> Outcome | None:
    """Compare with the meaning of the traced graph."""
    inputs = tensors_of(call, False)
    try:
        graph = gc.trace(lambda *x: [t for t in call.function(*x) if isinstance(t, gc.Tensor)], *inputs)
    except GraphcError as error:
        return Outcome(REFUSED, f"trace: {error}")
    if any(input_class(v) != "input" for v in graph.inputs):
        return None
    values = iter(evaluate(graph, [x.numpy() for x in inputs]))
    # Numbers of Python come from the trace; the graph does not hold them.
    results = [
        next(values) if tensor else value for tensor, value in zip(expected.tensors, expected.values, strict=True)
    ]
    return compare("traced", expected, expected._replace(values=results), TRACED)


def compare(mode: str, expected: Results, actual: Results, tolerance: Allowed) -> Outcome | None:
    """Return the difference, or None."""
    if expected.error is not None or actual.error is not None:
        return _compare_errors(mode, expected.error, actual.error)
    if len(expected.values) != len(actual.values):
        return Outcome(DIFFERENT, f"{mode}: {len(actual.values)} results, the reference has {len(expected.values)}")
    for number, (a, b) in enumerate(zip(expected.values, actual.values, strict=True)):
        if text := different(a, b, tolerance, 1):
            return Outcome(DIFFERENT, f"{mode}: result {number}: {text}")
    for number, (a, b) in enumerate(zip(expected.gradients, actual.gradients, strict=True)):
        if a is None or b is None:
            present = b if a is None else a
            if present is not None and np.any(present):
                return Outcome(DIFFERENT, f"{mode}: gradient {number}: only one has it")
        elif text := different(a, b, tolerance, GRADIENT_FACTOR):
            return Outcome(DIFFERENT, f"{mode}: gradient {number}: {text}")
    return None


def _compare_errors(mode: str, expected: Exception | None, actual: Exception | None) -> Outcome | None:
    if actual is None:
        return Outcome(DIFFERENT, f"{mode} gives a value, the reference raises {type(expected).__name__}: {expected}")
    if not isinstance(actual, GraphcError):
        return Outcome(FAILED, f"{mode}: {type(actual).__name__}: {actual}")
    return None if expected is not None else Outcome(REFUSED, f"{mode}: {actual}")


def different(a: np.ndarray, b: np.ndarray, tolerance: Allowed, factor: float) -> str:
    """Describe how ``b`` differs from ``a``; empty where it does not. Non-finite numbers must be equal. Without a
    tolerance all bits count except the signs of zeros."""
    allowed = EXACT
    if tolerance is not None and a.dtype.kind == "f":
        limit = tolerance[str(a.dtype)] * factor
        allowed = Tolerance(limit, limit * max(1.0, largest(a)))
    result = difference("", b, a, allowed, same_dtype=True)
    return "" if result.is_within else str(result)


def cases(seed: int) -> Iterator[str]:
    """Yield every form of every function by chance, again and again with other operands."""
    names = [f"{name}#{number}" for name in public() for number in range(len(forms_of(name)))]
    for round_ in itertools.count():
        random.Random(f"{seed} {round_}").shuffle(names)
        for head in names:
            yield f"{head}:{1000 * seed + round_}"


NET = Net("functions", "Every public function: references, eager, traced and native agree.", cases, judge)

if __name__ == "__main__":
    sys.exit(main(NET))
