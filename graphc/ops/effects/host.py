"""``host_call``: a Python function called from compiled code; it takes arrays and returns arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME, float32
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GradientError, ShapeError
from graphc.ir.literal import print_type
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops.batch import BatchedOperand
from graphc.ops.define import define
from graphc.ops.pointwise.complex import interleaved, parts
from graphc.ops.pointwise.parts_of_complex import Complex

TOKEN = TensorType(float32)
"""Type of the token between host calls: 0, or another number after a failed call."""
FAILED = "a Python function that compiled code calls has failed"
"""Message of programs for a nonzero token."""
Run = Callable[[int, Sequence[np.ndarray]], Sequence[np.ndarray]]
_runs: list[Run] = []
"""Handlers of host calls in interpreted graphs; the last one is active."""


def types_of(text: str) -> tuple[TensorType, ...]:
    """Parse the types in a text such as ``f32[2,3] i64[]``. Raises AttributeValueError for anything else."""
    return tuple(_type_of(word) for word in text.split())


def _type_of(text: str) -> TensorType:
    name, bracket, rest = text.partition("[")
    sizes = rest.removesuffix("]").split(",") if rest.removesuffix("]") else []
    if name not in BY_NAME or not bracket or not rest.endswith("]") or not all(s.isdigit() for s in sizes):
        raise AttributeValueError(f"host_call: {text!r} is not a type", remedy="pass types such as f32[2,3]")
    return TensorType(BY_NAME[name], tuple(map(int, sizes)))


def text_of(types: Sequence[TensorType]) -> str:
    """Format types as ``types_of`` reads them."""
    return " ".join(print_type(t.dtype, t.shape) for t in types)


def _infer(token: TensorType, *operands: TensorType, number: int, name: str, results: str, lends: bool) -> Types:
    if token.dtype is not float32:
        raise DTypeError(
            f"host_call: the token is {token.dtype.name}, not f32", remedy="pass the token of another host call"
        )
    if token.shape:
        raise ShapeError(
            f"host_call: the token has shape {list(token.shape)}", remedy="pass the token of another host call"
        )
    if number < 0:
        raise AttributeValueError(
            f"host_call: number {number} is negative", remedy="pass the number of a host function"
        )
    return (TOKEN, *types_of(results))


def interpreting(run: Run) -> _Interpreting:
    """Return a context in which interpreted graphs call ``run(number, arrays)`` for host calls."""
    return _Interpreting(run)


class _Interpreting:
    def __init__(self, run: Run):
        self._run = run

    def __enter__(self) -> None:
        _runs.append(self._run)

    def __exit__(self, *_: object) -> None:
        _runs.remove(self._run)


def _reference(
    token: np.ndarray, *operands: np.ndarray, number: int, name: str, results: str, lends: bool
) -> tuple[np.ndarray, ...]:
    if not _runs:
        raise ArgumentError(
            f"the graph calls the Python function {name}, which it does not contain",
            remedy="call the compiled function, which has it; check a model without it",
        )
    arrays = map(_as, _runs[-1](number, operands), types_of(results))
    return (np.zeros((), np.float32), *arrays)


def _as(array: np.ndarray, type: TensorType) -> np.ndarray:
    """Copy an array to the type. Programs of real numbers have pairs of them in place of complex numbers."""
    copied = np.array(array, order="C")
    same = (copied.dtype, copied.shape) == (type.dtype.numpy, type.shape)
    return copied if same else copied.view(type.dtype.numpy).reshape(type.shape)


def _of_parts(token: Any, *operands: Any, results: str, **attrs: Any) -> tuple[Any, ...]:
    """Pass the interleaved memory of complex numbers to the function."""
    types = types_of(results)
    pairs = [TensorType(t.dtype.real, (*t.shape, 2)) if t.dtype.is_complex else t for t in types]
    arguments = [interleaved(v) if isinstance(v, Complex) else v for v in operands]
    outputs = host_call(token, *arguments, results=text_of(pairs), **attrs)
    after, *values = outputs if isinstance(outputs, tuple) else (outputs,)
    return after, *[parts(v) if t.dtype.is_complex else v for v, t in zip(values, types, strict=True)]


def _gradient(g: Any, result: Any, token: Any, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    raise GradientError(
        f"a second derivative would go through the Python function {attrs['name']}",
        remedy="use operations of graphc in its backward, or a function that is not opaque",
    )


def _batched(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    raise ArgumentError(
        f"vmap: the Python function {attrs['name']} does not support batches", remedy="write a loop instead"
    )


host_call = define(
    "host_call",
    "Calls a Python function, which the caller of the graph identifies by a number, with the operands after the token. "
    "Returns a token and the function's results. Calls run in the order of their tokens.",
    "token *operands",
    _infer,
    attrs=[
        Attr("number", "int", "which of the caller's functions"),
        Attr("name", "str", "what messages call it"),
        Attr("results", "str", "types of the results, such as 'f32[2,3] i64[]'", "", False),
        Attr(
            "lends",
            "bool",
            "whether it may start work that overlaps with other work: see HostFunction.lends",
            False,
            False,
        ),
    ],
    reference=_reference,
    vjp=_gradient,
    complex=_of_parts,
    traits=Trait.EFFECT | Trait.MATERIALIZE | Trait.HOST,
    batch=_batched,
    samples=list,
    error_samples=(
        ErrorSample((TensorType(float32, (2,)),), "the token has shape [2]", {"number": 0, "name": "f"}, ShapeError),
        ErrorSample((TensorType(BY_NAME["i64"]),), "the token is i64", {"number": 0, "name": "f"}, DTypeError),
        ErrorSample((TOKEN,), "number -1 is neg", {"number": -1, "name": "f"}, AttributeValueError),
        ErrorSample((TOKEN,), "'f9' is not", {"number": 0, "name": "f", "results": "f9"}, AttributeValueError),
    ),
)
