"""Rules of higher-order operators: subgraphs that run always, by a condition, or repeatedly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.control.scan import scan
from graphc.control.while_loop import imported_loop
from graphc.interop.aten.registry import TABLE
from graphc.tape.grad_mode import is_grad_enabled, set_grad_enabled
from graphc.tensors import free_functions as free
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import is_tracing


def _higher_order(name: str) -> Any:
    def enter(function: Any) -> Any:
        TABLE[f"higher_order.{name}"] = function
        return function

    return enter


@_higher_order("wrap_with_set_grad_enabled")
def with_grad_enabled(enabled: bool, body: Any, *args: Any) -> Any:
    with set_grad_enabled(enabled):
        return body(*args)


@_higher_order("wrap_with_autocast")
def with_autocast(device: str, dtype: Any, enabled: bool, cache: Any, body: Any, *args: Any) -> Any:
    if enabled:
        raise UnsupportedError(
            "autocast to narrow element types inside of a model", remedy="export the model without autocast"
        )
    return body(*args)


@_higher_order("cond")
def cond(predicate: Any, yes: Any, no: Any, operands: Sequence[Any] = ()) -> Any:
    """Run one of two graphs. A trace computes both and selects their results.

    Raises UnsupportedError for gradients in a trace: the gradient of the branch not taken may be infinite.
    """
    if not isinstance(predicate, Tensor) or not is_tracing():
        return (yes if bool(predicate) else no)(*operands)
    if is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in operands):
        raise UnsupportedError("cond with gradients in compiled code", remedy="use torch.where, or graphc.no_grad()")
    pairs = list(zip(yes(*operands), no(*operands), strict=True))
    if any(not isinstance(a, Tensor) and a != b for a, b in pairs):
        raise UnsupportedError(
            "cond whose branches give different numbers in compiled code", remedy="return tensors from both"
        )
    return tuple([free.where(predicate, a, b) if isinstance(a, Tensor) else a for a, b in pairs])


@_higher_order("while_loop")
def while_loop(condition: Any, body: Any, carried: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    def goes_on(state: Any) -> Any:
        return _first(condition(*state, *additional))

    return imported_loop(goes_on, lambda state: tuple(body(*state, *additional)), tuple(carried))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) else value


@_higher_order("scan")
def scan_of(body: Any, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    count = len(init)

    def step(carry: Any, x: Any) -> Any:
        results = body(*carry, *x, *additional)
        return tuple(results[:count]), tuple(results[count:])

    carry, stacked = scan(step, tuple(init), tuple(xs))
    return (*carry, *stacked)


@_higher_order("map_impl")
def map_of(body: Any, xs: Sequence[Any], additional: Sequence[Any] = ()) -> Any:
    def step(carry: Any, x: Any) -> Any:
        return carry, tuple(body(*x, *additional))

    return scan(step, (), tuple(xs))[1]
