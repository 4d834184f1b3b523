"""Rules of ONNX operators that depend on order along an axis: running sums and products, largest elements."""

from __future__ import annotations

from typing import Any

from graphc.interop.onnx import unsigned
from graphc.interop.onnx.elements import UINT64
from graphc.interop.onnx.registry import op
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.creation import full
from graphc.tensors.tensor import Tensor


def _running(name: str, fold: Any, start: int) -> None:
    def rule(x: Tensor, axis: int, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        at = int(axis if not isinstance(axis, tuple) else axis[0]) % x.ndim
        data = functions.flip(x, (at,)) if reverse else x
        if exclusive:
            first = full((*x.shape[:at], 1, *x.shape[at + 1 :]), start, dtype=x.dtype)
            data = free.cat([first, data.narrow(at, 0, x.shape[at] - 1)], at)
        result = fold(data, at, dtype=x.dtype)
        return functions.flip(result, (at,)) if reverse else result

    op(name, host="axis")(rule)


_running("CumSum", functions.cumsum, 0)
_running("CumProd", functions.cumprod, 1)


def _largest(x: Tensor, k: Any, axis: int, largest: bool, call: Any) -> tuple[Tensor, Tensor]:
    if call.element(0) is UINT64:
        values, indices = functions.topk(unsigned.ordered(x), k, axis, largest)
        return unsigned.ordered(values), indices
    values, indices = functions.topk(x, k, axis, largest)
    return values, indices


@op("TopK", since=10, host="k")
def top_k(x: Tensor, k: Any, *, axis: int = -1, largest: int = 1, sorted: int = 1, call: Any) -> tuple[Tensor, Tensor]:
    """Return the k largest or smallest elements along an axis in order, and their indices. Of equal elements the first
    wins."""
    return _largest(x, k[0] if isinstance(k, tuple) else k, axis, bool(largest), call)


@op("TopK")
def top_k_of_attribute(x: Tensor, *, k: int, axis: int = -1, call: Any) -> tuple[Tensor, Tensor]:
    return _largest(x, k, axis, True, call)
