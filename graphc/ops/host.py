"""``host_call``: a Python function in the middle of compiled code, which gets arrays and gives arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME, float32
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, GradientError, ShapeError
from graphc.ir.literal import print_type
from graphc.ir.op import Attr, Attrs, ErrorSample, OpDef, Trait, Types
from graphc.ir.types import TensorType
from graphc.ops.batch import Entry
from graphc.ops.complex import interleaved, parts
from graphc.ops.define import define
from graphc.ops.parts_of_complex import Complex

TOKEN = TensorType(float32)
"""What host calls hand on: 0, or another number after one that has failed."""
FAILED = "a Python function that compiled code calls has failed"
"""What programs say when a token is not 0."""
Run = Callable[[int, Sequence[np.ndarray]], Sequence[np.ndarray]]
_runs: list[Run] = []
"""What host calls of interpreted graphs do; the last one counts."""


def types_of(text: str) -> tuple[TensorType, ...]:
    """The types in a text such as ``f32[2,3] i64[]``. Raises AttributeValueError for anything else."""
    return tuple(_type_of(part) for part in text.split())


def _type_of(text: str) -> TensorType:
    name, bracket, rest = text.partition("[")
    sizes = rest.removesuffix("]").split(",") if rest.removesuffix("]") else []
    if name not in BY_NAME or not bracket or not rest.endswith("]") or not all(s.isdigit() for s in sizes):
        raise AttributeValueError(f"host_call: {text!r} is no type", remedy="types such as f32[2,3]")
    return TensorType(BY_NAME[name], tuple(map(int, sizes)))


def text_of(types: Sequence[TensorType]) -> str:
    """The text that ``types_of`` reads."""
    return " ".join(print_type(t.dtype, t.shape) for t in types)


def _infer(token: TensorType, *operands: TensorType, number: int, name: str, results: str, lends: bool) -> Types:
    if token.dtype is not float32:
        raise DTypeError(f"host_call: the token is {token.dtype.name}, not f32", remedy="that of another host call")
    if token.shape:
        raise ShapeError(f"host_call: the token has shape {list(token.shape)}", remedy="that of another host call")
    if number < 0:
        raise AttributeValueError(f"host_call: number {number} is negative", remedy="the number of a host function")
    return (TOKEN, *types_of(results))


def interpreting(run: Run) -> _Interpreting:
    """A context in which interpreted graphs call ``run(number, arrays)`` for host calls."""
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
            f"the graph calls the Python function {name}, which is not a part of it",
            remedy="call the compiled function, which knows it; check a model without it",
        )
    found = map(_as, _runs[-1](number, operands), types_of(results))
    return (np.zeros((), np.float32), *found)


def _as(array: np.ndarray, type: TensorType) -> np.ndarray:
    """A copy as an array of the type, of which complex ones are pairs of numbers in programs of real ones."""
    found = np.array(array, order="C")
    same = (found.dtype, found.shape) == (type.dtype.numpy, type.shape)
    return found if same else found.view(type.dtype.numpy).reshape(type.shape)


def _of_parts(token: Any, *operands: Any, results: str, **attrs: Any) -> tuple[Any, ...]:
    """The function sees the memory of complex numbers, in which both parts lie side by side."""
    types = types_of(results)
    pairs = [TensorType(t.dtype.real, (*t.shape, 2)) if t.dtype.is_complex else t for t in types]
    given = [interleaved(v) if isinstance(v, Complex) else v for v in operands]
    found = host_call(token, *given, results=text_of(pairs), **attrs)
    after, *made = found if isinstance(found, tuple) else (found,)
    return after, *[parts(v) if t.dtype.is_complex else v for v, t in zip(made, types, strict=True)]


def _gradient(g: Any, result: Any, token: Any, *operands: Any, **attrs: Any) -> tuple[Any, ...]:
    raise GradientError(
        f"a second derivative would go through the Python function {attrs['name']}",
        remedy="operations of graphc in its backward, or a function that is not opaque",
    )


def _batched(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    raise ArgumentError(f"vmap: {attrs['name']} is a Python function, which cannot be told of a batch", remedy="a loop")


host_call = define(
    "host_call",
    "Calls a Python function, which the caller of the graph knows by its number, with the operands behind the token; "
    "gives a token and what the function returns. Calls run in the order of their tokens.",
    "token *operands",
    _infer,
    attrs=[
        Attr("number", "int", "which of the caller's functions"),
        Attr("name", "str", "what messages call it"),
        Attr("results", "str", "types of the results, such as 'f32[2,3] i64[]'", "", False),
        Attr(
            "lends", "bool", "whether it may begin what goes on beside other work: see HostFunction.lends", False, False
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
        ErrorSample((TOKEN,), "'f9' is no", {"number": 0, "name": "f", "results": "f9"}, AttributeValueError),
    ),
)
