"""ONNX operators between element types."""

from __future__ import annotations

from graphc.base.errors import UnsupportedError
from graphc.interop.onnx.elements import Element, element_of_code
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors.tensor import Tensor


@op("Cast", since=6, values=True)
def cast(x: Value, *, to: int, saturate: int = 1, round_mode: str = "up") -> Value:
    return _cast(x, element_of_code(to))


@op("CastLike", values=True)
def cast_like(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Value:
    return _cast(x, like.element)


def _cast(x: Value, element: Element) -> Value:
    if x.is_known and x.element.carrier is not None and element.carrier is not None:
        return Value(element, None, x.array if x.array.dtype == object else x.array.astype(element.numpy))
    return Value(element, _converted(x.tensor, element))


def _converted(x: Tensor, element: Element) -> Tensor:
    if element.carrier is None:
        raise UnsupportedError(f"a cast to {element.name}")
    return x.to(element.carrier)
