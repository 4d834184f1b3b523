"""numpy's functions on tensors, which keep gradients where graphc has a counterpart and never lose them silently."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.array_api import creation, elementwise, manipulation, products, searching, statistics
from graphc.array_api.array import Array, standard
from graphc.base.errors import GradientError
from graphc.tensors.free_functions import einsum
from graphc.tensors.methods.arithmetic import operand
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

UFUNCS = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "fabs": "abs",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
    "rint": "round",
}
"""Elementwise functions with another name in the standard."""
METHODS = ("deg2rad", "exp2", "fmax", "fmin", "fmod", "heaviside", "logaddexp2", "matmul", "rad2deg")
"""Elementwise functions, and the matrix product, that tensors have as methods of the same name."""


def _along(function: Callable[..., Any], none: int | None = None) -> Callable[..., Any]:
    """Wrap a function to flatten the array for the axis None. ``none`` is the default axis."""

    @functools.wraps(function)
    def call(x: Any, /, *, axis: int | None = none, **options: Any) -> Any:
        return function(x.flatten(), axis=0, **options) if axis is None else function(x, axis=axis, **options)

    return call


def _dot(a: Any, b: Any) -> Any:
    if not (np.ndim(a) and np.ndim(b)):
        return a * b
    return products.tensordot(a, b, axes=([-1], [-min(b.ndim, 2)]))


def _squeeze(a: Any, axis: Any = None) -> Any:
    return a.squeeze() if axis is None else manipulation.squeeze(a, axis)


def _transpose(a: Any, axes: Any = None) -> Any:
    return manipulation.permute_dims(a, tuple(range(a.ndim)[::-1] if axes is None else axes))


def _size(a: Any, axis: int | None = None) -> int:
    return a.numel() if axis is None else a.shape[axis]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(statistics, name) for name in statistics.__all__},
    **{name: getattr(searching, name) for name in ("argmax", "argmin", "isin", "nonzero", "take_along_axis")},
    **{name: getattr(manipulation, name) for name in ("broadcast_to", "expand_dims", "flip", "moveaxis", "repeat")},
    **{name: getattr(manipulation, name) for name in ("permute_dims", "reshape", "roll", "tile", "unstack")},
    **{name: getattr(creation, name) for name in ("full_like", "ones_like", "tril", "triu", "zeros_like")},
    **{name: getattr(products, name) for name in ("matrix_transpose", "tensordot")},
    "amax": statistics.max,
    "amin": statistics.min,
    "argsort": _along(searching.argsort, -1),
    "clip": elementwise.clip,
    "concatenate": lambda arrays, axis=0: manipulation.concat(arrays, axis=axis),
    "cumprod": _along(statistics.cumulative_prod),
    "cumsum": _along(statistics.cumulative_sum),
    "dot": _dot,
    "einsum": einsum,
    "ndim": lambda a: a.ndim,
    "outer": lambda a, b: a.reshape(-1, 1) * b.reshape(-1),
    "ravel": Tensor.flatten,
    "round": Tensor.round,
    "shape": lambda a: a.shape,
    "size": _size,
    "sort": _along(searching.sort, -1),
    "squeeze": _squeeze,
    "stack": manipulation.stack,
    "swapaxes": lambda a, axis1, axis2: a.swapaxes(axis1, axis2),
    "transpose": _transpose,
    "where": searching.where,
}
"""Counterparts of numpy's other functions."""
_ARGUMENTS = {"a_max": "max", "a_min": "min", "ddof": "correction", "reps": "repetitions"}
"""Arguments of numpy with another name here."""
_AS_NUMPY = frozenset({"concatenate", "dot", "einsum", "outer", "swapaxes", "where"})
"""Functions above that take numpy's arguments unchanged."""


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Return ``ufunc(*inputs)``, where some inputs are tensors.

    The result is a tensor, or an array of ``graphc.array_api`` if one of the inputs is. numpy computes calls with
    ``out``, ``where`` or a method (``numpy.add.reduce``), and functions without a counterpart.

    Raises GradientError where numpy would compute and a tensor requires gradients, TraceError where one is traced.
    """
    own: str = ufunc.__name__
    name = UFUNCS.get(own, own)
    function = _function_of_elements(name, any(isinstance(i, Array) for i in inputs))
    operands = [_operand(i) for i in inputs]
    plain = method == "__call__" and not options and all(g is not NotImplemented for g in operands)
    if function is not None and plain:
        return function(*operands)
    return _by_numpy(getattr(ufunc, method), f"numpy.{own}", inputs, options)


def _operand(value: Any) -> Any:
    """Return a number, a tensor, or NotImplemented for other objects."""
    if isinstance(value, np.generic):
        return value.item()
    return operand(np.asarray(value) if isinstance(value, (list, tuple)) else value)


def _function_of_elements(name: str, of_arrays: bool) -> Callable[..., Any] | None:
    """Return the elementwise function. It promotes tensors as their operators do, and arrays by the standard."""
    if name in elementwise.OPS:
        return getattr(elementwise, name) if of_arrays else elementwise.OPS[name]
    if name not in METHODS:
        return None
    method = getattr(Tensor, name)
    return lambda *operands: (standard(method) if of_arrays else method)(*map(_as_tensor, operands))


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) else front().constant(np.asarray(value))


def apply_function(function: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Return the result of a numpy function other than a ufunc for arguments with tensors. See ``apply_ufunc``."""
    call = _translated(function, args, options)
    if call is None:
        return _by_numpy(function, f"numpy.{function.__name__}", args, options)
    result = call()
    return result if any(isinstance(i, Array) for i in _within((*args, *options.values()))) else _as_tensors(result)


def _translated(function: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Callable[[], Any] | None:
    """Return the equivalent call of a function here, or None where no function takes these arguments."""
    name = function.__name__
    ours = FUNCTIONS.get(name) if function.__module__ == "numpy" else None
    if ours is None:
        return None
    first, named = [_with_tensors(a) for a in args], {key: _with_tensors(value) for key, value in options.items()}
    if name not in _AS_NUMPY:
        bound = {n: v for n, v in _signature(function).bind(*first, **named).arguments.items() if v is not None}
        bound = {_ARGUMENTS.get(n, n): v for n, v in bound.items() if v is not np._NoValue}  # type: ignore[attr-defined]
        count = max(1, _positional(ours))
        first = [bound.pop(n) for n in list(bound)[:count]]
        named = bound | ({"axis": None} if "axis" in options and options["axis"] is None else {})
    try:
        _signature(ours).bind(*first, **named)
    except TypeError:
        return None
    return lambda: ours(*first, **named)


def _with_tensors(value: Any) -> Any:
    """Convert numpy arrays, also in sequences of one level, to tensors. Other values stay."""
    if isinstance(value, np.ndarray):
        return operand(value)
    return type(value)(map(_with_tensors, value)) if type(value) in (tuple, list) else value


_signature = cache(inspect.signature)


@cache
def _positional(function: Callable[..., Any]) -> int:
    """Return the number of positional-only parameters."""
    kinds = [p.kind for p in _signature(function).parameters.values()]
    return kinds.count(inspect.Parameter.POSITIONAL_ONLY)


def _as_tensors(result: Any) -> Any:
    """Turn fresh arrays into tensors."""
    if isinstance(result, tuple):
        return type(result)([_as_tensors(f) for f in result])
    if isinstance(result, Array):
        result.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
    return result


def _within(values: Iterable[Any]) -> Iterable[Any]:
    """Yield values, and the elements of sequences among them."""
    for value in values:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def _by_numpy(function: Callable[..., Any], name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Compute with numpy on the elements of tensors."""
    values = [_values(name, a) for a in args]
    return function(*values, **{key: _values(name, value) for key, value in options.items()})


def _values(name: str, value: Any) -> Any:
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_values(name, v) for v in value)
    if not isinstance(value, Tensor):
        return value
    front().values(value, f"{name}()")  # raises for a traced tensor
    if value.requires_grad:
        raise GradientError(
            f"{name} is computed by numpy, which would lose the gradient of a tensor that requires one",
            remedy="use operations of graphc (graphc.array_api has numpy's names), or pass tensor.detach()",
        )
    return np.asarray(value)
