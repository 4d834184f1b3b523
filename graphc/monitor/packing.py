"""Values as trees that a file can hold, and back: tensors, arrays, numbers, texts, containers, and references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME, DType
from graphc.base.errors import ArgumentError, ArtifactError, DeviceError
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh

_PLAIN = (str, int, float, bool, type(None))


class Packer:
    """Makes trees of values. The same tensor twice stays the same one; its elements are copied."""

    def __init__(self, known: Sequence[Any] = (), lenient: bool = False):
        """``known`` are objects that stand in the file by themselves: they become references to their numbers.
        ``lenient``: what cannot be held is a text."""
        self._known = {id(value): i for i, value in enumerate(known) if not isinstance(value, Tensor)}
        self._lenient = lenient
        self._seen: dict[int, tuple[Any, int]] = {}

    def pack(self, value: Any, place: str) -> dict[str, Any]:
        """A tree of dictionaries, lists, numbers, texts and arrays; raises ArgumentError, with the place, for a value
        that cannot be held."""
        if id(value) in self._known:
            return {"known": self._known[id(value)]}
        if isinstance(value, Tensor):
            return self._tensor(value, place)
        if type(value) in _PLAIN:
            return {"plain": value}
        if isinstance(value, np.ndarray) and value.dtype.kind in "?biufc":
            return {"array": value.copy()}
        if isinstance(value, np.generic) and value.dtype.kind in "?biufc":
            return {"number": np.asarray(value)}
        if isinstance(value, DType):
            return {"dtype": value.name}
        if isinstance(value, slice):
            return {"slice": [self.pack(v, place) for v in (value.start, value.stop, value.step)]}
        return self._container(value, place)

    def _container(self, value: Any, place: str) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return {"dict": [[self.pack(k, place), self.pack(v, f"{place}[{k!r}]")] for k, v in value.items()]}
        if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [self.pack(v, f"{place}[{i}]") for i, v in enumerate(value)]}
        if self._lenient:
            return {"other": type(value).__name__}
        raise ArgumentError(
            f"debug: {place} is a {type(value).__name__}, which cannot be recorded",
            remedy="tensors, arrays, numbers, texts; tuples, lists and dictionaries of these; modules and optimizers",
        )

    def _tensor(self, tensor: Tensor, place: str) -> dict[str, Any]:
        if id(tensor) in self._seen:
            return {"same": self._seen[id(tensor)][1]}
        data = refresh(tensor)._data
        if is_on_device(data):
            raise DeviceError(f"debug: {place} is on {tensor.device}; steps of the host are recorded", remedy=".cpu()")
        self._seen[id(tensor)] = tensor, len(self._seen)
        # NOTE: a copy in C order would lose strides, on which the bits of products may depend.
        return {"tensor": data.copy(order="K"), "requires_grad": bool(tensor._requires_grad)}


class Unpacker:
    """Makes values of trees."""

    def __init__(self, known: Sequence[Any] = ()):
        self._known = known
        self._tensors: list[Tensor] = []

    def unpack(self, tree: Any) -> Any:
        """The value; raises ArtifactError for a tree that ``Packer`` did not make."""
        try:
            return self._unpack(tree)
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
            raise ArtifactError(f"the recording is damaged: {type(error).__name__}: {error}") from None

    def _unpack(self, tree: Any) -> Any:
        kind = next(iter(tree))
        content = tree[kind]
        if kind == "tensor":
            return self._tensor(content, tree["requires_grad"])
        if kind == "dict":
            return {self._unpack(k): self._unpack(v) for k, v in content}
        if kind in ("list", "tuple"):
            found = [self._unpack(v) for v in content]
            return found if kind == "list" else tuple(found)
        if kind == "slice":
            return slice(*[self._unpack(v) for v in content])
        return self._leaf(kind, content)

    def _leaf(self, kind: str, content: Any) -> Any:
        if kind == "known":
            return self._known[content]
        if kind == "same":
            return self._tensors[content]
        if kind == "dtype":
            return BY_NAME[content]
        if kind == "number":
            return content[()]
        if kind in ("plain", "array", "other"):
            return content
        raise KeyError(kind)

    def _tensor(self, array: np.ndarray, requires_grad: bool) -> Tensor:
        tensor: Any = front().constant(np.array(array, order="K"))
        if requires_grad:
            tensor.requires_grad_()
        self._tensors.append(tensor)
        return tensor


def arrays_in(tree: Any, name: str = "") -> dict[str, Any]:
    """The arrays (and numbers) in a packed tree by the place that they have in the value."""
    kind = next(iter(tree))
    content = tree[kind]
    if kind in ("tensor", "array", "number"):
        return {name: content}
    if kind == "plain" and type(content) in (int, float, bool):
        return {name: np.asarray(content)}
    found: dict[str, Any] = {}
    if kind == "dict":
        for key, child in content:
            found.update(arrays_in(child, f"{name}[{next(iter(key.values()))!r}]"))
    elif kind in ("list", "tuple"):
        for i, child in enumerate(content):
            found.update(arrays_in(child, f"{name}[{i}]"))
    return found
